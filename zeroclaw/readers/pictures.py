"""Removes metadata from an image and keeps only what its picture needs (pure).

A camera records where and when a picture was taken, and whose camera it is. Programs add comments
and thumbnails that show what was cropped, and a file of another kind may be appended. People who
send a picture rarely mean to send that, and a model's endpoint needs none of it. So the parts that
a decoder needs are copied byte for byte and in order, and the rest is dropped. Of the camera's
metadata, only the orientation is written back.

No pixels are decoded, and each part is visited once, up to a limit on their number.
"""

import re
import struct
from collections.abc import Iterator
from zlib import crc32

from zeroclaw.readers.formats import big, little

MOST_PARTS = 20_000
"""Parts of one image; a PNG of 20 MB in the usual chunks of 8 KiB has 2,500."""
_UPRIGHT, _MOST_TURNED = 1, 8
_ORIENTATION, _SHORT = 0x0112, 3  # a tag and its type; TIFF 6.0, sections 8 and 2
_MOST_TAGS = 1_000
_HEAD_BYTES, _ENTRY = 8, 12
_BROKEN = "it ends too early, or never"

_JPEG = b"\xff\xd8"
_SCAN, _ENDS, _END = 0xDA, 0xD9, b"\xff\xd9"
# ITU T.81, table B.1: frames, tables, restarts, scans. APP0 and APP14 define the colour space.
_DRAWN = frozenset(range(0xC0, 0xD0)) - {0xC8} | {0xD9, 0xDA, 0xDB, 0xDC, 0xDD}
_APP0, _CAMERA, _APP14 = 0xE0, 0xE1, 0xEE
_JFIF, _JFIF_BYTES = b"JFIF\0", 12  # up to its thumbnail; JFIF 1.02
_ADOBE, _ADOBE_BYTES = b"Adobe", 12
_EXIF = b"Exif\0\0"
# Within a scan, 0xFF is followed by 0, by a restart marker, or by another 0xFF.
_MARKER = re.compile(rb"\xff(?=[^\x00\xff\xd0-\xd7])")

_PNG = b"\x89PNG\r\n\x1a\n"
_OF_PNG = frozenset(
    {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT"}
)
_OF_WEBP = frozenset({b"VP8 ", b"VP8L", b"ALPH", b"ANIM"})
_FRAME, _FRAME_HEAD = b"ANMF", 16
_SAYS, _SAYS_CAMERA = 0b0010_1100, 0b0000_1000  # ICC, Exif and XMP; RFC 9649, 2.7.1


def without_metadata(data: bytes, media_type: str) -> bytes:
    """Return an image without its metadata; empty if the data is malformed.

    Args:
        data: The whole image.
        media_type: As recognised from its bytes; data of other types is returned as it is.
    """
    try:
        match media_type:
            case "image/jpeg":
                return b"".join(_of_jpeg(data))
            case "image/png":
                return b"".join(_of_png(data))
            case "image/webp":
                return _of_webp(data)
            case _:
                return data
    except ValueError:
        return b""  # malformed


def _of_jpeg(data: bytes) -> Iterator[bytes]:
    """Yield the segments of a JPEG that its picture needs, up to its end; ITU T.81, annex B."""
    turned = _UPRIGHT
    yield _JPEG
    for kind, body, whole in _segments(data):
        if kind == _CAMERA and body.startswith(_EXIF):
            turned = _turned(body[len(_EXIF) :])
        elif kind in _DRAWN:
            if turned != _UPRIGHT:
                yield _segment(_CAMERA, _EXIF + _turning(turned))
                turned = _UPRIGHT
            yield whole
        elif kind == _APP0 and body.startswith(_JFIF):
            # Drop the thumbnail, which may show what was cropped: set both its dimensions to 0.
            yield _segment(kind, body[:_JFIF_BYTES].ljust(_JFIF_BYTES, b"\0") + b"\0\0")
        elif kind == _APP14 and body.startswith(_ADOBE):
            yield _segment(kind, body[:_ADOBE_BYTES])


def _segments(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield each segment's kind, body and full bytes; those of a scan include its image data."""
    at = len(_JPEG)
    for _ in range(MOST_PARTS):
        if data[at : at + 2] == b"\xff\xff":
            at += 1  # any number of fill bytes may precede a marker
            continue
        if data[at : at + 2] == _END:
            yield _ENDS, b"", _END
            return
        end = at + 2 + big(data[at + 2 : at + 4])
        body = data[at + 4 : end]
        if data[at : at + 1] != b"\xff" or len(body) != end - at - 4:
            break
        kind = data[at + 1]
        if kind == _SCAN:
            found = _MARKER.search(data, end)
            end = found.start() if found else len(data)
        yield kind, body, data[at:end]
        if end == len(data) and kind == _SCAN:
            return  # truncated
        at = end
    raise ValueError(_BROKEN)


def _segment(kind: int, body: bytes) -> bytes:
    return bytes((0xFF, kind)) + (len(body) + 2).to_bytes(2, "big") + body


def _of_png(data: bytes) -> Iterator[bytes]:
    """Yield the chunks of a PNG that its picture needs, up to its end; PNG specification, 5.3."""
    at, turned = len(_PNG), _UPRIGHT
    yield _PNG
    for _ in range(MOST_PARTS):
        kind, size = data[at + 4 : at + 8], big(data[at : at + 4])
        whole = data[at : at + 12 + size]
        if len(whole) != 12 + size:
            raise ValueError(_BROKEN)
        if kind == b"eXIf":
            turned = _turned(whole[8:-4])
        elif kind in _OF_PNG:
            if kind == b"IDAT" and turned != _UPRIGHT:
                said = b"eXIf" + _turning(turned)
                yield (len(said) - 4).to_bytes(4, "big") + said + crc32(said).to_bytes(4, "big")
                turned = _UPRIGHT
            yield whole
        if kind == b"IEND":
            return
        at += 12 + size
    raise ValueError(_BROKEN)


def _of_webp(data: bytes) -> bytes:
    """Return a WebP with only the chunks that its picture needs; RFC 9649, 2.3."""
    turned = _UPRIGHT
    kept: list[bytes] = []
    for kind, body in _chunks(data[12 : 8 + little(data[4:8])]):
        if kind == b"VP8X":
            kept.append(_chunk(kind, bytes((body[0] & ~_SAYS,)) + body[1:]))
        elif kind == b"EXIF":
            turned = _turned(body.removeprefix(_EXIF))
        elif kind == _FRAME:
            drawn = (_chunk(*one) for one in _chunks(body[_FRAME_HEAD:]) if one[0] in _OF_WEBP)
            kept.append(_chunk(kind, body[:_FRAME_HEAD] + b"".join(drawn)))
        elif kind in _OF_WEBP:
            kept.append(_chunk(kind, body))
    if turned != _UPRIGHT and kept and kept[0].startswith(b"VP8X"):
        kept[0] = kept[0][:8] + bytes((kept[0][8] | _SAYS_CAMERA,)) + kept[0][9:]
        kept.append(_chunk(b"EXIF", _turning(turned)))
    drawn_bytes = b"WEBP" + b"".join(kept)
    return b"RIFF" + len(drawn_bytes).to_bytes(4, "little") + drawn_bytes


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    for _ in range(MOST_PARTS):
        if at >= len(data):
            return
        kind, size = data[at : at + 4], little(data[at + 4 : at + 8])
        body = data[at + 8 : at + 8 + size]
        if not body or len(body) != size:
            raise ValueError(_BROKEN)
        yield kind, body
        at += 8 + size + size % 2
    raise ValueError(_BROKEN)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return kind + len(body).to_bytes(4, "little") + body + b"\0" * (len(body) % 2)


# --- orientation ---------------------------------------------------------------------------------


def _turned(exif: bytes) -> int:
    """Return the orientation in a picture's Exif data; TIFF 6.0, section 2."""
    order = "big" if exif[:4] == b"MM\0*" else "little"
    if order == "little" and exif[:4] != b"II*\0":
        return _UPRIGHT
    start = int.from_bytes(exif[4:8], order)
    tags = min(int.from_bytes(exif[start : start + 2], order), _MOST_TAGS)
    for number in range(tags):
        entry = exif[start + 2 + number * _ENTRY :][:_ENTRY]
        if int.from_bytes(entry[:2], order) == _ORIENTATION:
            value = int.from_bytes(entry[8:10], order)
            is_one = int.from_bytes(entry[2:4], order) == _SHORT and value <= _MOST_TURNED
            return value if is_one and value else _UPRIGHT
    return _UPRIGHT


def _turning(value: int) -> bytes:
    """Return Exif data with nothing but an orientation."""
    tags, values = 1, 1
    said = (_ORIENTATION, _SHORT, values, value)
    return struct.pack(">4sIHHHIHxxI", b"MM\0*", _HEAD_BYTES, tags, *said, 0)
