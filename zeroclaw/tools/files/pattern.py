r"""Finds out whether a line holds a pattern, in time that grows only with the line.

The standard library's matcher goes back and tries again, so a model can write a pattern that takes
years, and it holds the interpreter's lock while it does. This one follows all possibilities at
once (Thompson 1968): the pattern becomes a graph of states, and each letter leads from one set of
states to the next. Sets that were met before are remembered.

It knows what is needed to search code: letters, `.`, `[a-z]`, `[^…]`, `\d \w \s` and their
opposites, `\b`, `^`, `$`, `( )`, `|`, `* + ? {m,n}`. It has no back-references and looks neither
ahead nor behind, and it only answers yes or no.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Never

MOST_STATES = 2_000
MOST_REPEATS = 200
_MOST_REMEMBERED = 20_000
_MOST_DEPTH = 50

Test = Callable[[str], bool]
_Edge = Literal["start", "end", "boundary", "inside"]
_Kind = Literal["none", "word", "other"]  # of the letter before, or none at the line's start


class PatternInvalid(ValueError):
    """Raised with what is wrong with a pattern."""


@dataclass(slots=True)
class _State:
    """One place in the graph: takes a letter, or demands an edge, or leads on freely."""

    test: Test | None = None
    edge: _Edge | None = None
    out: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the graph by its two ends."""

    first: int
    last: int


_CLASSES: dict[str, Test] = {
    "d": str.isdecimal,
    "D": lambda letter: not letter.isdecimal(),
    "w": lambda letter: letter.isalnum() or letter == "_",
    "W": lambda letter: not (letter.isalnum() or letter == "_"),
    "s": str.isspace,
    "S": lambda letter: not letter.isspace(),
}
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_EDGES: dict[str, _Edge] = {"b": "boundary", "B": "inside"}
_is_word = _CLASSES["w"]


def _anything(letter: str) -> bool:  # noqa: ARG001  a test like the others
    return True


class Pattern:
    """One pattern, ready to be looked for."""

    def __init__(self, source: str, *, ignore_case: bool = False) -> None:
        """Read a pattern.

        Raises:
            PatternInvalid: It can't be read, or is too large.
        """
        reader = _Reader(source, ignore_case=ignore_case)
        whole = reader.whole()
        self._states = reader.states
        self._first = whole.first
        self._last = whole.last
        self._steps: dict[tuple[frozenset[int], _Kind, str], frozenset[int] | None] = {}

    def is_in(self, line: str) -> bool:
        """Tell whether the pattern is anywhere in a line, which is given without its newline."""
        here: frozenset[int] = frozenset((self._first,))
        before: _Kind = "none"
        for letter in line:
            key = (here, before, letter)
            if key in self._steps:
                following = self._steps[key]
            else:
                following = self._step(here, before, letter)
                if len(self._steps) >= _MOST_REMEMBERED:
                    self._steps.clear()
                self._steps[key] = following
            if following is None:
                return True
            here = following
            before = "word" if _is_word(letter) else "other"
        return self._last in self._reach(here, before, "none")

    def _step(self, here: frozenset[int], before: _Kind, letter: str) -> frozenset[int] | None:
        """Take one letter; None says that the pattern was found before it."""
        reached = self._reach(here, before, "word" if _is_word(letter) else "other")
        if self._last in reached:
            return None
        following = {self._first}  # the pattern may begin anywhere
        for number in reached:
            state = self._states[number]
            if state.test is not None and state.test(letter):
                following.update(state.out)
        return frozenset(following)

    def _reach(self, here: frozenset[int], before: _Kind, after: _Kind) -> set[int]:
        """Return all states that can be entered between two letters without taking one."""
        holds = {
            "start": before == "none",
            "end": after == "none",
            "boundary": (before == "word") != (after == "word"),
            "inside": (before == "word") == (after == "word"),
        }
        seen: set[int] = set()
        open_states = list(here)
        while open_states:
            number = open_states.pop()
            if number in seen:
                continue
            seen.add(number)
            state = self._states[number]
            if state.test is None and (state.edge is None or holds[state.edge]):
                open_states.extend(state.out)
        return seen


class _Reader:
    """Builds the graph while it reads, by recursive descent."""

    def __init__(self, source: str, *, ignore_case: bool) -> None:
        self._source = source
        self._at = 0
        self._ignore_case = ignore_case
        self._depth = 0
        self.states: list[_State] = []

    def whole(self) -> _Piece:
        piece = self._choice()
        if self._at < len(self._source):
            self._fail("a `)` without a `(`")
        return piece

    def _fail(self, what: str) -> Never:
        message = f"{what}, at character {self._at + 1}"
        raise PatternInvalid(message)

    def _peek(self) -> str:
        """Return the next letter, or nothing at the end."""
        return self._source[self._at : self._at + 1]

    def _take(self) -> str:
        letter = self._peek()
        self._at += len(letter)
        return letter

    def _takes(self, letter: str) -> bool:
        if self._peek() != letter:
            return False
        self._at += 1
        return True

    def _add(self, test: Test | None = None, edge: _Edge | None = None) -> int:
        if len(self.states) >= MOST_STATES:
            message = "the pattern is too large"
            raise PatternInvalid(message)
        self.states.append(_State(test=test, edge=edge))
        return len(self.states) - 1

    def _link(self, number: int, *to: int) -> None:
        self.states[number].out.extend(to)

    def _choice(self) -> _Piece:
        pieces = [self._sequence()]
        while self._takes("|"):
            pieces.append(self._sequence())
        if len(pieces) == 1:
            return pieces[0]
        first, last = self._add(), self._add()
        for piece in pieces:
            self._link(first, piece.first)
            self._link(piece.last, last)
        return _Piece(first, last)

    def _sequence(self) -> _Piece:
        first = last = self._add()
        while self._peek() not in {"", "|", ")"}:
            piece = self._repeated()
            self._link(last, piece.first)
            last = piece.last
        return _Piece(first, last)

    def _repeated(self) -> _Piece:
        began = self._at
        piece = self._atom()
        bounds = self._bounds()
        if bounds is None:
            return piece
        least, most = bounds
        after = self._at
        if self._peek() in {"*", "+", "?"}:
            self._fail("a repeat of a repeat")
        # The first copy is read already; each further one is read again from the source.
        copies = [piece]
        for _ in range(max(least, 1 if most is None else most) - 1):
            self._at = began
            copies.append(self._atom())
        self._at = after
        return self._chain(copies, least, most)

    def _chain(self, copies: list[_Piece], least: int, most: int | None) -> _Piece:
        first, last = self._add(), self._add()
        before = first
        for number, copy in enumerate(copies if most != 0 else []):
            if number >= least:
                self._link(before, last)
            self._link(before, copy.first)
            before = copy.last
        self._link(before, last)
        if most is None:
            self._link(before, copies[-1].first)
        return _Piece(first, last)

    def _bounds(self) -> tuple[int, int | None] | None:
        match self._peek():
            case "*":
                bounds = (0, None)
            case "+":
                bounds = (1, None)
            case "?":
                bounds = (0, 1)
            case "{":
                return self._braces()
            case _:
                return None
        self._at += 1
        return bounds

    def _braces(self) -> tuple[int, int | None] | None:
        """Read `{m}`, `{m,}`, `{,n}` or `{m,n}`; any other brace is a letter."""
        end = self._source.find("}", self._at)
        least, comma, most = self._source[self._at + 1 : max(end, self._at)].partition(",")
        if not (f"{least}{most}".isdecimal() and f"{least}{most}".isascii()):
            return None
        self._at = end + 1
        low = int(least or "0")
        high = (int(most) if most else None) if comma else low
        if max(low, high or 0) > MOST_REPEATS or (high is not None and high < low):
            self._fail(f"a repeat must rise and be at most {MOST_REPEATS}")
        return low, high

    def _atom(self) -> _Piece:
        letter = self._take()
        if letter == "(":
            return self._group()
        edge = self._edge(letter)
        if edge is not None:
            return self._between(edge)
        return self._one(self._test(letter))

    def _edge(self, letter: str) -> _Edge | None:
        edges: dict[str, _Edge] = {"^": "start", "$": "end"}
        if letter == "\\" and self._peek() in _EDGES:
            return _EDGES[self._take()]
        return edges.get(letter)

    def _test(self, letter: str) -> Test:
        if letter in {"*", "+", "?"}:
            self._fail(f"nothing before `{letter}` to repeat")
        match letter:
            case "[":
                return self._set()
            case ".":
                return _anything
            case "\\":
                return self._escape()
            case _:
                return self._exactly(letter)

    def _group(self) -> _Piece:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            self._fail("groups too deep")
        if self._takes("?") and not self._takes(":"):
            self._fail("a group that looks ahead or behind, or has a name or a flag")
        piece = self._choice()
        if not self._takes(")"):
            self._fail("a `(` without its `)`")
        self._depth -= 1
        return piece

    def _one(self, test: Test) -> _Piece:
        first, last = self._add(test), self._add()
        self._link(first, last)
        return _Piece(first, last)

    def _between(self, edge: _Edge) -> _Piece:
        first, last = self._add(edge=edge), self._add()
        self._link(first, last)
        return _Piece(first, last)

    def _exactly(self, wanted: str) -> Test:
        return self._any_case(lambda letter: letter == wanted)

    def _any_case(self, test: Test) -> Test:
        if not self._ignore_case:
            return test
        return lambda letter: test(letter) or test(letter.lower()) or test(letter.upper())

    def _escape(self) -> Test:
        letter = self._take()
        if letter in _CLASSES:
            return _CLASSES[letter]
        return self._exactly(self._escaped(letter))

    def _escaped(self, letter: str) -> str:
        if letter in _LETTERS:
            return _LETTERS[letter]
        if letter == "" or letter.isalnum():
            self._fail("a `\\` before something it means nothing for")
        return letter

    def _set(self) -> Test:
        negated = self._takes("^")
        tests: list[Test] = []
        first = True
        while first or self._peek() != "]":
            first = False
            if self._peek() == "":
                self._fail("a `[` without its `]`")
            tests.append(self._member())
        self._at += 1
        if negated:
            return lambda letter: not any(test(letter) for test in tests)
        return lambda letter: any(test(letter) for test in tests)

    def _member(self) -> Test:
        """Read one letter, class or range of a set."""
        low = self._take()
        if low == "\\":
            low = self._take()
            if low in _CLASSES:
                return _CLASSES[low]
            low = self._escaped(low)
        if self._peek() != "-" or self._source[self._at + 1 : self._at + 2] in {"]", ""}:
            return self._exactly(low)
        self._at += 1
        high = self._take()
        if high == "\\":
            high = self._escaped(self._take())
        if high < low:
            self._fail("a range that falls")
        return self._any_case(lambda letter: low <= letter <= high)
