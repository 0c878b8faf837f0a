"""Makes text of bytes whose encoding nobody says, and cuts a piece of it (pure)."""

import codecs

from zeroclaw.readers.replies import Asked, Reply
from zeroclaw.value import Value

# Four bytes first, for UTF-16's mark is the beginning of UTF-32's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
    (codecs.BOM_UTF8, "utf-8", "UTF-8"),
)


class Decoded(Value):
    """A text, and the encoding that it was taken to have."""

    text: str
    encoding: str


def decoded(data: bytes) -> Decoded:
    """Return bytes as text; never fails, for where all else does every byte is a letter."""
    for mark, codec, name in _MARKS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(codec, "replace")
            return Decoded(text=text, encoding=name)
    try:
        return Decoded(text=data.decode("utf-8"), encoding="UTF-8")
    except UnicodeDecodeError:
        pass
    try:
        # What Windows wrote for decades; Latin-1 with letters where that has controls.
        return Decoded(text=data.decode("cp1252"), encoding="Windows-1252, as it seems")
    except UnicodeDecodeError:
        return Decoded(text=data.decode("latin-1"), encoding="Latin-1, as it seems")


def read_text(data: bytes, asked: Asked) -> Reply:
    """Return a piece of a text, and how to read on."""
    made = decoded(data)
    total = len(made.text)
    if asked.offset and asked.offset >= total:
        return Reply(failed=f"offset: {asked.offset} is past the end of {total:,} characters")
    end = min(asked.offset + asked.limit, total)
    more = f"; read on with offset {end}" if end < total else "; this is the end"
    about = f"{made.encoding}; characters {asked.offset} to {end} of {total}{more}"
    return Reply(about=about, text=made.text[asked.offset : end])
