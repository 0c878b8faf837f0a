"""Reads what an image says about itself, without unfolding its pixels.

Where it was taken is left out: whoever sends a picture into a chat rarely means to send that.
"""

import io

from zeroclaw.readers.replies import Asked, Reply

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "TIFF")
VALUE_CHARS = 100
MISSING = "the reader for images is not installed: install the extra `attachments` and start again"

# Exif 2.32, tables 4 and 7; numbers of tags as the standard gives them.
_EXIF_IFD, _GPS_IFD = 0x8769, 0x8825
_TAGS = {0x010F: "camera make", 0x0110: "camera model", 0x0131: "software", 0x0132: "changed at"}
_EXIF_TAGS = {
    0x9003: "taken at",
    0x829A: "exposure in seconds",
    0x829D: "f-number",
    0x8827: "ISO",
    0x920A: "focal length in mm",
    0xA434: "lens",
}
_TURNED = {3: "upside down", 6: "a quarter to the right", 8: "a quarter to the left"}
_ORIENTATION = 0x0112


def read_picture(data: bytes, asked: Asked) -> Reply:  # noqa: ARG001  every reader's
    """Return an image's format, size and what its camera wrote."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        return Reply(failed=MISSING)
    # Its pixels are never unfolded, so however many there are costs nothing.
    Image.MAX_IMAGE_PIXELS = None
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            about = f"{image.format} image, {image.width} x {image.height} pixels, {image.mode}"
            # Else the library looks for it behind the pixels, and unfolds them on the way.
            is_there = image.format != "PNG" or "exif" in image.info
            exif = image.getexif() if is_there else Image.Exif()
            inner = exif.get_ifd(_EXIF_IFD)
            found = [(name, exif.get(tag)) for tag, name in _TAGS.items()]
            found += [(name, inner.get(tag)) for tag, name in _EXIF_TAGS.items()]
            found.append(("to be turned", _TURNED.get(exif.get(_ORIENTATION, 1))))
            if exif.get_ifd(_GPS_IFD):
                found.append(("location", "it holds one, which is not shown"))
    except UnidentifiedImageError:
        return Reply(failed="it is damaged, or no image at all")
    except (OSError, ValueError, SyntaxError, KeyError, TypeError, AttributeError, IndexError) as e:
        # What a header makes the library stumble over; others end the process.
        return Reply(failed=f"it is damaged ({type(e).__name__})")
    said = [f"{name}: {_value(value)}" for name, value in found if value is not None]
    return Reply(about=about, text="\n".join(said))


def _value(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return " ".join(text.replace("\0", " ").split())[:VALUE_CHARS]
