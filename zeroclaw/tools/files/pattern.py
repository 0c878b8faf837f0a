r"""Finds the lines of a file that hold a text or an expression, by RE2.

The standard library's matcher goes back and tries again, so a model can write a pattern that takes
years, and it holds the interpreter's lock meanwhile. RE2 looks at each byte once, keeps to the
memory that it is given, and holds no lock, so other conversations go on while it works. It has no
back-references and looks neither ahead nor behind.

A file is searched in blocks of whole lines, so that a search whose caller is gone, or
which has taken all the time it may, ends soon.
"""

from collections.abc import Callable, Iterator

from zeroclaw.value import Value

MAX_MEMORY_BYTES = 1_048_576
"""For the compiled pattern and what is remembered of the text; a pattern that needs more is
refused. The library's default is eight times that."""
BLOCK_BYTES = 16_384
"""Searched in one go. Of a longer line only so much is searched. The worst pattern that fits into
the memory above takes a second for it, an ordinary one some microseconds."""


class PatternInvalid(ValueError):
    """Raised with what is wrong with a pattern."""


class FoundLine(Value):
    """A line that holds the pattern.

    Attributes:
        number: From 1.
    """

    number: int
    text: str


class Pattern:
    """One pattern, compiled."""

    def __init__(self, wanted: str, *, regex: bool = True, ignore_case: bool = False) -> None:
        """Compile it.

        Args:
            wanted: An expression in RE2's syntax, or a text.
            regex: Whether it is an expression.
            ignore_case: Whether `A` finds `a`.

        Raises:
            PatternInvalid: RE2 cannot use it.
        """
        import re2  # with the first search: it takes 3 ms of every start

        options = re2.Options()
        options.max_mem = MAX_MEMORY_BYTES
        options.case_sensitive = not ignore_case
        options.never_nl = True  # a match ends with its line
        options.log_errors = False  # else it writes to standard error
        text = wanted.encode("utf-8", "replace")
        try:
            self._compiled = re2.compile(b"(?m)" + (text if regex else re2.escape(text)), options)
        except re2.error as error:
            raise PatternInvalid(_reason(error)) from None
        finally:
            re2.purge()  # the library remembers 128 patterns, whoever they were for

    def lines(self, data: bytes, go_on: Callable[[], None]) -> Iterator[FoundLine]:
        """Yield the lines of a file that hold the pattern.

        Args:
            data: The file.
            go_on: Called before each block; what it raises ends the search.
        """
        # Bytes that are no UTF-8 would match nothing at all.
        text = data.decode("utf-8", "replace").replace("\r\n", "\n").encode()
        at, number = 0, 1
        while at < len(text):
            go_on()
            end, after = _block(text, at)
            start = at
            while start <= end and (match := self._compiled.search(text, start, end)):
                first = text.rfind(b"\n", start, match.start()) + 1 or start
                last = text.find(b"\n", match.start(), end)
                last = end if last < 0 else last
                number += text.count(b"\n", at, first)
                at = first
                yield FoundLine(number=number, text=text[first:last].decode("utf-8", "replace"))
                start = last + 1
            number += text.count(b"\n", at, after)
            at = after


def _block(text: bytes, at: int) -> tuple[int, int]:
    """Return where the next block ends, and where the one after it begins."""
    if len(text) - at <= BLOCK_BYTES:
        return len(text.removesuffix(b"\n")), len(text)
    end = text.rfind(b"\n", at, at + BLOCK_BYTES)
    if end >= 0:
        return end, end + 1
    line_end = text.find(b"\n", at + BLOCK_BYTES)
    return at + BLOCK_BYTES, len(text) if line_end < 0 else line_end + 1


def _reason(error: Exception) -> str:
    """Return what RE2 says about a pattern, without the flag that was put before it."""
    said = error.args[0]
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return text.replace("(?m)", "", 1)
