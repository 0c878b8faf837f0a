"""Recognises a file's format by its bytes: the sender's name and the platform's type prove nothing.

Pure. The name is used only for text, to recognise a table or a mail.
"""

from typing import Literal

from zeroclaw.text.charset import BYTE_ORDER_MARKS
from zeroclaw.value import Value, replace

Reader = Literal["text", "table", "mail", "pdf", "image", "none"]

SNIFFED_BYTES = 8_192


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


EMPTY = Format(reader="none", label="empty")
TEXT = Format(reader="text", label="text")
TABLE = Format(reader="table", label="CSV table")
MAIL = Format(reader="mail", label="mail")
PDF = Format(reader="pdf", label="PDF", media_type="application/pdf")
UNKNOWN = Format(reader="none", label="data of an unknown kind")

_OGG = Format(reader="none", label="Ogg audio or video")
_OGG_AUDIO = replace(_OGG, media_type="audio/ogg")
_OGG_AUDIO_MARKS = (b"OpusHead", b"\x01vorbis")  # after the first page's header; RFC 3533, 6
_MP3 = Format(reader="none", label="MP3 audio", media_type="audio/mpeg")
_PDF_WITHIN_BYTES = 1_024  # the header may begin anywhere in these; ISO 32000-2, annex I
_MAGIC: tuple[tuple[bytes, Format], ...] = (
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
_RIFF_TYPES = {
    b"WEBP": Format(reader="image", label="WebP image", media_type="image/webp"),
    b"WAVE": Format(reader="none", label="WAV audio", media_type="audio/wav"),
    b"AVI ": Format(reader="none", label="AVI video"),
}
_MP4 = Format(reader="none", label="MP4 video or audio")  # also HEIC and AVIF images
_MP4_AUDIO = replace(_MP4, media_type="audio/mp4")
_TABLES = (".csv", ".tsv", ".tab")
# C0 controls that text never contains; tab, line breaks, form feed, backspace and escape may occur.
_NOT_TEXT = bytes({*range(32)} - {8, 9, 10, 12, 13, 27})


def recognise(data: bytes, name: str) -> Format:
    """Return the format of a file; never fails.

    Args:
        data: The whole file, or at least its first `SNIFFED_BYTES`.
        name: The sender's file name.
    """
    head = data[:SNIFFED_BYTES]
    if not head:
        return EMPTY
    for magic, found in _MAGIC:
        if head.startswith(magic):
            return _OGG_AUDIO if found is _OGG and head[28:].startswith(_OGG_AUDIO_MARKS) else found
    if head.startswith(b"RIFF"):
        return _RIFF_TYPES.get(head[8:12], UNKNOWN)
    if head[4:8] == b"ftyp":
        return _MP4_AUDIO if head[8:12] == b"M4A " else _MP4
    if b"%PDF-" in head[:_PDF_WITHIN_BYTES]:
        return PDF
    if not _is_text(head):
        return UNKNOWN
    lower_name = name.strip().lower()
    if lower_name.endswith(".eml"):
        return MAIL
    return TABLE if lower_name.endswith(_TABLES) else TEXT


def is_audio_or_video(label: str) -> bool:
    """Whether a format with this label is audio or video, which takes a transcriber."""
    return "audio" in label or "video" in label


def _is_text(head: bytes) -> bool:
    """Whether bytes are text in any encoding: they contain no control that text never has."""
    if head.startswith(tuple(BYTE_ORDER_MARKS)):
        return True
    return len(head.translate(None, _NOT_TEXT)) == len(head)
