r"""Finds the lines of a file that match a text or a regular expression, with RE2.

Python's `re` backtracks, so a model can write a pattern that takes years, and it holds the GIL
meanwhile. RE2 looks at each byte once, keeps to its memory limit and releases the GIL, so other
conversations go on. It has no back-references and no look-around.

A file is searched in blocks of whole lines, so that a search ends soon after its caller is gone or
its time is over.
"""

from collections.abc import Callable, Iterator

from zeroclaw.value import Value

MAX_MEMORY_BYTES = 1_048_576
"""Memory for the compiled pattern and RE2's caches; a pattern that needs more is refused.
The library's default is eight times that."""
BLOCK_BYTES = 16_384
"""Bytes searched at a time. Only this much of a longer line is searched. The worst pattern that fits
into the memory above takes a second per block, an ordinary one some microseconds."""


class PatternInvalid(ValueError):
    """Raised with the reason why a pattern is invalid."""


class FoundLine(Value):
    """A line that matches the pattern.

    Attributes:
        number: Counts from 1.
    """

    number: int
    text: str


class Pattern:
    """A compiled pattern."""

    def __init__(self, source: str, *, regex: bool = True, ignore_case: bool = False) -> None:
        """Compile the pattern.

        Args:
            source: An expression in RE2's syntax, or a text.
            regex: Whether `source` is an expression.
            ignore_case: Whether `A` matches `a`.

        Raises:
            PatternInvalid: RE2 does not accept it.
        """
        import re2  # on the first search: it adds 3 ms to a start

        options = re2.Options()
        options.max_mem = MAX_MEMORY_BYTES
        options.case_sensitive = not ignore_case
        options.never_nl = True  # a match ends with its line
        options.log_errors = False  # otherwise it writes to standard error
        text = source.encode("utf-8", "replace")
        try:
            self._compiled = re2.compile(b"(?m)" + (text if regex else re2.escape(text)), options)
        except re2.error as error:
            raise PatternInvalid(_reason(error)) from None
        finally:
            re2.purge()  # the library caches 128 patterns, whichever conversation they came from

    def lines(self, data: bytes, check: Callable[[], None]) -> Iterator[FoundLine]:
        """Yield the lines of a file that match.

        Args:
            data: The file.
            check: Called before each block; an exception from it ends the search.
        """
        # RE2 finds no match in bytes that are not valid UTF-8.
        text = data.decode("utf-8", "replace").replace("\r\n", "\n").encode()
        at, number = 0, 1
        while at < len(text):
            check()
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
    """Return the end of the next block, and the start of the one after it."""
    if len(text) - at <= BLOCK_BYTES:
        return len(text.removesuffix(b"\n")), len(text)
    end = text.rfind(b"\n", at, at + BLOCK_BYTES)
    if end >= 0:
        return end, end + 1
    line_end = text.find(b"\n", at + BLOCK_BYTES)
    return at + BLOCK_BYTES, len(text) if line_end < 0 else line_end + 1


def _reason(error: Exception) -> str:
    """Return RE2's message about a pattern, without the flag that we prepended."""
    message = error.args[0]
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    return text.replace("(?m)", "", 1)
