"""Recognises a file's format by its bytes: the sender's name and the platform's type prove nothing.

Pure. The name is used only for text, to recognise a table.
"""

from typing import Literal

from zeroclaw.value import Value, replace

Reader = Literal["text", "table", "pdf", "image", "none"]

LOOKED_AT_BYTES = 8_192


class Format(Value):
    """A file format.

    Attributes:
        reader: The reader that turns it into text.
        label: For people, such as `PNG image`.
        media_type: The media type for sending it to a model; empty if no model takes it.
    """

    reader: Reader
    label: str
    media_type: str = ""


NOTHING = Format(reader="none", label="empty")
TEXT = Format(reader="text", label="text")
TABLE = Format(reader="table", label="CSV table")
PDF = Format(reader="pdf", label="PDF", media_type="application/pdf")
UNKNOWN = Format(reader="none", label="data of an unknown kind")

_OGG = Format(reader="none", label="Ogg audio or video")
_OGG_SOUND = replace(_OGG, media_type="audio/ogg")
_OGG_SOUNDS = (
    b"OpusHead",
    b"\x01vorbis",
)  # in the first packet, after the page header; RFC 3533, 6
_MP3 = Format(reader="none", label="MP3 audio", media_type="audio/mpeg")
_PDF_WITHIN_BYTES = 1_024  # the header may begin anywhere in these; ISO 32000-2, annex I
_STARTS: tuple[tuple[bytes, Format], ...] = (
    (b"\x89PNG\r\n\x1a\n", Format(reader="image", label="PNG image", media_type="image/png")),
    (b"\xff\xd8\xff", Format(reader="image", label="JPEG image", media_type="image/jpeg")),
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
    (b"OggS", _OGG),
    (b"ID3", _MP3),
    (b"\xff\xfb", _MP3),  # a frame without tags before it; ISO 11172-3, 2.4.1.3, layer III
    (b"\xff\xf3", _MP3),  # the same for MPEG-2
    (b"fLaC", Format(reader="none", label="FLAC audio", media_type="audio/flac")),
    (b"\x1aE\xdf\xa3", Format(reader="none", label="Matroska or WebM video")),
    (b"\x7fELF", Format(reader="none", label="program")),
)
_OF_RIFF = {
    b"WEBP": Format(reader="image", label="WebP image", media_type="image/webp"),
    b"WAVE": Format(reader="none", label="WAV audio", media_type="audio/wav"),
    b"AVI ": Format(reader="none", label="AVI video"),
}
_MEDIA = Format(reader="none", label="MP4 video or audio")  # also HEIC and AVIF images
_MEDIA_SOUND = replace(_MEDIA, media_type="audio/mp4")
_HEARD = frozenset(
    one.label
    for one in (*(found for _, found in _STARTS), *_OF_RIFF.values(), _MEDIA)
    if "audio" in one.label or "video" in one.label
)
_TABLES = (".csv", ".tsv", ".tab")
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
# C0 controls that text never contains; tab, line breaks, form feed, backspace and escape may occur.
_NOT_TEXT = bytes({*range(32)} - {8, 9, 10, 12, 13, 27})


_SEGMENT = b"\xff"
_FRAME_BYTES = 9
_CANVAS_BYTES, _FRAME_HEAD_BYTES = 30, 24  # WebP headers before inner chunks; RFC 9649, 2.7
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_MOST_SEGMENTS = 512  # a camera writes a few dozen
_14_BITS = 0x3FFF


def recognise(data: bytes, name: str) -> Format:
    """Return the format of a file; never fails.

    Args:
        data: The whole file, or at least its first `LOOKED_AT_BYTES`.
        name: The sender's file name.
    """
    start = data[:LOOKED_AT_BYTES]
    if not start:
        return NOTHING
    for magic, found in _STARTS:
        if start.startswith(magic):
            return _OGG_SOUND if found is _OGG and start[28:].startswith(_OGG_SOUNDS) else found
    if start.startswith(b"RIFF"):
        return _OF_RIFF.get(start[8:12], UNKNOWN)
    if start[4:8] == b"ftyp":
        return _MEDIA_SOUND if start[8:12] == b"M4A " else _MEDIA
    if b"%PDF-" in start[:_PDF_WITHIN_BYTES]:
        return PDF
    if not _is_text(start):
        return UNKNOWN
    return TABLE if name.strip().lower().endswith(_TABLES) else TEXT


def sent_as(data: bytes, name: str, *, most_pixels: int) -> str:
    """Return the media type for sending a file to a model; empty if it may not be sent.

    The receiver of an image decodes its pixels. So an image that states no pixel count, or too
    large a one, is not sent.
    """
    found = recognise(data, name).media_type
    match found:
        case "image/png":
            pixels = _of_png(data)
        case "image/webp":
            pixels = _of_webp(data)
        case "image/jpeg":
            pixels = _of_jpeg(data)
        case _:
            return found
    return found if 0 < pixels <= most_pixels else ""


def _of_png(data: bytes) -> int:
    """Return the pixel count that a PNG states, 0 if it states none; PNG specification, 11.2.2."""
    return big(data[16:20]) * big(data[20:24]) if data[12:16] == b"IHDR" else 0


def _of_webp(data: bytes) -> int:
    """Return the pixel count of a WebP; RFC 9649, 2.5 to 2.7."""
    match data[12:16]:
        case b"VP8X":
            return _of_canvas(data)
        case b"VP8L":
            bits = little(data[21:25])
            return ((bits & _14_BITS) + 1) * ((bits >> 14 & _14_BITS) + 1)
        case b"VP8 ":
            return (little(data[26:28]) & _14_BITS) * (little(data[28:30]) & _14_BITS)
        case _:
            return 0


def _of_canvas(data: bytes) -> int:
    """Return the pixel count of an extended WebP, or of the largest image in it that exceeds it."""
    most, at = (little(data[24:27]) + 1) * (little(data[27:30]) + 1), _CANVAS_BYTES
    for _ in range(_MOST_SEGMENTS):
        if at >= len(data):
            return most
        kind, size = data[at : at + 4], little(data[at + 4 : at + 8])
        if kind in (b"VP8 ", b"VP8L"):
            most = max(most, _of_webp(data[:12] + data[at : at + 18]))
        # An animation frame is a few numbers, followed by chunks like those at the top level.
        at += _FRAME_HEAD_BYTES if kind == b"ANMF" else 8 + size + size % 2
    return 0


def _of_jpeg(data: bytes) -> int:
    """Return the pixel count of a JPEG, which is in its frame header segment; ITU T.81, B.2.2."""
    at = 2
    for _ in range(_MOST_SEGMENTS):
        head = data[at : at + _FRAME_BYTES]
        if head[:1] != _SEGMENT or len(head) < _FRAME_BYTES:
            return 0
        if head[1] in _FRAMES:
            return big(head[5:7]) * big(head[7:9])
        at += 2 + big(head[2:4])
    return 0


def big(piece: bytes) -> int:
    """Decode a big-endian number."""
    return int.from_bytes(piece, "big")


def little(piece: bytes) -> int:
    """Decode a little-endian number."""
    return int.from_bytes(piece, "little")


def is_heard(label: str) -> bool:
    """Whether a format with this label is audio or video, which takes a transcriber."""
    return label in _HEARD


def _is_text(start: bytes) -> bool:
    """Whether bytes are text in any encoding; they are unless they contain what text never does."""
    if start.startswith(_WIDE_MARKS):
        return True
    return len(start.translate(None, _NOT_TEXT)) == len(start)
