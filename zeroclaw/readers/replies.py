"""The one-line request to a reader process, and its one-line answer (pure)."""

import json

from msgspec.structs import asdict

from zeroclaw.readers.formats import Reader
from zeroclaw.value import Value


class ReadRequest(Value):
    """A request to read part of a file.

    Attributes:
        reader: Which reader.
        page: The page of a PDF, from 1.
        offset: Characters of a text, or rows of a table, to skip.
        limit: The most characters to return; does not apply to a PDF's page.
        rows: The most rows of a table to return.
    """

    reader: Reader
    page: int = 1
    offset: int = 0
    limit: int = 20_000
    rows: int = 100


class Reply(Value):
    """The result of reading a file.

    Attributes:
        about: One line on the whole file and on the part.
        text: The part, empty for none.
        failed: Why there is none, empty on success.
    """

    about: str = ""
    text: str = ""
    failed: str = ""


def request_line(asked: ReadRequest) -> bytes:
    """Encode a request as one line."""
    return json.dumps(asdict(asked)).encode() + b"\n"


def parse_request(line: bytes) -> ReadRequest:
    """Decode a request that `request_line` encoded."""
    return ReadRequest(**json.loads(line))


def reply_line(reply: Reply) -> bytes:
    """Encode an answer as one line; ASCII, so that unpaired surrogates survive."""
    return json.dumps(asdict(reply)).encode() + b"\n"


def parse_reply(line: bytes) -> Reply | None:
    """Decode an answer; None for anything malformed, since the process may be compromised."""
    try:
        loaded: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match loaded:
        case {"about": str(about), "text": str(text), "failed": str(failed)}:
            return Reply(about=about, text=text, failed=failed)
        case _:
            return None
