"""Turn Markdown into Discord's, and messages into what the API takes.

Discord reads most of Markdown itself (support.discord.com, "Markdown Text 101", read 2026-11). Here
tables become code blocks, headings below the third become bold, fences of tildes become backticks,
and `||`, by which a text would hide what stands between, is shown as it is. Each line is looked at
once, by patterns without nested repetition, so the time is that of the length.
"""

import re
from collections.abc import Iterator, Sequence

from channels._remote.limits import cut, units
from channels._remote.tables import drawn, table_end
from zeroclaw import Rendered, without_markup

MOST_UNITS = 2000
"""Create Message: up to 2000 characters, read 2026-11. Held in UTF-16 units, the strictest count."""
_DROPPED = re.compile("[\x00-\x08\x0b-\x1f\x7f\u2028\u2029]")
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})([^`\n]*)")
_DEEP_HEADING = re.compile(r" {0,3}#{4,6}[ \t]+(.*)")
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


def escaped(text: str) -> str:
    """Return a text that Discord shows letter by letter."""
    return _MARKS.sub(r"\\\1", text)


def plainly(text: str) -> str:
    """Return a text without markup, as a message takes it, even where the escapes have no room."""
    shown = escaped(text)
    return shown if units(shown) <= MOST_UNITS else cut(_LEFT.sub("", text), MOST_UNITS)


# --- line by line ----------------------------------------------------------------------------------


def _lines(lines: Sequence[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if (fence := _FENCE.fullmatch(line)) is not None:
            end = _fence_end(lines, at + 1, fence[1])
            yield from _block(lines[at + 1 : end], fence[2].strip())
            at = end + 1
        elif (end := table_end(lines, at)) > at:
            # All of it is passed by, drawn or not: its rows are not looked through once more.
            table = drawn(lines[at:end])
            yield from _block(table, "") if table else map(_shown, lines[at:end])
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
