"""What bytes are, by themselves: a sender's name and a platform's type prove nothing (pure).

Only among texts a name says more: that one is meant as a table.
"""

from typing import Literal

from zeroclaw.value import Value

Reader = Literal["text", "table", "pdf", "image", "none"]

LOOKED_AT_BYTES = 8_192


class Format(Value):
    """What bytes are.

    Attributes:
        reader: Which reader makes text of them.
        label: For people, such as `PNG image`.
    """

    reader: Reader
    label: str


NOTHING = Format(reader="none", label="empty")
TEXT = Format(reader="text", label="text")
TABLE = Format(reader="table", label="CSV table")
PDF = Format(reader="pdf", label="PDF")
UNKNOWN = Format(reader="none", label="data of an unknown kind")

_PDF_WITHIN_BYTES = 1_024  # readers look this far for its first line; ISO 32000-2, annex I
_STARTS: tuple[tuple[bytes, Format], ...] = (
    (b"\x89PNG\r\n\x1a\n", Format(reader="image", label="PNG image")),
    (b"\xff\xd8\xff", Format(reader="image", label="JPEG image")),
    (b"GIF87a", Format(reader="image", label="GIF image")),
    (b"GIF89a", Format(reader="image", label="GIF image")),
    (b"II*\x00", Format(reader="image", label="TIFF image")),
    (b"MM\x00*", Format(reader="image", label="TIFF image")),
    (b"PK\x03\x04", Format(reader="none", label="ZIP archive or office document")),
    (b"PK\x05\x06", Format(reader="none", label="ZIP archive or office document")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Format(reader="none", label="old office document")),
    (b"\x1f\x8b", Format(reader="none", label="gzip archive")),
    (b"7z\xbc\xaf\x27\x1c", Format(reader="none", label="7z archive")),
    (b"Rar!\x1a\x07", Format(reader="none", label="RAR archive")),
    (b"OggS", Format(reader="none", label="Ogg audio or video")),
    (b"ID3", Format(reader="none", label="MP3 audio")),
    (b"fLaC", Format(reader="none", label="FLAC audio")),
    (b"\x1aE\xdf\xa3", Format(reader="none", label="Matroska or WebM video")),
    (b"\x7fELF", Format(reader="none", label="program")),
)
_OF_RIFF = {
    b"WEBP": Format(reader="image", label="WebP image"),
    b"WAVE": Format(reader="none", label="WAV audio"),
    b"AVI ": Format(reader="none", label="AVI video"),
}
_MEDIA = Format(reader="none", label="MP4 video or audio")  # also HEIC and AVIF images
_HEARD = frozenset(
    one.label
    for one in (*(found for _, found in _STARTS), *_OF_RIFF.values(), _MEDIA)
    if "audio" in one.label or "video" in one.label
)
_TABLES = (".csv", ".tsv", ".tab")
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
# C0 controls that no text has; tab, line ends, form feed, backspace and escape may be there.
_NOT_TEXT = bytes({*range(32)} - {8, 9, 10, 12, 13, 27})


def recognise(data: bytes, name: str) -> Format:
    """Return what bytes are; never fails.

    Args:
        data: All of them, or at least their first `LOOKED_AT_BYTES`.
        name: As their sender called them.
    """
    start = data[:LOOKED_AT_BYTES]
    if not start:
        return NOTHING
    for magic, found in _STARTS:
        if start.startswith(magic):
            return found
    if start.startswith(b"RIFF"):
        return _OF_RIFF.get(start[8:12], UNKNOWN)
    if start[4:8] == b"ftyp":
        return _MEDIA
    if b"%PDF-" in start[:_PDF_WITHIN_BYTES]:
        return PDF
    if not _is_text(start):
        return UNKNOWN
    return TABLE if name.strip().lower().endswith(_TABLES) else TEXT


def is_heard(label: str) -> bool:
    """Tell whether what is called so is listened to, which takes a transcriber."""
    return label in _HEARD


def _is_text(start: bytes) -> bool:
    """Tell text of any encoding from data, by what no text has."""
    if start.startswith(_WIDE_MARKS):
        return True
    return len(start.translate(None, _NOT_TEXT)) == len(start)
