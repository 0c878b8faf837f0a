"""Reads text of unknown encoding, mails and tables, and returns a part (pure)."""

import csv
import io
from collections import Counter
from collections.abc import Iterator

from zeroclaw.readers.replies import ReadRequest, Reply
from zeroclaw.text.charset import BYTE_ORDER_MARKS, decode_text
from zeroclaw.text.mail import is_hidden_in_mail, parse_mail, plain_header
from zeroclaw.text.page import readable_page

_TOP_HEADERS = frozenset({"from", "to", "cc", "date", "subject"})
"""Headers of a mail that are shown above its text."""


def read_text(data: bytes, request: ReadRequest) -> Reply:
    """Return part of a text, and how to read on."""
    return _part(*decode_text(data), request)


def read_mail(data: bytes, request: ReadRequest) -> Reply:
    """Return part of a mail as people read it, and how to read on.

    It begins with sender, recipients, date and subject, and ends with the names of the files and the
    other headers. None of it is verified.
    """
    if data.startswith(tuple(BYTE_ORDER_MARKS)):  # an editor has saved it
        data = decode_text(data)[0].encode()
    mail = parse_mail(data)
    headers = [(name, f"{name.title()}: {plain_header(value)}") for name, value in mail.headers]
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
    text, encoding = decode_text(data)
    delimiter = delimiter_of(text)
    first: list[str] | None = None
    lines: list[str] = []
    total = widest = shown = 0
    remaining = request.limit
    is_full = False
    for row in _rows(text, delimiter):
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
        f"{encoding}, {widest} columns parted by {_NAMES[delimiter]}, {total} rows below the "
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
