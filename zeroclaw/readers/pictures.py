"""Leaves of an image what makes its picture, and nothing that it says beside it (pure).

A camera writes down where and when it was, and whose it is; a program adds comments, thumbnails of
what was cut away, and a file of another kind may hang on the end. People who send a picture rarely
mean to send that, and a model's endpoint needs none of it. So parts that a decoder needs are copied,
byte for byte and in their order, and all else stays behind. Of what a camera wrote one thing is
written anew: how the picture is to be turned.

No pixel is unfolded, and each part is looked at once, up to a bound on how many there may be.
"""

import re
import struct
from collections.abc import Iterator
from zlib import crc32

from zeroclaw.readers.formats import big, little

MOST_PARTS = 20_000
"""Of one image; a PNG of 20 MB in parts of 8 KiB, which most are written in, has 2,500."""
_UPRIGHT, _MOST_TURNED = 1, 8
_ORIENTATION, _SHORT = 0x0112, 3  # of a tag, and of its kind; TIFF 6.0, section 8 and 2
_MOST_TAGS = 1_000
_HEAD_BYTES, _ENTRY = 8, 12
_BROKEN = "it ends too early, or never"

_JPEG = b"\xff\xd8"
_SCAN, _ENDS, _END = 0xDA, 0xD9, b"\xff\xd9"
# ITU T.81, table B.1: frames, tables, restarts, scans. APP0 and APP14 say how colours are meant.
_DRAWN = frozenset(range(0xC0, 0xD0)) - {0xC8} | {0xD9, 0xDA, 0xDB, 0xDC, 0xDD}
_APP0, _CAMERA, _APP14 = 0xE0, 0xE1, 0xEE
_JFIF, _JFIF_BYTES = b"JFIF\0", 12  # up to its thumbnail; JFIF 1.02
_ADOBE, _ADOBE_BYTES = b"Adobe", 12
_EXIF = b"Exif\0\0"
# Within a scan 0xFF is followed by 0, by a restart, or by more of its kind.
_MARKER = re.compile(rb"\xff(?=[^\x00\xff\xd0-\xd7])")

_PNG = b"\x89PNG\r\n\x1a\n"
_OF_PNG = frozenset(
    {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT"}
)
_OF_WEBP = frozenset({b"VP8 ", b"VP8L", b"ALPH", b"ANIM"})
_FRAME, _FRAME_HEAD = b"ANMF", 16
_SAYS, _SAYS_CAMERA = 0b0010_1100, 0b0000_1000  # ICC, Exif and XMP; RFC 9649, 2.7.1


def without_metadata(data: bytes, media_type: str) -> bytes:
    """Return an image without what it says of itself; empty for one that is no such image.

    Args:
        data: All of it.
        media_type: By its bytes; what is no image is returned as it is.
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
        return b""  # it is not built as its kind is


def _of_jpeg(data: bytes) -> Iterator[bytes]:
    """Yield the segments of a JPEG that draw it, up to its end; ITU T.81, annex B."""
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
            # Its thumbnail, for which there are two sizes, may show what was cut away.
            yield _segment(kind, body[:_JFIF_BYTES].ljust(_JFIF_BYTES, b"\0") + b"\0\0")
        elif kind == _APP14 and body.startswith(_ADOBE):
            yield _segment(kind, body[:_ADOBE_BYTES])


def _segments(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield each segment's kind, what it says, and all of it; a scan has its picture behind it."""
    at = len(_JPEG)
    for _ in range(MOST_PARTS):
        if data[at : at + 2] == b"\xff\xff":
            at += 1  # any number of them may fill the room between segments
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
            return  # it was cut short
        at = end
    raise ValueError(_BROKEN)


def _segment(kind: int, body: bytes) -> bytes:
    return bytes((0xFF, kind)) + (len(body) + 2).to_bytes(2, "big") + body


def _of_png(data: bytes) -> Iterator[bytes]:
    """Yield the chunks of a PNG that draw it, up to its end; its specification, 5.3."""
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
    """Return the chunks of a WebP that draw it; RFC 9649, 2.3."""
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


# --- how it is turned ----------------------------------------------------------------------------


def _turned(exif: bytes) -> int:
    """Return how a picture is to be turned, by what its camera wrote; TIFF 6.0, section 2."""
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
    """Return what a camera writes that says nothing else than how its picture is to be turned."""
    tags, values = 1, 1
    said = (_ORIENTATION, _SHORT, values, value)
    return struct.pack(">4sIHHHIHxxI", b"MM\0*", _HEAD_BYTES, tags, *said, 0)
