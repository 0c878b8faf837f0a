"""Take a mail apart within bounds: its headers, the words in it, and where its files lie.

Whatever a mail looks like, this reads it in time that grows with its size alone: a part is looked at
once for each container that it lies in, of which there are at most `MOST_LEVELS`. The parser of the
standard library asks every open container about every line and calls itself for each level, so that
a mail of some kilobytes holds it up for seconds or ends it (`email.feedparser`, read 2026-11); here
it reads header blocks of a bounded size and nothing else.

Nothing raises: what can't be read is left out, or stands as it is.
"""

import binascii
import codecs
import re
from collections.abc import Iterator, Mapping
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser
from email.utils import collapse_rfc2231_value

from zeroclaw import Hidden, Value

MOST_HEADER_BYTES = 65_536
"""Of one block of headers; Postfix takes 102,400 of a whole mail (header_size_limit, read 2026-11)."""
MOST_VALUE_CHARS = 8_000
"""Of one header, unfolded; one that is longer reads as empty, so that none is believed in part."""
MOST_LEVELS = 20
MOST_PARTS = 100
MOST_NAME_CHARS = 200

# Whose decoders take time that grows with the square of the text, or read what is no text.
_NO_CHARSETS = frozenset({"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"})
_AFTER_BOUNDARY = frozenset({b"", b"-", b"\r", b"\n", b" ", b"\t"})
# Both repeat what begins with a sign that the other can't, so that nothing is tried twice.
_HEADERS = re.compile(rb"(?:[!-9;-~]+[ \t]*:[^\n]*(?:\n|\Z)|[ \t][^\n]*(?:\n|\Z))*")
_BEFORE_COLON = re.compile(rb"^([!-9;-~]+)[ \t]+(?=:)", re.MULTILINE)
_EMPTY = re.compile(rb"\r?\n")
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Part(Value):
    """One leaf of a mail.

    Attributes:
        kind: Its media type, lower case, as it claims.
        charset: As it claims, empty for none.
        encoding: How its bytes travel, lower case.
        name: What it calls its file; untrusted.
        is_file: It stands for itself, and is not read as words of the mail.
        choice: The container of which one part is read and the others say the same; 0 for none.
        said_bytes: The size that it claims, None for none.
        start: Where its body begins in the mail.
        end: Where it ends.
    """

    kind: str
    charset: str
    encoding: str
    name: str
    is_file: bool
    choice: int
    said_bytes: int | None
    start: int
    end: int


class Mail(Value):
    """A mail that was taken apart.

    Attributes:
        headers: Each value of a header in order, unfolded, by name in lower case.
        kind: The media type of the whole.
        parts: Its leaves, in order, as many as are looked at.
        raw: All of it.
    """

    headers: Mapping[str, tuple[str, ...]]
    kind: str
    parts: tuple[Part, ...]
    raw: Hidden[bytes]

    def header(self, name: str) -> str:
        """Return the first value of a header, empty for none."""
        return next(iter(self.headers.get(name, ())), "")

    def content(self, part: Part) -> bytes:
        """Return the bytes of a part as they were before they travelled."""
        return _decoded(self.raw[part.start : part.end], part.encoding)

    def text(self, part: Part) -> str:
        """Return the words of a part; what its charset does not know is marked."""
        return _text(self.content(part), part.charset).replace("\r\n", "\n")


def taken_apart(raw: bytes) -> Mail:
    """Return a mail with its leaves."""
    message, start = _block(raw, 0, len(raw))
    headers: dict[str, list[str]] = {}
    for name, value in message.raw_items():
        headers.setdefault(name.lower(), []).append(_line(str(value)))
    found = {name: tuple(values) for name, values in headers.items()}
    parts = tuple(_leaves(raw, message, start))
    return Mail(headers=found, kind=message.get_content_type(), parts=parts, raw=raw)


def plain(value: str) -> str:
    """Return a header's text with its encoded words read, as one line."""
    try:
        pieces = decode_header(value[:MOST_VALUE_CHARS]) if "=?" in value else [(value, None)]
    except (HeaderParseError, binascii.Error, ValueError):
        pieces = [(value, None)]
    read = (one if isinstance(one, str) else _text(one, charset or "") for one, charset in pieces)
    return " ".join(_UNSTORABLE.sub("\ufffd", "".join(read)).split())


# --- the tree ------------------------------------------------------------------------------------


def _leaves(raw: bytes, message: Message, start: int) -> Iterator[Part]:
    """Yield the leaves below a part in order, the outermost first where there are too many."""
    waiting = [(message, start, len(raw), 0, 0)]
    leaves = 0
    while waiting and leaves < MOST_PARTS:
        one, begins, ends, level, choice = waiting.pop()
        boundary = _parameter(one, "boundary", "content-type").rstrip()
        if one.get_content_maintype() != "multipart" or not boundary or level == MOST_LEVELS:
            leaves += 1
            yield _leaf(one, begins, ends, choice)
            continue
        inner = begins if one.get_content_subtype() == "alternative" else choice
        places = _between(raw, begins, ends, boundary)
        below = [(*_block(raw, first, last), last, level + 1, inner) for first, last in places]
        waiting += reversed(below)


def _between(raw: bytes, start: int, end: int, boundary: str) -> Iterator[tuple[int, int]]:
    """Yield where each part of a container begins and ends; RFC 2046, 5.1.1."""
    line = b"\n--" + boundary.encode("ascii", "replace")
    at = _boundary(raw, line, max(0, start - 1), end)
    for _ in range(MOST_PARTS):
        first = raw.find(b"\n", at + len(line), end) + 1
        if at < 0 or not first or raw.startswith(b"--", at + len(line)):
            return
        at = _boundary(raw, line, first - 1, end)
        last = end if at < 0 else at
        yield first, max(first, last - (raw[last - 1 : last] == b"\r"))


def _boundary(raw: bytes, line: bytes, start: int, end: int) -> int:
    """Return where the next line is that divides parts, -1 for none.

    The boundary of a container may begin as that of another one does.
    """
    at = raw.find(line, start, end)
    while at >= 0 and raw[at + len(line) : at + len(line) + 1] not in _AFTER_BOUNDARY:
        at = raw.find(line, at + 1, end)
    return at


def _block(raw: bytes, start: int, end: int) -> tuple[Message, int]:
    """Return the headers that begin somewhere, and where what they are about begins.

    They end at the first line that is none, empty or not, as they do for Postfix. A lone CR ends no
    line: the server that took the mail in saw one header there, and left all of it to its writer.
    """
    found = _HEADERS.match(raw, start, min(end, start + MOST_HEADER_BYTES))
    block, body = (found[0], found.end()) if found else (b"", start)
    empty = _EMPTY.match(raw, body, end)
    lines = block.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    # There the parser would end, and all below it, such as a second sender, would be unseen.
    lines = _BEFORE_COLON.sub(rb"\1", lines)
    return BytesHeaderParser().parsebytes(lines), empty.end() if empty else body


def _leaf(message: Message, start: int, end: int, choice: int) -> Part:
    kind = message.get_content_type()
    called = _parameter(message, "filename", "content-disposition")
    name = plain(called or _parameter(message, "name", "content-type"))[:MOST_NAME_CHARS]
    is_attached = message.get_content_disposition() == "attachment"
    size = _parameter(message, "size", "content-disposition")
    return Part(
        kind=kind,
        charset=_parameter(message, "charset", "content-type"),
        encoding=str(message.get("content-transfer-encoding", "")).strip().lower(),
        name=name,
        is_file=is_attached or bool(name) or kind not in {"text/plain", "text/html"},
        choice=choice,
        said_bytes=int(size) if size.isascii() and size.isdecimal() and len(size) < 12 else None,  # noqa: PLR2004  digits
        start=start,
        end=end,
    )


def _parameter(message: Message, name: str, header: str) -> str:
    """Return a parameter of a header, empty for none, and where the header is too long.

    What RFC 2231 makes of them may name any codec or leave pieces out, and then the standard
    library raises, of which `filename*=idna''a` is the shortest. Its time grows with the square of
    a header's length.
    """
    if len(str(message.get(header, ""))) > MOST_VALUE_CHARS:
        return ""
    try:
        return collapse_rfc2231_value(message.get_param(name, "", header))
    except (LookupError, TypeError, ValueError):
        return ""


def _line(value: str) -> str:
    """Return a header's value unfolded; bytes beyond ASCII are read as UTF-8 (RFC 6532)."""
    line = value.replace("\r", "").replace("\n", "").strip()
    line = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return line if len(line) <= MOST_VALUE_CHARS else ""


# --- bytes and words -----------------------------------------------------------------------------


def _decoded(body: bytes, encoding: str) -> bytes:
    if encoding == "base64":
        # As mail programs read it: what is no sign of it is passed over, a cut end is left out.
        signs = _NOT_BASE64.sub(b"", body)
        left = len(signs) % 4
        whole = signs + b"=" * (4 - left) if left > 1 else signs[: len(signs) - left]
        return binascii.a2b_base64(whole)
    return binascii.a2b_qp(body) if encoding == "quoted-printable" else body


def _text(content: bytes, charset: str) -> str:
    """Return text in a charset, or in those that mail without one is written in."""
    for name in (charset or "utf-8", "utf-8", "windows-1252"):
        try:
            known = codecs.lookup(name).name
            if known not in _NO_CHARSETS:
                # Of a charset that was named, what it does not know is marked, and the rest is read.
                text = content.decode(known, "replace" if name == charset else "strict")
                return _UNSTORABLE.sub("\ufffd", text)
        except (LookupError, ValueError):
            continue
    return content.decode("latin-1").replace("\x00", "\ufffd")
