"""Reads the text of a PDF, and what an image says about itself, without unfolding its pixels.

A PDF is a program for drawing, and a small one can unfold to gigabytes or never end: this is called
only in a process whose memory and time are bounded. What a page holds that is too much for that
ends the process, and its parent says so.

Where a picture was taken is left out: people who send one into a chat rarely mean to send that.
"""

import io

from zeroclaw.readers.replies import Asked, Reply

MOST_CHARS = 400_000
"""Of one page; a page of a book has 3,000."""
TITLE_CHARS = 200
PDF_MISSING = (
    "the reader for PDFs is not installed: install the extra `attachments` and start again"
)


def read_pdf(data: bytes, asked: Asked) -> Reply:
    """Return the text of a page, and how many there are."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError
    except ImportError:
        return Reply(failed=PDF_MISSING)
    try:
        pages = PdfReader(io.BytesIO(data))
        if pages.is_encrypted and not pages.decrypt(""):
            return Reply(failed="it is encrypted, and opens only with its password")
        count = len(pages.pages)
        if asked.page > count:
            return Reply(failed=f"page: {asked.page} is past the end, it has {count:,} pages")
        text = pages.pages[asked.page - 1].extract_text()
        title = _title(pages.metadata.title if pages.metadata else None)
    except (DependencyError, FileNotDecryptedError):
        return Reply(failed="it is encrypted in a way that can't be read here")
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        # What its structure makes the library stumble over; others end the process.
        return Reply(failed=f"it is damaged, or no PDF at all ({type(error).__name__})")
    more = f"; read on with page {asked.page + 1}" if asked.page < count else "; this is the last"
    size = f"{len(text):,} characters" if text.strip() else "no text, it may be a picture"
    cut = f", the first {MOST_CHARS:,} shown" if len(text) > MOST_CHARS else ""
    about = f"{title}page {asked.page} of {count}: {size}{cut}{more}"
    return Reply(about=about, text=text[:MOST_CHARS])


def _title(title: str | None) -> str:
    line = " ".join((title or "").split()).replace("`", "'")[:TITLE_CHARS]
    return f"title `{line}`, " if line else ""


# --- images --------------------------------------------------------------------------------------


FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "TIFF")
VALUE_CHARS = 100
IMAGE_MISSING = (
    "the reader for images is not installed: install the extra `attachments` and start again"
)

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
        return Reply(failed=IMAGE_MISSING)
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
