"""Reads the text of a PDF and the metadata of an image, without decoding its pixels.

A PDF is a drawing program, and a small one can expand to gigabytes or never end. So the parent calls
this only in a process with limited memory and time. A page that needs more ends the process, and the
parent reports it.

The answer omits the location of a picture, which people who send one rarely mean to share.
"""

import io

from zeroclaw.readers.replies import ReadRequest, Reply

MAX_CHARS = 400_000
"""Characters of one page; a page of a book has 3,000."""
TITLE_CHARS = 200
MISSING = "the reader for {} is not installed: install the extra `attachments` and start again"


def read_pdf(data: bytes, request: ReadRequest) -> Reply:
    """Return the text of one page, and the number of pages."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError
    except ImportError:
        return Reply(failed=MISSING.format("PDFs"))
    try:
        document = PdfReader(io.BytesIO(data))
        if document.is_encrypted and not document.decrypt(""):
            return Reply(failed="it is encrypted, and opens only with its password")
        count = len(document.pages)
        if request.page > count:
            return Reply(failed=f"page: {request.page} is past the end, it has {count:,} pages")
        text = document.pages[request.page - 1].extract_text()
        title = _title(document.metadata.title if document.metadata else None)
    except (DependencyError, FileNotDecryptedError):
        return Reply(failed="it is encrypted in a way that can't be read here")
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        # The errors that malformed files cause in the library; any other ends the process.
        return Reply(failed=f"it is damaged, or no PDF at all ({type(error).__name__})")
    hint = (
        f"; read on with page {request.page + 1}" if request.page < count else "; this is the last"
    )
    size = f"{len(text):,} characters" if text.strip() else "no text, it may be a picture"
    cut = f", the first {MAX_CHARS:,} shown" if len(text) > MAX_CHARS else ""
    summary = f"{title}page {request.page} of {count}: {size}{cut}{hint}"
    return Reply(about=summary, text=text[:MAX_CHARS])


def _title(title: str | None) -> str:
    line = " ".join((title or "").split()).replace("`", "'")[:TITLE_CHARS]
    return f"title `{line}`, " if line else ""


# --- images --------------------------------------------------------------------------------------


FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "TIFF")
VALUE_CHARS = 100

# Tag numbers of Exif 2.32, tables 4 and 7.
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


def read_picture(data: bytes, request: ReadRequest) -> Reply:  # noqa: ARG001  every reader's
    """Return an image's format, size and camera metadata."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        return Reply(failed=MISSING.format("images"))
    # The pixels are never decoded, so their number does not matter.
    Image.MAX_IMAGE_PIXELS = None
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            summary = f"{image.format} image, {image.width} x {image.height} pixels, {image.mode}"
            # Otherwise the library searches after the pixels, and decodes them on the way.
            has_exif = image.format != "PNG" or "exif" in image.info
            exif = image.getexif() if has_exif else Image.Exif()
            inner = exif.get_ifd(_EXIF_IFD)
            values = [(name, exif.get(tag)) for tag, name in _TAGS.items()]
            values += [(name, inner.get(tag)) for tag, name in _EXIF_TAGS.items()]
            values.append(("to be turned", _TURNED.get(exif.get(_ORIENTATION, 1))))
            if exif.get_ifd(_GPS_IFD):
                values.append(("location", "it holds one, which is not shown"))
    except UnidentifiedImageError:
        return Reply(failed="it is damaged, or no image at all")
    except (OSError, ValueError, SyntaxError, KeyError, TypeError, AttributeError, IndexError) as e:
        # The errors that malformed headers cause in the library; any other ends the process.
        return Reply(failed=f"it is damaged ({type(e).__name__})")
    lines = [f"{name}: {_value(value)}" for name, value in values if value is not None]
    return Reply(about=summary, text="\n".join(lines))


def _value(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return " ".join(text.replace("\0", " ").split())[:VALUE_CHARS]
