"""The one-line request to a reader process, and its one-line answer (pure)."""

from contextlib import suppress

from zeroclaw.codec import decode, encode
from zeroclaw.errors import RecordUnreadable
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
        about: One line on the file and on the part.
        text: The part, empty for none.
        failed: The reason for a failure, empty on success.
    """

    about: str = ""
    text: str = ""
    failed: str = ""


def line_of(message: ReadRequest | Reply) -> bytes:
    """Encode a request, or an answer, as one line."""
    return encode(message) + b"\n"


def parse_reply(line: bytes) -> Reply | None:
    """Decode an answer; None for anything malformed, since the process may be compromised."""
    with suppress(RecordUnreadable):
        return decode(Reply, line)
    return None
