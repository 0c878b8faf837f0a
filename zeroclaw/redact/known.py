"""Removes known secret values from text as it streams, in every form they may take.

Aho-Corasick: a single pass looks at each character once, however many values there are.
"""

import base64
import html
import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterable
from urllib.parse import quote, quote_plus

from zeroclaw.value import Hidden, Value

MARKER = "[redacted]"

SHORTEST_VALUE = 8
"""In characters. Shorter values are ignored: they would match ordinary text."""

LONGEST_VALUE = 4096
"""In characters. A longer value is searched for in pieces of this length."""


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
        yield json.dumps(value, ensure_ascii=ascii_only)[1:-1]
    yield html.escape(value)
    for quoted in (
        quote(value, safe="", errors="surrogatepass"),
        quote(value, errors="surrogatepass"),
        quote_plus(value, errors="surrogatepass"),
    ):
        yield quoted
        yield re.sub("%..", lambda code: code[0].lower(), quoted)
    data = value.encode(errors="surrogatepass")
    for core in _cores(data, bits=6, encode=base64.b64encode):
        yield core
        yield core.translate(str.maketrans("+/", "-_"))
    yield data.hex()
    yield data.hex().upper()
    # Upper case only; `in_reading` finds lower case too. Programs print upper case, and lower-case
    # needles would begin so many words that all text would take longer.
    yield from _cores(data, bits=5, encode=base64.b32encode)


def _pieces(needle: str) -> Iterable[str]:
    """Cut a needle so that no match is longer than `LONGEST_VALUE`; the last piece overlaps."""
    for start in range(0, max(len(needle) - LONGEST_VALUE, 0), LONGEST_VALUE):
        yield needle[start : start + LONGEST_VALUE]
    yield needle[-LONGEST_VALUE:]


class Automaton(Value):
    """An Aho-Corasick automaton over all needles; node 0 is the root.

    Attributes:
        begins: Finds where a needle may begin, so that ordinary text is skipped at C speed.
        children: By node, the child for each next character.
        fallback: By node, the node of its longest proper suffix.
        depth: By node, how many characters of text it represents.
        matched: By node, the length of the longest needle that ends there, 0 for none.
    """

    begins: re.Pattern[str]
    children: tuple[dict[str, int], ...]
    fallback: tuple[int, ...]
    depth: tuple[int, ...]
    matched: tuple[int, ...]


def forms(values: Iterable[str]) -> frozenset[str]:
    """Return every form of every value that is long enough to search for."""
    return frozenset(
        piece
        for value in values
        if len(value) >= SHORTEST_VALUE
        for form in _forms(value)
        for piece in _pieces(form)
    )


def _after(children: list[dict[str, int]], node: int) -> Iterable[str]:
    """Yield patterns for the second and third character of needles with this first one."""
    for second, child in sorted(children[node].items()):
        thirds = "".join(map(re.escape, sorted(children[child])))
        yield rf"{re.escape(second)}(?:[{thirds}]|\Z)"


def automaton(needles: frozenset[str]) -> Automaton | None:
    """Return the automaton that finds these needles, None if there are none."""
    if not needles:
        return None
    children: list[dict[str, int]] = [{}]
    fallback, depth, matched = [0], [0], [0]
    for needle in needles:
        node = 0
        for character in needle:
            if character not in children[node]:
                children[node][character] = len(children)
                children.append({})
                fallback.append(0)
                depth.append(depth[node] + 1)
                matched.append(0)
            node = children[node][character]
        matched[node] = len(needle)
    waiting = deque(children[0].values())
    while waiting:
        node = waiting.popleft()
        for character, child in children[node].items():
            suffix = fallback[node]
            while suffix and character not in children[suffix]:
                suffix = fallback[suffix]
            fallback[child] = children[suffix].get(character, 0)
            matched[child] = matched[child] or matched[fallback[child]]
            waiting.append(child)
    # Two more characters rule out most false beginnings, which would be walked through in Python.
    begins = "|".join(
        f"{re.escape(first)}(?:{'|'.join(_after(children, node))}|\\Z)"
        for first, node in sorted(children[0].items())
    )
    return Automaton(
        begins=re.compile(begins),
        children=tuple(children),
        fallback=tuple(fallback),
        depth=tuple(depth),
        matched=tuple(matched),
    )


def occurrences(value: str, text: str) -> Iterable[tuple[int, int]]:
    """Yield the start and end of each occurrence of a value, overlapping ones included."""
    start = text.find(value)
    while start >= 0:
        yield start, start + len(value)
        start = text.find(value, start + 1)


class KnownState(Value):
    """The state between two chunks.

    Attributes:
        node: The automaton's current node.
        text: Text seen but not emitted.
        spans: The ranges of `text` to remove, in order, not overlapping. A span that begins at -1
            has had its marker emitted already.
    """

    node: int = 0
    text: Hidden[str] = ""
    spans: tuple[tuple[int, int], ...] = ()


def known_feed(
    automaton: Automaton, state: KnownState, text: str, *, final: bool
) -> tuple[KnownState, str]:
    """Process the next chunk; return the text that no known value can reach back into."""
    buffer = state.text + text
    node, spans = state.node, list(state.spans)
    at = len(state.text)
    children, fallback, matched = automaton.children, automaton.fallback, automaton.matched
    while at < len(buffer):
        if not node:
            begin = automaton.begins.search(buffer, at)
            if begin is None:
                break
            at = begin.start()
        character = buffer[at]
        at += 1
        while node and character not in children[node]:
            node = fallback[node]
        node = children[node].get(character, 0)
        if matched[node]:
            start = at - matched[node]
            while spans and spans[-1][1] > start:
                start = min(start, spans.pop()[0])
            spans.append((start, at))
    # INVARIANT: the node's depth is that of the longest suffix that may still become a match.
    safe = len(buffer) if final else len(buffer) - automaton.depth[node]
    out, kept = _cut(buffer, spans, safe)
    return KnownState(node=node, text=buffer[safe:], spans=kept), out


def _cut(
    buffer: str, spans: list[tuple[int, int]], safe: int
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the first `safe` characters with markers, and the spans of the rest."""
    out: list[str] = []
    kept: list[tuple[int, int]] = []
    done = 0
    for start, end in spans:
        if start >= safe:
            kept.append((start - safe, end - safe))
            continue
        if start >= 0:
            out += buffer[done:start], MARKER
        if end > safe:
            kept.append((-1, end - safe))
        done = min(end, safe)
    out.append(buffer[done:safe])
    return "".join(out), tuple(kept)
