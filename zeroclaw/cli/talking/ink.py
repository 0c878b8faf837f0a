"""How text looks on this screen: colours where they are wanted, rows counted where it is one."""

import unicodedata

from zeroclaw.value import Value

_WIDE = frozenset("WF")


class Ink(Value):
    """What the screen can do.

    Attributes:
        moves: The cursor can be moved; without it text is only ever appended.
        colours: Colours are wanted; see no-color.org.
        columns: Width in cells.
        rows: Height.
    """

    moves: bool
    colours: bool
    columns: int = 80
    rows: int = 24

    def dim(self, text: str) -> str:
        """Return a text in the background."""
        return f"\x1b[2m{text}\x1b[22m" if self.colours else text

    def bold(self, text: str) -> str:
        """Return a text that stands out."""
        return f"\x1b[1m{text}\x1b[22m" if self.colours else text

    def badge(self, text: str) -> str:
        """Return a text in inverted colours, which no text of a model has."""
        return f"\x1b[7m {text} \x1b[27m" if self.colours else text

    def warm(self, text: str) -> str:
        """Return a text that asks for something."""
        return f"\x1b[33m{text}\x1b[39m" if self.colours else text

    def clear_line(self) -> str:
        """Return what takes the line of the cursor away."""
        return "\r\x1b[K" if self.moves else ""

    def erase(self, text: str) -> str | None:
        """Return what takes a text away that ends at the cursor; None when it is out of reach."""
        up = self._rows_of(text) - 1
        if not self.moves or up >= self.rows - 1:
            return None
        return f"\r\x1b[{up}A\x1b[J" if up else "\r\x1b[J"

    def _rows_of(self, text: str) -> int:
        return sum(self._rows_of_line(line) for line in text.split("\n"))

    def _rows_of_line(self, line: str) -> int:
        cells = sum(_cells(sign) for sign in line.expandtabs())
        return max(1, -(-cells // self.columns))


def _cells(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in _WIDE else 1
