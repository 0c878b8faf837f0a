"""Reads the text of one page of a PDF.

A PDF is a program for drawing, and a small one can unfold to gigabytes or never end: this is called
only in a process whose memory and time are bounded. What a page holds that is too much for that
ends the process, and its parent says so.
"""

import io

from zeroclaw.readers.replies import Asked, Reply

MOST_CHARS = 400_000
"""Of one page; a page of a book has 3,000."""
TITLE_CHARS = 200
MISSING = "the reader for PDFs is not installed: install the extra `attachments` and start again"


def read_pdf(data: bytes, asked: Asked) -> Reply:
    """Return the text of a page, and how many there are."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError
    except ImportError:
        return Reply(failed=MISSING)
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
