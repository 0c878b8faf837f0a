"""Decides which images a model is sent, and removes their metadata (pure).

The receiver decodes the pixels, so an image of too many is not sent. Every size that a decoder could
find in the data counts, because decoders differ in which of two headers they believe.

A camera records the place and time of a picture, and its owner. Programs add comments, and thumbnails
that still show cropped parts, and a file of another kind may be appended. People who send a picture
rarely mean to send these, and a model's endpoint needs none of it. So the parts that a decoder needs
are copied byte for byte and in order, and the rest is dropped. Of the camera's metadata, only the
orientation is written back.

No pixels are decoded, and each part is visited once, up to a limit on their number.
"""

import re
import struct
from collections.abc import Iterator
from zlib import crc32

from zeroclaw.readers.formats import recognise

MAX_PARTS = 20_000
"""Parts of one image; a PNG of 20 MB in the usual chunks of 8 KiB has 2,500."""
_UPRIGHT, _MAX_ORIENTATION = 1, 8
_ORIENTATION, _SHORT = 0x0112, 3  # a tag and its type; TIFF 6.0, sections 8 and 2
_MAX_TAGS = 1_000
_HEAD_BYTES, _ENTRY = 8, 12
_BROKEN = "it ends too early, or never"

_JPEG = b"\xff\xd8"
_SCAN, _ENDS, _END = 0xDA, 0xD9, b"\xff\xd9"
# ITU T.81, table B.1: frames, tables, restarts, scans. APP0 and APP14 define the colour space.
_JPEG_SEGMENTS = frozenset(range(0xC0, 0xD0)) - {0xC8} | {0xD9, 0xDA, 0xDB, 0xDC, 0xDD}
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_APP0, _APP1, _APP14 = 0xE0, 0xE1, 0xEE
_JFIF, _JFIF_BYTES = b"JFIF\0", 12  # up to its thumbnail; JFIF 1.02
_ADOBE, _ADOBE_BYTES = b"Adobe", 12
_EXIF = b"Exif\0\0"
# Within a scan, 0xFF is followed by 0, by a restart marker, or by another 0xFF.
_MARKER = re.compile(rb"\xff(?=[^\x00\xff\xd0-\xd7])")

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_CHUNKS = frozenset(
    {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT"}
)
_WEBP_CHUNKS = frozenset({b"VP8 ", b"VP8L", b"ALPH", b"ANIM"})
_FRAME, _FRAME_HEAD = b"ANMF", 16
_14_BITS = 0x3FFF
_METADATA_FLAGS, _EXIF_FLAG = 0b0010_1100, 0b0000_1000  # ICC, Exif and XMP; RFC 9649, 2.7.1


def model_media_type(data: bytes, name: str, *, max_pixels: int) -> str:
    """Return the media type for sending a file to a model; empty if it may not be sent.

    A malformed image may not, nor one whose pixel count is missing or too large.
    """
    media_type = recognise(data, name).media_type
    if not media_type.startswith("image/"):
        return media_type
    try:
        pixels = max(_pixel_counts(data, media_type), default=0)
    except ValueError:
        return ""  # malformed
    return media_type if 0 < pixels <= max_pixels else ""


def _pixel_counts(data: bytes, media_type: str) -> Iterator[int]:
    """Yield each pixel count that an image states, for itself or for a part of it."""
    match media_type:
        case "image/jpeg":
            for kind, body, _ in _segments(data):
                if kind in _FRAMES:  # ITU T.81, B.2.2
                    yield _big(body[1:3]) * _big(body[3:5])
        case "image/png":
            for kind, body, _ in _png_chunks(data):
                if kind == b"IHDR":  # PNG specification, 11.2.2
                    yield _big(body[:4]) * _big(body[4:8])
        case _:  # WebP
            for kind, body in _webp_chunks(data):
                yield _webp_pixel_count(kind, body)
                if kind == _FRAME:
                    yield from (_webp_pixel_count(*chunk) for chunk in _chunks(body[_FRAME_HEAD:]))


def _webp_pixel_count(kind: bytes, body: bytes) -> int:
    """Return the pixel count that a chunk of a WebP states, or 0; RFC 9649, 2.5 to 2.7."""
    match kind:
        case b"VP8X":
            return (_little(body[4:7]) + 1) * (_little(body[7:10]) + 1)
        case b"ANMF":
            return (_little(body[6:9]) + 1) * (_little(body[9:12]) + 1)
        case b"VP8L":
            bits = _little(body[1:5])
            return ((bits & _14_BITS) + 1) * ((bits >> 14 & _14_BITS) + 1)
        case b"VP8 ":
            return (_little(body[6:8]) & _14_BITS) * (_little(body[8:10]) & _14_BITS)
        case _:
            return 0


def without_metadata(data: bytes, media_type: str) -> bytes:
    """Return an image without its metadata; empty if the data is malformed.

    Args:
        data: The complete image.
        media_type: As recognised from its bytes; data of other types is returned unchanged.
    """
    try:
        match media_type:
            case "image/jpeg":
                return b"".join(_jpeg_picture(data))
            case "image/png":
                return b"".join(_png_picture(data))
            case "image/webp":
                return _webp_picture(data)
            case _:
                return data
    except ValueError:
        return b""  # malformed


def _jpeg_picture(data: bytes) -> Iterator[bytes]:
    """Yield the segments of a JPEG that its picture needs, up to its end; ITU T.81, annex B."""
    orientation = _UPRIGHT
    yield _JPEG
    for kind, body, segment in _segments(data):
        if kind == _APP1 and body.startswith(_EXIF):
            orientation = _orientation(body[len(_EXIF) :])
        elif kind in _JPEG_SEGMENTS:
            if orientation != _UPRIGHT:
                yield _segment(_APP1, _EXIF + _orientation_exif(orientation))
                orientation = _UPRIGHT
            yield segment
        elif kind == _APP0 and body.startswith(_JFIF):
            # Drop the thumbnail, which may show what was cropped: set both its dimensions to 0.
            yield _segment(kind, body[:_JFIF_BYTES].ljust(_JFIF_BYTES, b"\0") + b"\0\0")
        elif kind == _APP14 and body.startswith(_ADOBE):
            yield _segment(kind, body[:_ADOBE_BYTES])


def _segments(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield each segment's kind, body and full bytes; those of a scan include its image data."""
    at = len(_JPEG)
    for _ in range(MAX_PARTS):
        if data[at : at + 2] == b"\xff\xff":
            at += 1  # any number of fill bytes may precede a marker
            continue
        if data[at : at + 2] == _END:
            yield _ENDS, b"", _END
            return
        end = at + 2 + _big(data[at + 2 : at + 4])
        body = data[at + 4 : end]
        if data[at : at + 1] != b"\xff" or len(body) != end - at - 4:
            break
        kind = data[at + 1]
        if kind == _SCAN:
            marker = _MARKER.search(data, end)
            end = marker.start() if marker else len(data)
        yield kind, body, data[at:end]
        if end == len(data) and kind == _SCAN:
            return  # truncated
        at = end
    raise ValueError(_BROKEN)


def _segment(kind: int, body: bytes) -> bytes:
    return bytes((0xFF, kind)) + (len(body) + 2).to_bytes(2, "big") + body


def _png_picture(data: bytes) -> Iterator[bytes]:
    """Yield the chunks of a PNG that its picture needs, up to its end; PNG specification, 5.3."""
    orientation = _UPRIGHT
    yield _PNG
    for kind, body, chunk in _png_chunks(data):
        if kind == b"eXIf":
            orientation = _orientation(body)
        elif kind in _PNG_CHUNKS:
            if kind == b"IDAT" and orientation != _UPRIGHT:
                exif = b"eXIf" + _orientation_exif(orientation)
                yield (len(exif) - 4).to_bytes(4, "big") + exif + crc32(exif).to_bytes(4, "big")
                orientation = _UPRIGHT
            yield chunk


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield each chunk's kind, body and full bytes, up to the end of the picture."""
    at = len(_PNG)
    for _ in range(MAX_PARTS):
        kind, size = data[at + 4 : at + 8], _big(data[at : at + 4])
        chunk = data[at : at + 12 + size]
        if len(chunk) != 12 + size:
            break
        yield kind, chunk[8:-4], chunk
        if kind == b"IEND":
            return
        at += len(chunk)
    raise ValueError(_BROKEN)


def _webp_picture(data: bytes) -> bytes:
    """Return a WebP with only the chunks that its picture needs; RFC 9649, 2.3."""
    orientation = _UPRIGHT
    chunks: list[bytes] = []
    for kind, body in _webp_chunks(data):
        if kind == b"VP8X":
            chunks.append(_chunk(kind, bytes((body[0] & ~_METADATA_FLAGS,)) + body[1:]))
        elif kind == b"EXIF":
            orientation = _orientation(body.removeprefix(_EXIF))
        elif kind == _FRAME:
            frame_chunks = (
                _chunk(*chunk) for chunk in _chunks(body[_FRAME_HEAD:]) if chunk[0] in _WEBP_CHUNKS
            )
            chunks.append(_chunk(kind, body[:_FRAME_HEAD] + b"".join(frame_chunks)))
        elif kind in _WEBP_CHUNKS:
            chunks.append(_chunk(kind, body))
    if orientation != _UPRIGHT and chunks and chunks[0].startswith(b"VP8X"):
        chunks[0] = chunks[0][:8] + bytes((chunks[0][8] | _EXIF_FLAG,)) + chunks[0][9:]
        chunks.append(_chunk(b"EXIF", _orientation_exif(orientation)))
    payload = b"WEBP" + b"".join(chunks)
    return b"RIFF" + len(payload).to_bytes(4, "little") + payload


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    return _chunks(data[12 : 8 + _little(data[4:8])])


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    for _ in range(MAX_PARTS):
        if at >= len(data):
            return
        kind, size = data[at : at + 4], _little(data[at + 4 : at + 8])
        body = data[at + 8 : at + 8 + size]
        if not body or len(body) != size:
            raise ValueError(_BROKEN)
        yield kind, body
        at += 8 + size + size % 2
    raise ValueError(_BROKEN)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return kind + len(body).to_bytes(4, "little") + body + b"\0" * (len(body) % 2)


def _big(piece: bytes) -> int:
    return int.from_bytes(piece, "big")


def _little(piece: bytes) -> int:
    return int.from_bytes(piece, "little")


# --- orientation ---------------------------------------------------------------------------------


def _orientation(exif: bytes) -> int:
    """Return the orientation in a picture's Exif data; TIFF 6.0, section 2."""
    order = "big" if exif[:4] == b"MM\0*" else "little"
    if order == "little" and exif[:4] != b"II*\0":
        return _UPRIGHT
    start = int.from_bytes(exif[4:8], order)
    tags = min(int.from_bytes(exif[start : start + 2], order), _MAX_TAGS)
    for number in range(tags):
        entry = exif[start + 2 + number * _ENTRY :][:_ENTRY]
        if int.from_bytes(entry[:2], order) == _ORIENTATION:
            value = int.from_bytes(entry[8:10], order)
            is_valid = int.from_bytes(entry[2:4], order) == _SHORT and value <= _MAX_ORIENTATION
            return value if is_valid and value else _UPRIGHT
    return _UPRIGHT


def _orientation_exif(value: int) -> bytes:
    """Return Exif data with nothing but an orientation."""
    tags, values = 1, 1
    entry = (_ORIENTATION, _SHORT, values, value)
    return struct.pack(">4sIHHHIHxxI", b"MM\0*", _HEAD_BYTES, tags, *entry, 0)
