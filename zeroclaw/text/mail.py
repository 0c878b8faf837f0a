"""Parse a mail within bounds: its headers, its text, and the positions of its files.

The time to read any mail grows only with its size: a part is searched once for each container around
it, of which there are at most `MAX_LEVELS`. The parser of the standard library asks every open
container about every line and recurses for each level, so that a mail of some kilobytes can block it
for seconds or crash it (`email.feedparser`, read 2026-11). Here it parses only header blocks of a
bounded size.

No function raises on bad input: an unreadable part is left out, or stays undecoded.
"""

import binascii
import re
from collections.abc import Iterator, Mapping
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser

from zeroclaw.text.charset import codec_of, decode_text
from zeroclaw.value import Hidden, Value

MAX_HEADER_BYTES = 65_536
"""Limit of one header block; Postfix takes 102,400 per mail (header_size_limit, read 2026-11)."""
MAX_VALUE_CHARS = 8_000
"""Limit of one header, unfolded; a longer one reads as empty, so that no part of it counts."""
MAX_PARAMETERS = 100
"""Limit of a header's parameters; a file name of 255 characters comes in about 40 (RFC 2231, 3)."""
MAX_LEVELS = 20
MAX_PARTS = 100
MAX_NAME_CHARS = 200
# Ways to hide text in a mail that web pages do not use; only machines would read it.
_HIDES = re.compile(r"mso-hide:all|(?:opacity|max-height):0(?:\.0*)?(?:px|;|!|$)")

_AFTER_BOUNDARY = frozenset({b"", b"-", b"\r", b"\n", b" ", b"\t"})
# In both, the alternatives begin with different characters, so nothing is tried twice.
_HEADERS = re.compile(rb"(?:[!-9;-~]+[ \t]*:[^\n]*(?:\n|\Z)|[ \t][^\n]*(?:\n|\Z))*")
_BEFORE_COLON = re.compile(rb"^([!-9;-~]+)[ \t]+(?=:)", re.MULTILINE)
_EMPTY = re.compile(rb"\r?\n")
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
_SIZE = re.compile(r"\d{1,11}", re.ASCII)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class MailPart(Value):
    """One leaf of a mail.

    Attributes:
        kind: Its claimed media type, lower case.
        charset: Its claimed charset, or empty.
        encoding: Its transfer encoding, lower case.
        name: The name of a file, untrusted; generated if the mail has none.
        is_file: It is a file, and not read as text of the mail.
        choice: Where its container of alternatives begins; 0 for none.
        size_bytes: Its claimed size, else an estimate.
        start: Where its body begins in the mail.
        end: Where its body ends.
    """

    kind: str
    charset: str
    encoding: str
    name: str
    is_file: bool
    choice: int
    size_bytes: int
    start: int
    end: int


class Mail(Value):
    """A parsed mail.

    Attributes:
        headers: The name, in lower case, and the unfolded value of each header, topmost first.
        kind: The media type of the mail.
        parts: Its leaves, in order, up to the limits.
        raw: The bytes of the mail.
    """

    headers: tuple[tuple[str, str], ...]
    kind: str
    parts: tuple[MailPart, ...]
    raw: Hidden[bytes]

    def header(self, name: str) -> str:
        """Return the first value of a header, or empty."""
        return next((value for key, value in self.headers if key == name), "")

    def content(self, part: MailPart) -> bytes:
        """Return the decoded bytes of a part."""
        return _decoded(self.raw[part.start : part.end], part.encoding)

    def text(self, part: MailPart) -> str:
        """Return the text of a part; undecodable bytes are marked."""
        return _text(self.content(part), part.charset).replace("\r\n", "\n")

    def texts(self) -> list[tuple[str, str]]:
        """Return the kind and the text of each part that people read.

        Of alternative parts only the plain one counts, unless it is empty.
        """
        parts = [(part, self.text(part)) for part in self.parts if not part.is_file]
        plain = {part.choice for part, text in parts if part.kind == "text/plain" and text.strip()}
        return [
            (part.kind, text)
            for part, text in parts
            if not part.choice or (part.kind == "text/plain") == (part.choice in plain)
        ]


def parse_mail(raw: bytes) -> Mail:
    """Return a mail with its leaves."""
    message, start = _block(raw, 0, len(raw))
    headers = tuple((name.lower(), _line(str(value))) for name, value in message.raw_items())
    # `Message` scans all headers for each lookup, and most mails have dozens.
    content = Message(policy=message.policy)
    for name, value in message.raw_items():
        if name.lower().startswith("content-"):
            content.set_raw(name, value)
    parts, kind = tuple(_leaves(raw, content, start)), content.get_content_type()
    return Mail(headers=headers, kind=kind, parts=parts, raw=raw)


def plain_header(value: str) -> str:
    """Return a header's text as one line, with its encoded words decoded."""
    try:
        pieces = decode_header(value[:MAX_VALUE_CHARS]) if "=?" in value else [(value, None)]
    except (HeaderParseError, binascii.Error, ValueError):
        pieces = [(value, None)]
    texts = (raw if isinstance(raw, str) else _text(raw, charset or "") for raw, charset in pieces)
    return " ".join(_UNSTORABLE.sub("\ufffd", "".join(texts)).split())


def is_hidden_in_mail(_tag: str, attributes: Mapping[str, str]) -> bool:
    """Tell whether an element of HTML hides its text from people, in ways that only mails use."""
    return _HIDES.search("".join(attributes.get("style", "").lower().split())) is not None


# --- the tree ------------------------------------------------------------------------------------


def _leaves(raw: bytes, message: Message, start: int) -> Iterator[MailPart]:
    """Yield the leaves of a part in order; if there are too many, or containers, the first ones."""
    pending = [(message, start, len(raw), 0, 0)]
    leaves = containers = 0
    while pending and max(leaves, containers) < MAX_PARTS:
        part, begins, ends, level, choice = pending.pop()
        boundary = _parameter(part, "boundary", "content-type").rstrip()
        if part.get_content_maintype() != "multipart" or not boundary or level == MAX_LEVELS:
            leaves += 1
            yield _leaf(part, begins, ends, choice, leaves)
            continue
        containers += 1
        inner = begins if part.get_content_subtype() == "alternative" else choice
        spans = _between(raw, begins, ends, boundary)
        children = [(*_block(raw, first, last), last, level + 1, inner) for first, last in spans]
        if part.get_content_subtype() == "digest":  # of forwarded mails; RFC 2046, 5.1.5
            for child, *_ in children:
                child.set_default_type("message/rfc822")
        pending += reversed(children)


def _between(raw: bytes, start: int, end: int, boundary: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each part of a container; RFC 2046, 5.1.1."""
    line = b"\n--" + boundary.encode("ascii", "replace")
    at = _boundary(raw, line, max(0, start - 1), end)
    for _ in range(MAX_PARTS):
        first = raw.find(b"\n", at + len(line), end) + 1
        if at < 0 or not first or raw.startswith(b"--", at + len(line)):
            return
        at = _boundary(raw, line, first - 1, end)
        last = end if at < 0 else at
        yield first, max(first, last - (raw[last - 1 : last] == b"\r"))


def _boundary(raw: bytes, line: bytes, start: int, end: int) -> int:
    """Return the position of the next boundary line, -1 if there is none.

    The boundary of one container may be a prefix of another one's. It is no part of a pattern: to
    compile one for each container would take longer than to read the whole mail.
    """
    at = raw.find(line, start, end)
    while at >= 0 and raw[at + len(line) : at + len(line) + 1] not in _AFTER_BOUNDARY:
        at = raw.find(line, at + 1, end)
    return at


def _block(raw: bytes, start: int, end: int) -> tuple[Message, int]:
    """Return the header block at a position, and where its body begins.

    The headers end at the first line that is not a header, empty or not, as for Postfix. A lone CR
    does not end a line: the receiving server saw one header there, and left all of it as it was.
    """
    match = _HEADERS.match(raw, start, min(end, start + MAX_HEADER_BYTES))
    block, body = (match[0], match.end()) if match else (b"", start)
    empty = _EMPTY.match(raw, body, end)
    lines = block.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    # At a space before a colon the parser would end the headers and miss later ones, such as From.
    lines = _BEFORE_COLON.sub(rb"\1", lines)
    return BytesHeaderParser().parsebytes(lines), empty.end() if empty else body


def _leaf(message: Message, start: int, end: int, choice: int, number: int) -> MailPart:
    kind = message.get_content_type()
    encoding = str(message.get("content-transfer-encoding", "")).strip().lower()
    filename = _parameter(message, "filename", "content-disposition")
    name = plain_header(filename or _parameter(message, "name", "content-type"))[:MAX_NAME_CHARS]
    is_attached = message.get_content_disposition() == "attachment"
    size = _parameter(message, "size", "content-disposition")
    # Four characters of base64 are three bytes; line ends are ignored.
    estimate = (end - start) * (3 if encoding == "base64" else 4) // 4
    extension = "eml" if kind == "message/rfc822" else kind.partition("/")[2][:12] or "bin"
    return MailPart(
        kind=kind,
        charset=_parameter(message, "charset", "content-type"),
        encoding=encoding,
        name=name or f"part-{number}.{extension}",
        is_file=is_attached or bool(name) or kind not in {"text/plain", "text/html"},
        choice=choice,
        size_bytes=int(size) if _SIZE.fullmatch(size) else estimate,
        start=start,
        end=end,
    )


def _parameter(message: Message, name: str, header: str) -> str:
    """Return a parameter of a header, or empty; also empty if the header is too long.

    With RFC 2231 a parameter may omit pieces, and then the standard library raises. It reads all
    parameters, and for each copies the rest of the header.
    """
    line = str(message.get(header, ""))
    if len(line) > MAX_VALUE_CHARS or line.count(";") > MAX_PARAMETERS:
        return ""
    try:
        value = message.get_param(name, "", header)
    except (TypeError, ValueError):
        return ""
    if not isinstance(value, tuple):
        return value
    charset, _, text = value
    return _text(text.encode("latin-1", "replace"), charset or "")


def _line(value: str) -> str:
    """Return a header's value unfolded; non-ASCII bytes are read as UTF-8 (RFC 6532)."""
    line = value.replace("\r", "").replace("\n", "").strip()
    line = line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return line if len(line) <= MAX_VALUE_CHARS else ""


# --- bytes and words -----------------------------------------------------------------------------


def _decoded(body: bytes, encoding: str) -> bytes:
    if encoding == "base64":
        # Like mail programs: other characters are skipped, an incomplete end is dropped.
        digits = _NOT_BASE64.sub(b"", body)
        whole = digits[:-1] if len(digits) % 4 == 1 else digits
        return binascii.a2b_base64(whole + b"==")  # padding that is not needed is ignored
    return binascii.a2b_qp(body) if encoding == "quoted-printable" else body


def _text(content: bytes, charset: str) -> str:
    """Return text in a charset, or in the usual ones of mail that names none."""
    return _UNSTORABLE.sub("\ufffd", decode_text(content, codec_of(charset))[0])
