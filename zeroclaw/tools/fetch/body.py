"""The body of a response: its readable types, its decompression and its decoding."""

import re
import zlib
from typing import Literal

from zeroclaw.text.charset import codec_of, decode_text
from zeroclaw.value import Value

Kind = Literal["html", "text"]

# In addition to `text/*`, `…+json` and `…+xml`.
_TEXTS = frozenset(
    {
        "application/json", "application/xml", "application/javascript", "application/x-ndjson",
        "application/yaml", "application/x-yaml", "application/toml", "application/sql",
    }
)  # fmt: skip
_PAGES = frozenset({"text/html", "application/xhtml+xml"})

_IN_HEADER = re.compile(r";\s*charset\s*=\s*[\"']?([^\s;\"']+)", re.IGNORECASE)
_IN_PAGE = re.compile(
    rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})", re.IGNORECASE
)
_IN_XML = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([a-zA-Z0-9_:.-]{1,40})[\"']")
_INPUT_PER_OUTPUT = 2  # incompressible data grows a little when compressed
_GZIP = zlib.MAX_WBITS | 16
# Members of one gzip stream. Each costs a new decompressor, and 4 MB hold 200,000 empty ones.
_MAX_MEMBERS = 1_000
_PRESCAN_BYTES = 1024  # as in the HTML standard's prescan


class ContentType(Value):
    """A parsed Content-Type header.

    Attributes:
        name: `type/subtype` in lower case; empty if absent.
        charset: As declared; empty if absent.
        kind: How we read the body; None for a type that we refuse.
    """

    name: str
    charset: str
    kind: Kind | None


def content_type(header: str) -> ContentType:
    """Parse a Content-Type header; without one, the body counts as text unless its bytes look binary."""
    if not header.strip():
        return ContentType(name="", charset="", kind="text")
    name = header.partition(";")[0].strip().lower()
    charset = _IN_HEADER.search(header)
    return ContentType(name=name, charset=charset[1] if charset else "", kind=_kind(name))


def _kind(name: str) -> Kind | None:
    if name in _PAGES:
        return "html"
    if name.startswith("text/") or name in _TEXTS or name.endswith(("+json", "+xml")):
        return "text"
    return None


class Decompressor:
    """Decompresses the chunks of a body, and keeps at most `max_bytes` of the result.

    It decompresses no further than the cap, so a decompression bomb costs nothing. Input is capped
    at twice the cap, so a body that decompresses to nothing ends too. So does one of too many gzip
    members, because a single chunk of those would block all other conversations.
    """

    def __init__(self, encoding: str, max_bytes: int) -> None:
        """Start decompressing.

        Args:
            encoding: The Content-Encoding header.
            max_bytes: The cap.

        Raises:
            ValueError: We did not request this encoding.
        """
        name = encoding.strip().lower()
        if name not in {"", "identity", "gzip", "x-gzip"}:
            raise ValueError(name)
        self._packed = name in {"gzip", "x-gzip"}
        self._inflate = zlib.decompressobj(_GZIP)
        self._max_bytes = max_bytes
        self.data = bytearray()  # the decompressed bytes so far
        self._arrived_bytes = 0
        self._members = 0
        self._is_between = True
        self.is_broken = False
        self.is_full = False

    @property
    def done(self) -> bool:
        """Whether further chunks would be discarded."""
        return self.is_full or self.is_broken

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk; sets `is_full` at the first byte over the cap."""
        self._arrived_bytes += len(chunk)
        if self._packed:
            self._unpack(chunk)
        else:
            self._store(chunk)
        self.is_full = self.is_full or self._arrived_bytes > _INPUT_PER_OUTPUT * self._max_bytes

    def end(self) -> None:
        """End the body; sets `is_broken` if the compressed data is incomplete."""
        self.is_broken = self.is_broken or not (self._is_between or self.is_full)

    def _unpack(self, chunk: bytes) -> None:
        while chunk and not self.done:
            try:
                # One byte more than fits: it tells a body that is too long from one that just fits.
                room = self._max_bytes - len(self.data) + 1
                self._store(self._inflate.decompress(chunk, room))
            except zlib.error:
                self.is_broken = True
                return
            chunk = self._inflate.unconsumed_tail
            self._is_between = self._inflate.eof
            if self._is_between:  # gzip members may follow each other, RFC 1952 section 2.2
                chunk = self._inflate.unused_data
                self._members += 1
                self.is_full = self.is_full or self._members >= _MAX_MEMBERS
                self._inflate = zlib.decompressobj(_GZIP)

    def _store(self, data: bytes) -> None:
        room = self._max_bytes - len(self.data)
        self.data += data[:room]
        self.is_full = self.is_full or len(data) > room


def decode(data: bytes, declared: ContentType) -> str:
    """Decode a body: as it says, else as its header says, or its text, else as it looks."""
    return decode_text(data, codec_of(declared.charset) or _codec_inside(data, declared))[0]


def _codec_inside(data: bytes, declared: ContentType) -> str:
    start = data[:_PRESCAN_BYTES]
    match = _IN_PAGE.search(start) if declared.kind == "html" else _IN_XML.search(start)
    name = codec_of(match[1].decode("ascii")) if match else ""
    # We could read it as ASCII, so it can't be UTF-16 or UTF-32.
    return "utf-8" if name.startswith(("utf_16", "utf_32")) else name
