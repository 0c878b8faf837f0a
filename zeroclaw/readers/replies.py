"""What a reader is asked, and what it answers: the two lines between us and its process (pure)."""

import json

from msgspec.structs import asdict

from zeroclaw.readers.formats import Reader
from zeroclaw.value import Value


class Asked(Value):
    """What is to be read of a file.

    Attributes:
        reader: Which reader.
        page: Of a PDF, from 1.
        offset: Characters of a text, or rows of a table, before the piece.
        limit: Characters of the answer, at most; of a PDF's page it is not cut to them.
        rows: Of a table, at most.
    """

    reader: Reader
    page: int = 1
    offset: int = 0
    limit: int = 20_000
    rows: int = 100


class Reply(Value):
    """What a reader made of a file.

    Attributes:
        about: One line on the whole and on the piece.
        text: The piece, empty for none.
        failed: Why there is none, empty when there is.
    """

    about: str = ""
    text: str = ""
    failed: str = ""


def asked_line(asked: Asked) -> bytes:
    """Return a question as one line."""
    return json.dumps(asdict(asked)).encode() + b"\n"


def read_asked(line: bytes) -> Asked:
    """Read a question that `asked_line` wrote."""
    return Asked(**json.loads(line))


def reply_line(reply: Reply) -> bytes:
    """Return an answer as one line; ASCII, so that half a character can be said."""
    return json.dumps(asdict(reply)).encode() + b"\n"


def read_reply(line: bytes) -> Reply | None:
    """Read an answer; None for anything that is none, from whatever hand."""
    try:
        loaded: object = json.loads(line)
    except ValueError:
        return None
    match loaded:
        case {"about": str(about), "text": str(text), "failed": str(failed)}:
            return Reply(about=about, text=text, failed=failed)
        case _:
            return None
