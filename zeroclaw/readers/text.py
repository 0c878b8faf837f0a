"""Decodes text of unknown encoding, reads mails and tables in it, and returns a part (pure)."""

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from zeroclaw.readers.replies import ReadRequest, Reply
from zeroclaw.text.mail import is_hidden_in_mail, parse_mail, plain_header
from zeroclaw.text.page import readable_page
from zeroclaw.value import Value

# UTF-32 first, because its byte order mark begins with that of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
    (codecs.BOM_UTF8, "utf-8", "UTF-8"),
)
# Windows' default for decades is Latin-1 with letters in place of some controls.
_CODECS = (("utf-8", "UTF-8"), ("cp1252", "Windows-1252, as it seems"))
_TOP_HEADERS = frozenset({"from", "to", "cc", "date", "subject"})
"""Headers of a mail that are shown above its text."""


class Decoded(Value):
    """A text, and the encoding it was decoded from."""

    text: str
    encoding: str


def decode_text(data: bytes) -> Decoded:
    """Decode bytes as text; never fails, because Latin-1 as a last resort accepts any byte."""
    for mark, codec, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(codec, "replace")
            return Decoded(text=text, encoding=name)
    for codec, name in _CODECS:
        with suppress(UnicodeDecodeError):
            return Decoded(text=data.decode(codec), encoding=name)
    return Decoded(text=data.decode("latin-1"), encoding="Latin-1, as it seems")


def read_text(data: bytes, request: ReadRequest) -> Reply:
    """Return part of a text, and how to read on."""
    decoded = decode_text(data)
    return _part(decoded.text, decoded.encoding, request)


def read_mail(data: bytes, request: ReadRequest) -> Reply:
    """Return part of a mail as people read it, and how to read on.

    It begins with sender, recipients, date and subject, and ends with the names of the files and the
    other headers. None of it is verified.
    """
    if any(data.startswith(mark) for mark, _, _ in _BYTE_ORDER_MARKS):  # an editor has saved it
        data = decode_text(data).text.encode()
    mail = parse_mail(data)
    headers = [
        (name, f"{name.title()}: {plain_header(value)}")
        for name, values in mail.headers.items()
        for value in values
    ]
    texts = [
        readable_page(source, leaves_out=is_hidden_in_mail).text if kind == "text/html" else source
        for kind, source in mail.texts()
    ]
    blocks = (
        [line for name, line in headers if name in _TOP_HEADERS],
        texts,
        [f"[file: {part.name}]" for part in mail.parts if part.is_file],
        [line for name, line in headers if name not in _TOP_HEADERS],
    )
    return _part("\n\n".join("\n".join(block) for block in blocks if block), "decoded", request)


def _part(text: str, kind: str, request: ReadRequest) -> Reply:
    total = len(text)
    if request.offset and request.offset >= total:
        return Reply(failed=f"offset: {request.offset} is past the end of {total:,} characters")
    end = min(request.offset + request.limit, total)
    hint = f"; read on with offset {end}" if end < total else "; this is the end"
    summary = f"{kind}; characters {request.offset} to {end} of {total}{hint}"
    return Reply(about=summary, text=text[request.offset : end])


# --- tables, with any delimiter ------------------------------------------------------------------


DELIMITERS = (",", ";", "\t", "|")
CELL_CHARS = 300
MAX_COLUMNS = 200
_SAMPLE_CHARS = 16_384
_SAMPLE_ROWS = 64
# Effectively turns off the library's field size limit; our input is smaller anyway.
_LONGEST_FIELD = 2**31 - 1
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def delimiter_of(text: str) -> str:
    """Return the delimiter that splits most of the first rows into the same number of columns.

    One column does not count. `csv.Sniffer` is not used: its regular expressions take seconds on
    crafted text.
    """
    sample = text[:_SAMPLE_CHARS]
    if len(text) > _SAMPLE_CHARS:
        sample = sample[: sample.rfind("\n") + 1] or sample
    return max(DELIMITERS, key=lambda delimiter: _fit(sample, delimiter))


def _fit(sample: str, delimiter: str) -> tuple[float, int]:
    widths = Counter[int]()
    for row, _ in zip(_rows(sample, delimiter), range(_SAMPLE_ROWS), strict=False):
        widths[len(row)] += 1
    scores = [(count / widths.total(), width) for width, count in widths.items() if width > 1]
    return max(scores, default=(0.0, 1))


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the rows that are not empty."""
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    return (row for row in reader if row)


def read_table(data: bytes, request: ReadRequest) -> Reply:
    """Return some rows of a table with its first row, and how to read on."""
    decoded = decode_text(data)
    delimiter = delimiter_of(decoded.text)
    first: list[str] | None = None
    lines: list[str] = []
    total = widest = shown = 0
    remaining = request.limit
    is_full = False
    for row in _rows(decoded.text, delimiter):
        widest = max(widest, len(row))
        if first is None:
            first = row
            remaining -= len(_line(row))
            continue
        total += 1
        if total <= request.offset or is_full:
            continue
        line = f"{total} | {_line(row)}"
        remaining -= len(line) + 1
        # Show at least one row, however long, so that every call makes progress.
        is_full = shown == request.rows or (bool(lines) and remaining < 0)
        if not is_full:
            lines.append(line)
            shown += 1
    if request.offset and not lines:
        return Reply(failed=f"offset: there are no rows behind {request.offset}, only {total:,}")
    end = request.offset + shown
    hint = f"; read on with offset {end}" if end < total else "; this is the end"
    piece = f"rows {request.offset + 1} to {end}" if shown else "no rows"
    summary = (
        f"{decoded.encoding}, {widest} columns parted by {_NAMES[delimiter]}, {total} rows below the "
        f"first; the first, and {piece}{hint}"
    )
    return Reply(about=summary, text="\n".join([f"row | {_line(first or [])}", *lines]))


def _line(row: list[str]) -> str:
    cells = [_cell(cell) for cell in row[:MAX_COLUMNS]]
    if len(row) > MAX_COLUMNS:
        cells.append(f"[{len(row) - MAX_COLUMNS} more columns]")
    return " | ".join(cells)


def _cell(cell: str) -> str:
    line = " ".join(cell[: CELL_CHARS + 1].split())
    return line if len(cell) <= CELL_CHARS else f"{line[:CELL_CHARS]}…"
