"""Turn Markdown into Discord's, and messages into what the API takes.

Discord reads most of Markdown itself (support.discord.com, "Markdown Text 101", read 2026-11). Here
tables become code blocks, headings below the third become bold, fences of tildes become backticks,
and `||`, by which a text would hide what stands between, is shown as it is. Each line is looked at
once, by patterns without nested repetition, so the time is that of the length.
"""

import re
from collections.abc import Iterator, Sequence
from unicodedata import east_asian_width

from zeroclaw import CheckedReceipt, Rendered, without_markup

MOST_UNITS = 2000
"""Create Message: up to 2000 characters, read 2026-11. Held in UTF-16 units, the strictest count."""
MOST_TABLE_ROWS, MOST_CELLS, MOST_CELL_CHARS = 200, 20, 60
"""A larger table is left as it was written."""
MOST_RECEIPTS = 25
"""Buttons of one message: five rows of five (Component Reference, read 2026-11)."""
MOST_LABEL_UNITS = 80

_DROPPED = re.compile("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029]")
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})([^`\n]*)")
_DEEP_HEADING = re.compile(r" {0,3}#{4,6}[ \t]+(.*)")
_ROW = re.compile(r"[ \t]{0,3}\|.*")
_RULE = re.compile(r"[ \t]{0,3}\|?[ \t:|-]*-[ \t:|-]*")
_CODE = re.compile(r"((?<!`)(`{1,3})(?!`).+?(?<!`)\2(?!`))")
_IMAGE = re.compile(r"!(?=\[[^\]\n]{0,200}\]\(https?://)")
# Discord hides where a link leads in more ways than one, and what is screened must be what is read: all
# but the plain form is shown as it was written. In code too, for where that ends is Discord's to say.
_OTHER_LINK = re.compile(
    r"\]\((?=\s{0,20}<?(?:https?|discord|mailto|tel|sms):)(?!https?://[^\s()<>\\]*\))"
)
# A server's own sign may be a picture of nothing.
_EMOJI = re.compile(r"<a?:\w{2,32}:\d{1,25}>")
_MARKS = re.compile(r"([\\*_~`|>#\[\]()<@-])")
_LEFT = re.compile(r"[\\*_~`|>#\[\]<@]")


def markdown(text: str) -> Rendered:
    """Return a text as Discord takes it; the plain form has its words alone."""
    clean = _DROPPED.sub("", text.replace("\r\n", "\n"))
    body = _OTHER_LINK.sub("]\\(", "\n".join(_lines(clean.split("\n")))).strip()
    return Rendered(body=body, plain=without_markup(_EMOJI.sub("", body)).strip())


def measure(rendered: Rendered) -> int:
    """Return the length in UTF-16 units."""
    return units(rendered.body)


def units(text: str) -> int:
    """Return a length in UTF-16 units, in which an emoji counts as two."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, most: int) -> str:
    """Return as much of a text as fits so many units, with a sign that some is missing."""
    if units(text) <= most:
        return text
    short = text[: max(most - 1, 0)]
    while short and units(short) > most - 1:
        short = short[:-1]
    return f"{short}…"


def escaped(text: str) -> str:
    """Return a text that Discord shows letter by letter."""
    return _MARKS.sub(r"\\\1", text)


def plainly(text: str) -> str:
    """Return a text without markup, as a message takes it, even where the escapes have no room."""
    shown = escaped(text)
    return shown if units(shown) <= MOST_UNITS else cut(_LEFT.sub("", text), MOST_UNITS)


def receipt_buttons(receipts: Sequence[CheckedReceipt]) -> list[list[tuple[str, str]]]:
    """Return rows of labels and tokens; a button is what no text of the model's can draw."""
    shown = receipts[:MOST_RECEIPTS]
    a_row = 1 if len(shown) <= 5 else 5  # noqa: PLR2004  rows of a message
    buttons = [
        (cut(f"{'🕓' if one.earlier else '✅'} {one.line()}", MOST_LABEL_UNITS), one.token)
        for one in shown
    ]
    return [buttons[at : at + a_row] for at in range(0, len(buttons), a_row)]


# --- line by line ----------------------------------------------------------------------------------


def _lines(lines: Sequence[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if (fence := _FENCE.fullmatch(line)) is not None:
            end = _fence_end(lines, at + 1, fence[1])
            yield from _block(lines[at + 1 : end], fence[2].strip())
            at = end + 1
        elif (end := _table_end(lines, at)) > at:
            rows = [_cells(line) for line in lines[at:end]] if end - at <= MOST_TABLE_ROWS else []
            # All of it is passed by, drawn or not: its rows are not looked through once more.
            yield from _block(_table(rows), "") if _is_small(rows) else map(_shown, lines[at:end])
            at = end
        else:
            yield _shown(line)
            at += 1


def _fence_end(lines: Sequence[str], at: int, mark: str) -> int:
    """Return the line that closes a fence, or the end of the text."""
    while at < len(lines):
        closing = lines[at].strip()
        if len(closing) >= len(mark) and not closing.strip(mark[0]):
            break
        at += 1
    return at


def _block(lines: Sequence[str], language: str) -> Iterator[str]:
    """Return a code block; three backticks within would end it, so they are parted."""
    yield f"```{language}"
    for line in lines:
        yield line.replace("```", "`\u200b`\u200b`")
    yield "```"


def _shown(line: str) -> str:
    """Return a line of text."""
    if (heading := _DEEP_HEADING.fullmatch(line)) is not None:
        line = f"**{heading[1].rstrip(' #')}**"
    line = _IMAGE.sub("", line)
    if "||" not in line:
        return line
    # What stands in backticks hides nothing, and an escape would be seen there.
    pieces = _CODE.split(line)  # of three: what is no code, what is, and its backticks
    shown = (
        pieces[at].replace("|", "\\|") if at % 3 == 0 else pieces[at] for at in range(len(pieces))
    )
    return "".join(one for at, one in enumerate(shown) if at % 3 < 2)  # noqa: PLR2004


# --- tables ----------------------------------------------------------------------------------------


def _table_end(lines: Sequence[str], at: int) -> int:
    """Return the line after a table that begins here; the same line where there is none."""
    if at + 1 >= len(lines) or not _ROW.fullmatch(lines[at]) or not _RULE.fullmatch(lines[at + 1]):
        return at
    end = at + 2
    while end < len(lines) and _ROW.fullmatch(lines[end]):
        end += 1
    return end


def _is_small(rows: Sequence[Sequence[str]]) -> bool:
    """Whether a table can be drawn; one of too many rows comes as none."""
    return bool(rows) and all(
        len(row) <= MOST_CELLS and all(len(cell) <= MOST_CELL_CHARS for cell in row) for row in rows
    )


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _parted(line.strip().strip("|"))]


def _parted(line: str) -> list[str]:
    return re.split(r"(?<!\\)\|", line)


def _table(found: Sequence[list[str]]) -> list[str]:
    """Return a table whose columns stand below each other."""
    head, _, *rows = found
    count = max(len(row) for row in (head, *rows))
    filled = [[*row, *[""] * (count - len(row))] for row in (head, *rows)]
    widths = [max(_width(row[column]) for row in filled) for column in range(count)]
    drawn = ["  ".join(_padded(*one) for one in zip(row, widths, strict=True)) for row in filled]
    rule = "  ".join("-" * max(width, 1) for width in widths)
    return [line.rstrip() for line in (drawn[0], rule, *drawn[1:])]


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - _width(cell))


def _width(cell: str) -> int:
    """Return how many columns a cell takes; ideographs and most emoji take two."""
    return len(cell) if cell.isascii() else sum(1 + (east_asian_width(one) in "WF") for one in cell)
