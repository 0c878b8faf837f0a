"""Removes known secret values from text as it streams, in every form they may take.

A regular expression finds where a form may begin, by its first three characters; only the forms
that begin like that are compared with the text there.
"""

import base64
import html
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from urllib.parse import quote, quote_plus

from zeroclaw.value import Hidden, Value

MARKER = "[redacted]"

SHORTEST_VALUE = 8
"""In characters. Shorter values are ignored, since they would match ordinary text."""

LONGEST_VALUE = 4096
"""In characters. A longer value is searched for in pieces of this length."""

_LONGEST_CORE = 1024
"""In characters. A longer core is not searched for with line breaks, which takes 560 needles."""

_HEAD_CHARS = 3  # enough to rule out most false beginnings


def holds_marker(text: str) -> bool:
    """Whether a text lost something to redaction; such text must not be written to files."""
    return MARKER in text


def _cores(data: bytes, *, bits: int, encode: Callable[[bytes], bytes]) -> Iterable[str]:
    """Yield the encoded forms of `data`, one per alignment, that don't depend on its neighbours.

    At each alignment, characters that also encode a neighbouring byte vary with it. The other
    characters are always the same; they are the core.

    Args:
        data: The value to search for.
        bits: How many bits of the data one character encodes.
        encode: The encoding, RFC 4648.
    """
    for alignment in range(bits // math.gcd(8, bits)):
        encoded = encode(b"\0" * alignment + data)
        yield encoded[-(alignment * -8 // bits) : (alignment + len(data)) * 8 // bits].decode()
    yield encode(data).decode().rstrip("=")


def _forms(value: str) -> Iterable[str]:
    """Yield every form that `value` may have in a text."""
    yield value
    for ascii_only in (True, False):
        escaped = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield from (escaped, escaped.replace("/", r"\/"))  # the second is PHP's
        yield re.sub("[&<>]", lambda sign: f"\\u{ord(sign[0]):04x}", escaped)  # Go's
    for apostrophe in ("&#x27;", "&#39;", "&#039;"):
        yield html.escape(value).replace("&#x27;", apostrophe)
    yield html.escape(value, quote=False)
    for write in (partial(quote, safe=""), quote, quote_plus):
        quoted = write(value, errors="surrogatepass")
        yield from (quoted, re.sub("%..", lambda code: code[0].lower(), quoted))
    data = value.encode(errors="surrogatepass")
    for core in _cores(data, bits=6, encode=base64.b64encode):
        yield from (core, core.translate(str.maketrans("+/", "-_")))
        # The width of a line, as `openssl base64` and `base64` write it. Both cut a short core alike.
        widths = (64, 76) if len(core) > 64 else (64,)  # noqa: PLR2004
        for width in widths if len(core) <= _LONGEST_CORE else ():
            for first in range(max(width - len(core), 0), width):
                yield re.sub(f".{{{width}}}(?=.)", r"\g<0>\n", " " * first + core)[first:]
    yield from (data.hex(), data.hex().upper())
    # Upper case only; `in_reading` finds lower case too. Programs print upper case, and lower-case
    # needles would begin so many words that all text would take longer.
    yield from _cores(data, bits=5, encode=base64.b32encode)


def _pieces(needle: str) -> Iterable[str]:
    """Cut a needle so that no match is longer than `LONGEST_VALUE`; the last piece overlaps."""
    for start in range(0, max(len(needle) - LONGEST_VALUE, 0), LONGEST_VALUE):
        yield needle[start : start + LONGEST_VALUE]
    yield needle[-LONGEST_VALUE:]


def forms(values: Iterable[str]) -> frozenset[str]:
    """Return every form of every value that is long enough to search for."""
    return frozenset(
        piece
        for value in values
        if len(value) >= SHORTEST_VALUE
        for form in _forms(value)
        for piece in _pieces(form)
    )


class Needles(Value):
    """The texts to search for.

    Attributes:
        begins: Finds where a needle may begin, so that ordinary text is skipped at C speed. Matches
            a needle's head, or a beginning of it at the end of the text.
        by_head: The needles by their first `_HEAD_CHARS` characters, the longest first.
    """

    begins: re.Pattern[str]
    by_head: Mapping[str, tuple[str, ...]]


def needles(values: Iterable[str]) -> Needles | None:
    """Return the needles for these values, None if there are none."""
    by_head: dict[str, tuple[str, ...]] = {}
    for needle in sorted(values, key=len, reverse=True):
        head = needle[:_HEAD_CHARS]
        by_head[head] = (*by_head.get(head, ()), needle)
    return Needles(begins=re.compile(_begin(by_head)), by_head=by_head) if by_head else None


def _begin(heads: Iterable[str]) -> str:
    """Return a pattern for heads, or the beginning of one at the end; a position costs few steps."""
    rests: dict[str, list[str]] = {}
    for head in sorted(heads):
        rests.setdefault(head[0], []).append(head[1:])
    return "|".join(
        re.escape(first) + (rf"(?:(?:{_begin(rest)})|\Z)" if rest[0] else "")
        for first, rest in rests.items()
    )


def occurrences(value: str, text: str) -> Iterable[tuple[int, int]]:
    """Yield the start and end of each occurrence of a value, overlapping ones included."""
    start = -1
    while (start := text.find(value, start + 1)) >= 0:
        yield start, start + len(value)


class KnownState(Value):
    """The state between two chunks.

    Attributes:
        text: Text that has arrived but is held back; it may begin a needle.
        covered: How many characters of `text` belong to a match whose marker was emitted.
    """

    text: Hidden[str] = ""
    covered: int = 0


def known_feed(
    needles: Needles, state: KnownState, text: str, *, final: bool
) -> tuple[KnownState, str]:
    """Process the next chunk; return the text that no known value can reach back into."""
    buffer = state.text + text
    parts: list[str] = []
    at, done, safe = 0, state.covered, len(buffer)
    while begin := needles.begins.search(buffer, at):
        start = begin.start()
        candidates = needles.by_head.get(begin[0], ())
        if not final and _may_grow(candidates, buffer, start):
            safe = start
            break
        for needle in candidates:
            if buffer.startswith(needle, start):
                if start >= done:
                    parts += buffer[done:start], MARKER
                done = max(done, start + len(needle))
                break
        at = start + 1
    parts.append(buffer[done:safe])
    return KnownState(text=buffer[safe:], covered=max(done - safe, 0)), "".join(parts)


def _may_grow(candidates: tuple[str, ...], buffer: str, start: int) -> bool:
    """Whether the rest of the text is the beginning of a needle, or of a head."""
    if not candidates:
        return True
    rest = buffer[start : start + len(candidates[0])]
    return any(len(rest) < len(needle) and needle.startswith(rest) for needle in candidates)
