"""Cut a Markdown text into messages that a channel can carry.

A cut falls between blocks if possible, else between lines, else between words, and only then inside
a word; never inside a visible character. A code fence that is cut is closed, and
opened again with its language. A part that begins with a table row repeats the table's head above
it. A part that begins inside a list loses the indentation that its missing parent gave it, so that
it doesn't read as code.

A cut depends on the text before it and on little of the text after it, so all parts of a growing
text but the last stay the same; a caller that relies on that starts at the last cut.

A `BREAK` in the text begins a new message, whatever room is left.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from copy import copy
from enum import IntEnum

from zeroclaw.delivery.characters import after_character, between_characters
from zeroclaw.value import Struct, Value

Fits = Callable[[str], bool]

BREAK_CHAR = "\x1e"
BREAK = f"\n{BREAK_CHAR}\n"
"""Text below it is another message; the answers of models and tools lose the character."""
CUT_AT_ONCE_CHARS = 512
"""Longest text that is cut on the event loop. A channel renders each text it measures, about ten
per part, and 4,096 characters of markup take Telegram's 10 ms each time."""
# A part shorter than the room divided by this is skipped if there is a later, lesser cut: one short
# line before a long block should not become its own message.
SMALLEST_SHARE = 4
FIRST_GUESS_CHARS = 1024
# The first step from a guess is the guess divided by this.
FIRST_STEP = 8
# Ends are tried with this many significant bits: below 128 characters every one, above that in
# steps of at most 1/64 of the part.
RULER_BITS = 7
# The language is repeated in every part; a longer one is not a language.
LONGEST_LANGUAGE_CHARS = 32
WORD_TRIES = 8
# A longer table head would leave little room for rows, so it is not repeated.
MAX_HEAD_CHARS = 400

# Any number of them, and the empty lines between. Begins with plain text, which is searched for fast.
_BREAKS = re.compile(f"\n{BREAK_CHAR}[\n{BREAK_CHAR}]*")
_FENCE = re.compile(  # also one that begins an item of a list
    r"^((?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*)(`{3,}|~{3,})([^`\n]*)$", re.MULTILINE
)
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
# A word that would be read as markup at the start of a line.
_MARKUP_WORD = re.compile(r"(?:[-+*#>=~`|]+|\d+[.)])(?=\s|$)")
_BORDER = re.compile(r"(?<!\\)\|")


class _Cut(IntEnum):
    """The quality of a cut at the start of a line."""

    NEVER = 0
    LINE = 1
    BLOCK = 2


class Piece(Value):
    """One part of a text.

    Attributes:
        end: Its end in the whole text; the next part begins there, or after the `BREAK` there.
        text: The text since the last cut as it is sent: with fences closed and opened, and without
            white space at the ends; empty when all of it is blank.
    """

    end: int
    text: str


class _Fence(Value):
    start: int
    lead: str
    mark: str
    language: str

    @property
    def quoted(self) -> bool:
        return ">" in self.lead


class _Line(Value):
    """The state at the start of a line.

    Attributes:
        start: Its position in the text.
        cut: The quality of a cut here.
        fence: The fence that is open here, None for none.
        indent: The columns by which a list indents the line; 0 outside of lists.
        hanging: The same for text after the line's own list marker.
        head: The head of the table that the line is a row of, empty for none.
    """

    start: int
    cut: _Cut
    fence: _Fence | None
    indent: int
    hanging: int
    head: str = ""


class _State(Struct, kw_only=True):
    """The reader's state before a line: its position, and its context above."""

    at: int = 0
    fence: _Fence | None = None
    in_list: bool = False
    after_blank: bool = False
    after_fence: bool = False
    above: str = ""
    head: str = ""


def pieces(
    markdown: str, fits: Fits, *, start: int = 0, outline: "Outline | None" = None
) -> tuple[Piece, ...]:
    """Return the parts of the text from `start` on; their texts fit, except a single code point.

    Args:
        markdown: The whole text, even for parts of its end only.
        fits: Whether a channel can carry a text, measured after rendering. It need not be monotone.
            It is called about eight times per part, with texts of about the size of a part.
        start: An earlier piece's `end`; parts before it are not made again.
        outline: The cached lines of a text that grows between calls.
    """
    outline = outline or Outline()
    parts: list[Piece] = []
    while start < len(markdown):
        if markdown.startswith(BREAK, start):
            start += len(BREAK)
        base = start - len(markdown[:start].rpartition(BREAK)[2])
        section = markdown[base:].partition(BREAK)[0]
        outline.read(section)
        at, guess = start - base, FIRST_GUESS_CHARS
        while at < len(section):
            rest = _part_between(outline, at, len(section))
            if base + at == start and fits(rest):
                end, text = len(section), rest
            else:
                end, text = _next_cut(outline, at, guess, fits)
            parts.append(Piece(end=base + end, text=text))
            guess, at = end - at, end
        start = base + len(section)
    return tuple(parts)


def in_one(markdown: str) -> str:
    """Return a text as one message, with a blank line where messages would follow each other."""
    *above, last = _BREAKS.split(markdown)
    return "\n\n".join((*map(closed, filter(None, above)), last))


def closed(markdown: str) -> str:
    """Return a text that others may follow in the same message: the fence that it leaves open is closed.

    Only text after the last `BREAK` counts. A quote ends at the blank line that follows, and its
    fence with it.
    """
    if "```" not in markdown and "~~~" not in markdown:
        return markdown  # mostly; a page asks at each edit
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(markdown, markdown.rfind(BREAK_CHAR) + 1):
        if opening is None or (">" in opening[1] and ">" not in fence[1]):
            opening = fence  # the quote has ended, and its fence with it
        elif _closes(fence[0], opening[2]):
            opening = None
    if opening is None or ">" in opening[1]:
        return markdown
    newline = "" if markdown.endswith("\n") else "\n"
    indentation = re.sub(r"\S", " ", opening[1])
    return f"{markdown}{newline}{indentation}{opening[2]}"


def open_fence(above: str, line: str) -> str:
    """Return the mark of the block of code that is open below a line, given the one above; empty for none."""
    if above:
        return "" if _closes(line, above) else above
    opening = _FENCE.fullmatch(line)
    return opening[2] if opening else ""


# --- reading the text ----------------------------------------------------------------------------


class Outline:
    """A text and its lines; if the text has grown, only the new end is read.

    All lines but the last stay as they were read. The last may have grown, and is read again.

    Attributes:
        text: The text as it was read last.
        starts: The position of each line; sorted, as are the cuts.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._begin()

    def read(self, markdown: str) -> None:
        """Read a text: the same, a longer one, or another."""
        if markdown.startswith(self.text[: self._last.at]):
            self._forget_last()
        else:
            self._begin()
        *complete, last = markdown[self._now.at :].split("\n")
        for text in complete:
            self._read(text)
        self._last = copy(self._now)
        self._read(last)
        self.text = markdown

    def line_at(self, position: int) -> _Line:
        """Return the line that contains the position."""
        return self.lines[bisect_right(self.starts, position) - 1]

    def _begin(self) -> None:
        self.text = ""
        self.lines: list[_Line] = []
        self.starts: list[int] = []
        self.line_cuts: list[int] = []
        self.block_cuts: list[int] = []
        self._now, self._last = _State(), _State()

    def _forget_last(self) -> None:
        self._now = self._last
        if self.lines:
            self.lines.pop()
        for positions in (self.starts, self.line_cuts, self.block_cuts):
            if positions and positions[-1] >= self._now.at:
                positions.pop()

    def _add(self, line: _Line) -> None:
        self.lines.append(line)
        self.starts.append(line.start)
        if line.cut is not _Cut.NEVER:
            self.line_cuts.append(line.start)
        if line.cut is _Cut.BLOCK:
            self.block_cuts.append(line.start)

    def _read(self, text: str) -> None:
        now = self._now
        if now.fence is None:
            if text:
                self._read_prose(text)
            else:
                self._read_empty()
        else:
            self._read_code(text, now.fence)
        now.at += len(text) + 1

    def _read_empty(self) -> None:
        """Read an empty line; a faster form of `_read_prose`, because a text may have thousands."""
        now = self._now
        now.head = now.above = ""
        self.lines.append(_Line(start=now.at, cut=_Cut.NEVER, fence=None, indent=0, hanging=0))
        self.starts.append(now.at)
        now.after_blank, now.after_fence = True, False

    def _read_prose(self, text: str) -> None:
        now = self._now
        opening, item = _FENCE.fullmatch(text), _ITEM.match(text)
        indent = len(text) - len(text.lstrip(" \t"))
        blank = indent == len(text)
        if not blank:
            # A line at the margin ends a list, unless it continues the paragraph above it.
            goes_on = indent > 0 or not now.after_blank
            now.in_list = item is not None or (now.in_list and goes_on)
        begins = opening or _HEADING.match(text)
        block = now.after_blank or now.after_fence or begins
        is_row = "|" in text and not (begins or item or text.lstrip(" ").startswith(">"))
        head = now.head if is_row else ""
        now.head = head or head_of(now.above, text)
        now.above = "" if opening else text
        self._add(
            _Line(
                start=now.at,
                cut=_Cut.NEVER if blank else _Cut.BLOCK if block else _Cut.LINE,
                fence=None,
                indent=indent if now.in_list else 0,
                hanging=0 if not now.in_list else indent if item is None else item.end(),
                head=head,
            )
        )
        now.after_blank, now.after_fence = blank, False
        if opening is not None:
            language = opening[3].strip().partition(" ")[0]
            now.fence = _Fence(
                start=now.at,
                lead=re.sub(r"[^\s>]", " ", opening[1]),
                mark=opening[2],
                language=language if len(language) <= LONGEST_LANGUAGE_CHARS else "",
            )

    def _read_code(self, text: str, fence: _Fence) -> None:
        now = self._now
        closes = _closes(text, fence.mark)
        # An opening or a closing fence alone would be an empty block, so there is no cut next to
        # one.
        opened_above = self.lines[-1].fence is None
        indent = 0 if fence.quoted else len(fence.lead)
        self._add(
            _Line(
                start=now.at,
                cut=_Cut.NEVER if closes or opened_above else _Cut.LINE,
                fence=fence,
                indent=indent,
                hanging=indent,
            )
        )
        if closes:
            now.fence, now.after_fence = None, True


def _closes(line: str, mark: str) -> bool:
    """Whether a line closes the block of code that a fence opened."""
    bare = line.strip(" \t\r>")
    return bare.startswith(mark) and not bare.strip(mark[0])


def head_of(above: str, line: str) -> str:
    """Return two lines as a table head without indentation; empty if they are none.

    Args:
        above: The line with the names of the columns.
        line: The line that would separate it from the rows, such as `|---|--:|`.
    """
    names, rule = above.strip(), line.strip()
    is_rule = "|" in rule and "-" in rule and not rule.strip("|:- \t")
    if not is_rule or "|" not in names or _columns(names) != _columns(rule):
        return ""
    head = f"{names}\n{rule}"
    return head if len(head) <= MAX_HEAD_CHARS else ""


def _columns(row: str) -> int:
    return len(_BORDER.findall(row.removeprefix("|").removesuffix("|"))) + 1


# --- rendering a part ----------------------------------------------------------------------------


def _part_between(outline: Outline, start: int, end: int) -> str:
    """Return the text between two cuts as it is sent."""
    first, last = outline.line_at(start), outline.line_at(end)
    content = outline.text[start:end]
    dedent = first.indent if start == first.start else first.hanging
    if dedent:
        content, dedent = _without_indent(outline, content, first, dedent)
    if first.fence is None:
        content = content.lstrip("\n")
        if first.head and start == first.start:
            content = f"{first.head}\n{content}"
    else:
        lead = first.fence.lead if first.fence.quoted else ""
        content = f"{lead}{first.fence.mark}{first.fence.language}\n{content}"
    torn = first.fence is None and last.fence is not None and last.fence.start < start
    if end == len(outline.text) or last.fence is None or torn:
        # Torn: a line that opens a fence was too long for one part, so this part opens none.
        return content.rstrip()
    lead = last.fence.lead if last.fence.quoted else last.fence.lead[dedent:]
    content = content.removesuffix("\n")
    return f"{content}\n{lead}{last.fence.mark}"


def _without_indent(outline: Outline, content: str, first: _Line, dedent: int) -> tuple[str, int]:
    """Remove up to `dedent` columns of indentation from each line; prose indented less lowers `dedent`.

    Returns:
        The content, and the columns taken from the last line of prose.
    """
    lines: list[str] = []
    number = bisect_right(outline.starts, first.start) - 1
    for text in content.split("\n"):
        line = outline.lines[number]
        indent = len(text) - len(text.lstrip(" \t"))
        if lines and text.strip() and line.fence is None:
            dedent = min(dedent, indent)
        lines.append(text[min(dedent, indent) :])
        number += 1
    return "\n".join(lines), dedent


# --- finding a cut -------------------------------------------------------------------------------


def _next_cut(outline: Outline, start: int, guess: int, fits: Fits) -> tuple[int, str]:
    """Return the next cut, and the part up to it as it is sent."""
    text = outline.text
    room = _room(text, start, guess, lambda end: fits(_part_between(outline, start, end)))
    if room == len(text):
        return room, _part_between(outline, start, room)
    if room > start:
        for end in _good_cuts(outline, start, room):
            part = _part_between(outline, start, end)
            if end == room or fits(part):
                return end, part
        return room, _part_between(outline, start, room)
    # Not even one character fits with its fences around it, so they are left out.
    room = _room(text, start, guess, lambda end: fits(text[start:end].strip()))
    room = max(room, start + 1)
    return room, text[start:room].strip()


def _room(text: str, start: int, guess: int, has_room: Callable[[int], bool]) -> int:
    """Return the furthest end that fits, `start` when none does; approximate for long parts.

    Steps from the guess in growing steps, then bisects, so that no text much longer than the answer
    is ever rendered. Ends are tried on a ruler that is coarser for long parts, because each question
    costs as much as the part is long, and the cut is put between blocks anyway. The ruler begins at
    the start, and text after an end does not change whether it fits, so the answer does not depend
    on later text either.
    """
    low, high = start, len(text) + 1
    size, step = guess, max(guess // FIRST_STEP, 1)
    while (low == start or high > len(text)) and size > 0:
        end = _on_ruler(text, start, size)
        if not has_room(end):
            high, size = end, size - step
        elif end == len(text):
            return end
        else:
            low, size = end, size + step
        step *= 2
    while high - low > 1:
        end = _on_ruler(text, start, (low + high) // 2 - start)
        if end <= low:
            end = _on_ruler(text, start, low - start + _tick(low - start))
        if end <= low:
            end = after_character(text, start, low)
        if end >= high:
            break
        if has_room(end):
            low = end
        else:
            high = end
    return low


def _on_ruler(text: str, start: int, size: int) -> int:
    """Return the last end on the ruler at most `size` characters after the start."""
    return between_characters(text, start, min(start + size - size % _tick(size), len(text)))


def _tick(size: int) -> int:
    """Return the distance between two ends on the ruler at this size."""
    return 1 << max(size.bit_length() - RULER_BITS, 0)


def _good_cuts(outline: Outline, start: int, room: int) -> tuple[int, ...]:
    """Return the last cut of each kind, best first; cuts that leave a tiny part come last."""
    reach = room
    if outline.line_at(room).fence is None:
        # White space at the end of a part is not sent, so it always fits.
        text = outline.text
        while reach < len(text) and text[reach] in " \n":
            reach += 1
    cuts = (
        _last(outline.block_cuts, reach),
        _last(outline.line_cuts, reach),
        _last_word(outline.text, start, reach),
    )
    smallest = start + (room - start) // SMALLEST_SHARE
    large = [cut for cut in cuts if cut > smallest]
    return (*large, *(cut for cut in cuts if start < cut <= smallest))


def _last(cuts: Sequence[int], reach: int) -> int:
    """Return the last of the sorted cuts up to `reach`, 0 for none."""
    number = bisect_right(cuts, reach)
    return cuts[number - 1] if number else 0


def _last_word(text: str, start: int, reach: int) -> int:
    """Return the start of the last word that is safe at the start of a line, 0 for none."""
    for _ in range(WORD_TRIES):
        space = text.rfind(" ", start, reach)
        if space < 0:
            return 0
        if not _MARKUP_WORD.match(text, space + 1):
            return space + 1
        reach = space
    return 0
