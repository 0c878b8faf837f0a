"""Turns Markdown into Discord's dialect; pure.

Discord renders most of Markdown itself (support.discord.com, "Markdown Text 101", read 2026-11). This
module turns tables into code blocks, headings below level three into bold text and fences of tildes
into backticks, and escapes `||`, which would hide the text between two of them. Each line is scanned
once, by patterns without nested repetition, so the time is linear.
"""

import re
from collections.abc import Iterator, Sequence

from channels._remote.limits import cut, units
from channels._remote.tables import draw_table, table_end
from zeroclaw import Rendered, without_markup

MAX_UNITS = 2000
"""Create Message: up to 2000 characters, read 2026-11; counted in UTF-16 units, the strictest way."""
_DROPPED = re.compile("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029]")
_FENCE = re.compile(  # also one that begins an item of a list
    r"((?:[ \t]|[-*+][ \t]|\d{1,9}[.)][ \t])*)(`{3,}|~{3,})([^`~\n]*)"
)
_DEEP_HEADING = re.compile(r" {0,3}#{4,6}[ \t]+(.*)")
_CODE = re.compile(r"(\\.|(?<!`)(`{1,3})(?!`).+?(?<!`)\2(?!`))")  # an escaped backtick begins none
_IMAGE = re.compile(r"!(?=\[[^\]\n]{0,200}\]\(https?://)")
# Discord has several link forms that hide the target, but people must read exactly what was screened.
# So every form except the plain one is escaped. Code is no exception, because only Discord knows where
# it sees the end of the code.
_OTHER_LINK = re.compile(
    r"\]\((?=\s{0,20}<?(?i:https?|discord|mailto|tel|sms):)(?!https?://[^\s()<>\\]*\))"
)
# A server's custom emoji, which may be an empty picture.
_EMOJI = re.compile(r"<a?:\w{2,32}:\d{1,25}>")
_MARKS = re.compile(r"([\\*_~`|>#\[\]()<@-])")
_LEFT = re.compile(r"[\\*_~`|>#\[\]<@]")


def markdown(text: str) -> Rendered:
    """Return a text as Markdown for Discord, and without markup as its plain form."""
    clean = _DROPPED.sub("", text.replace("\r\n", "\n"))
    body = _OTHER_LINK.sub("]\\(", "\n".join(_lines(clean.split("\n")))).strip()
    return Rendered(body=body, plain=without_markup(_EMOJI.sub("", body)).strip())


def measure(rendered: Rendered) -> int:
    """Return the length in UTF-16 units."""
    return units(rendered.body)


def escaped(text: str) -> str:
    """Escape a text so that Discord shows it literally."""
    return _MARKS.sub(r"\\\1", text)


def plainly(text: str) -> str:
    """Return a message's content that shows a text literally; if escapes don't fit, drop markup."""
    literal = escaped(text)
    return literal if units(literal) <= MAX_UNITS else cut(_LEFT.sub("", text), MAX_UNITS)


# --- line by line ----------------------------------------------------------------------------------


def _lines(lines: Sequence[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if (fence := _FENCE.fullmatch(line)) is not None:
            end = _fence_end(lines, at + 1, fence[2])
            yield from _block(lines[at + 1 : end], f"{fence[1]}```{fence[3].strip()}")
            at = end + 1
        elif (end := table_end(lines, at)) > at:
            # Skip the whole table, drawn or not, so that no row is scanned twice.
            table = draw_table(lines[at:end])
            yield from _block(table, "```") if table else map(_render_line, lines[at:end])
            at = end
        else:
            yield _render_line(line)
            at += 1


def _fence_end(lines: Sequence[str], at: int, mark: str) -> int:
    """Return the index of the line that closes a fence, or of the end of the text."""
    while at < len(lines):
        closing = lines[at].strip()
        if len(closing) >= len(mark) and not closing.strip(mark[0]):
            break
        at += 1
    return at


def _block(lines: Sequence[str], opening: str) -> Iterator[str]:
    """Yield a code block; zero-width spaces split backtick fences inside, which would end it."""
    yield opening
    for line in lines:
        yield line.replace("```", "`\u200b`\u200b`")
    yield "```"


def _render_line(line: str) -> str:
    """Render a line outside of code blocks."""
    if (heading := _DEEP_HEADING.fullmatch(line)) is not None:
        line = f"**{heading[1].rstrip(' #')}**"
    line = _IMAGE.sub("", line)
    if "||" not in line:
        return line
    # Inline code needs no escapes: `||` hides nothing there, and a backslash would be shown.
    pieces = _CODE.split(line)  # in threes: text, an escape or code, the backticks alone
    pieces[::3] = [piece.replace("|", "\\|") for piece in pieces[::3]]
    return "".join(piece for at, piece in enumerate(pieces) if at % 3 < 2)  # noqa: PLR2004
