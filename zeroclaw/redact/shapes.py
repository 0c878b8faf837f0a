"""Well-known shapes of secrets out of text as it streams, decided word by word.

A word is a run of the characters that tokens and URLs are made of; it is judged when it has ended.
What the words before it say about it (`password:`, `Authorization: Basic`) is kept in a link. A PEM
private key is a mode of its own: once its first line is whole nothing more of it comes out.

    WORDS ── a word too long ──▶ SKIP ── it ends ──▶ WORDS
    WORDS ── `-----BEGIN` ──▶ PEM_HEADER ── a private key's ──▶ PEM_BODY ── its end ──▶ WORDS
                                   └── anything else ──▶ WORDS      └─▶ PEM_FIELD ─▶ PEM_BODY
"""

import re
from enum import Enum, IntEnum, auto
from typing import assert_never

from zeroclaw.redact.marker import LONGEST_WORD, MARKER, SHORTEST_VALUE
from zeroclaw.redact.patterns import (
    FIRST_HALF_AT_END,
    FIRST_HALVES,
    HEADER_AT_END,
    IN_NAMES,
    IN_WORD,
    LINE_ENDS,
    NAME_AT_END,
    PAIR,
    PEM_END,
    PEM_END_LONGEST,
    PEM_FIELD,
    PEM_FIRST,
    PEM_HEADER,
    PEM_MAYBE,
    PEM_STOPS,
    PIECE,
    SCHEMES,
    SECOND_HALF,
    SHORTEST_TELLING,
    SHORTEST_TOKEN,
    TELLING,
    TELLING_SHAPE,
    TELLING_WORD,
    TOKEN_BEGUN,
    TOKENS,
    URL_PASSWORD,
    WORD_ENDS,
)
from zeroclaw.value import Hidden, Value, replace


class Link(IntEnum):
    """What the words so far say about the next one; a number, for it is looked up at each word."""

    NONE = auto()
    FIRST_HALF = auto()  # `API`, as in `API key`
    NAMED = auto()  # a telling name; a `:` or `=` or `is` may follow
    HEADER = auto()  # `Authorization:`
    VALUE = auto()  # a value: redacted when it looks like a secret
    CREDENTIAL = auto()  # after `Authorization: Basic`: redacted when 8 characters or longer


class Mode(Enum):
    """Where the machine stands."""

    WORDS = auto()
    SKIP = auto()  # the rest of a word that was too long
    PEM_HEADER = auto()
    PEM_BODY = auto()
    PEM_FIELD = auto()  # the rest of a header line inside the body


class ShapeState(Value):
    """What is held between two pieces of text.

    Attributes:
        text: Seen, not emitted: the word in progress, the PEM header in progress; in the body of a
            private key its last characters, which will never be emitted.
        link: What the words before say; it crosses blanks and quotes, nothing else.
        escaped: The character before `text` is a backslash, so that `n` may be a line's end.
    """

    mode: Mode = Mode.WORDS
    text: Hidden[str] = ""
    link: Link = Link.NONE
    escaped: bool = False


_CARRIED = frozenset(" \t\"'`\\>")  # what a link crosses; `>` for `=>`
_SHORTEST_BOUND = 12  # characters of a value that only its name gives away; words are shorter
_FEW_CHARS = 256
_ESCAPES = frozenset("nrt")


def _looks_secret(value: str) -> bool:
    """Whether a value that a telling name binds is one: long, and no word of a language."""
    return (
        len(value) >= _SHORTEST_BOUND
        and any(character.isdigit() for character in value)
        and any(character.isalpha() for character in value)
    )


def _without_tokens(word: str) -> str:
    """Return one whole word with everything redacted that its own shape gives away."""

    def token(found: re.Match[str]) -> str:
        return found[0] if found["receipt"] else MARKER

    def pair(found: re.Match[str]) -> str:
        return found["name"] + MARKER if _looks_secret(found["value"]) else found[0]

    if len(word) >= SHORTEST_TOKEN:
        word = TOKENS.sub(token, word)
    if "://" in word:
        word = URL_PASSWORD.sub(rf"\g<user>:{MARKER}@", word)
    return PAIR.sub(pair, word) if len(word) >= SHORTEST_TOKEN else word


def _bound(word: str, link: Link) -> tuple[str, Link]:
    """Return a word redacted in the light of what came before, and the link it leaves."""
    value = word.lstrip(":=")
    sign = word[: len(word) - len(value)]
    if link is Link.NAMED and word == "is":
        return word, Link.VALUE
    if link is Link.NAMED and sign:
        link = Link.VALUE
    if not value:
        return word, link
    if link is Link.HEADER and value.lower() in SCHEMES:
        return word, Link.CREDENTIAL
    trimmed = value.rstrip(".!?:*")
    if (link is Link.CREDENTIAL and len(trimmed) >= SHORTEST_VALUE) or (
        link in (Link.VALUE, Link.HEADER) and _looks_secret(trimmed)
    ):
        return sign + MARKER + value[len(trimmed) :], Link.NONE
    return _without_tokens(word), _left_by(word, link)


def _left_by(word: str, link: Link) -> Link:
    lowered = word.lower()
    # Looking for a part costs a tenth of trying an expression on a word that has none.
    if "authorization" in lowered and HEADER_AT_END.search(word):
        return Link.HEADER
    named = NAME_AT_END.search(word) if any(part in lowered for part in IN_NAMES) else None
    if not named and link is Link.FIRST_HALF:
        named = SECOND_HALF.match(word)
    if named:
        return Link.VALUE if named["binds"] else Link.NAMED
    if lowered == "bearer":
        return Link.VALUE
    is_half = lowered.endswith(FIRST_HALVES) and FIRST_HALF_AT_END.search(word)
    return Link.FIRST_HALF if is_half else Link.NONE


def _judged(word: str, link: Link, *, escaped: bool) -> tuple[str | None, Link]:
    """Return a word without its secrets, None where it has none, and the link it leaves."""
    if link is Link.NONE and _tells_nothing(word):
        return None, link
    redacted = word
    if escaped and word[:1] in _ESCAPES:
        # A line's end in JSON: what follows begins a word, as far as tokens are concerned.
        redacted = word[:1] + _without_tokens(word[1:])
    redacted, link = _bound(redacted, link)
    return None if redacted == word else redacted, link


def _tells_nothing(text: str) -> bool:
    lowered = text.lower()
    # Measured: one expression is faster on a few characters, many searches on a few hundred.
    if len(text) <= _FEW_CHARS:
        told = TELLING_WORD.search(lowered) is not None
    else:
        told = any(part in lowered for part in TELLING)
    return not told and not TELLING_SHAPE.search(text)


def _words(
    state: ShapeState, buffer: str, at: int, out: list[str], *, final: bool
) -> tuple[ShapeState, int]:
    link, escaped, done, none = state.link, state.escaped, at, Link.NONE
    upto = len(buffer) if final else max(at, len(buffer.rstrip(IN_WORD)))
    # Words of one text repeat: each is judged once after each link, as long as this call lasts.
    judged: dict[tuple[str, Link, bool], tuple[str | None, Link]] = {}
    for piece in PIECE.finditer(buffer, at, upto):
        word = piece[1]
        if word is None:
            gap = piece[0]
            link = link if link is none or gap == " " or _CARRIED.issuperset(gap) else none
            escaped = gap[-1] == "\\"
            continue
        if link is none and len(word) < SHORTEST_TELLING:
            continue
        known = judged.get((word, link, escaped))
        if known is None:
            start, end = piece.span()
            if len(word) > LONGEST_WORD:
                out += buffer[done:start], MARKER
                return ShapeState(mode=Mode.SKIP), end
            if word.endswith(PEM_FIRST):
                known = _before_pem(word, link, escaped=escaped)
                if _may_be_pem(buffer, end - len(PEM_FIRST), final=final):
                    out += buffer[done:start], (known[0] or word)[: -len(PEM_FIRST)]
                    return ShapeState(mode=Mode.PEM_HEADER), end - len(PEM_FIRST)
            else:
                known = judged[word, link, escaped] = _judged(word, link, escaped=escaped)
        redacted, link = known
        if redacted is not None:
            out += buffer[done : piece.start()], redacted
            done = piece.end()
    out.append(buffer[done:upto])
    begun = buffer[upto:]
    if len(begun) > LONGEST_WORD:
        out.append(MARKER)
        return ShapeState(mode=Mode.SKIP), len(buffer)
    return ShapeState(text=begun, link=link, escaped=escaped), len(buffer)


def _skip(buffer: str, at: int) -> tuple[ShapeState, int]:
    ends = WORD_ENDS.search(buffer, at)
    if ends is None:
        return ShapeState(mode=Mode.SKIP), len(buffer)
    return ShapeState(), ends.start()


def _before_pem(word: str, link: Link, *, escaped: bool) -> tuple[str | None, Link]:
    """Judge a word that ends as a PEM header begins; it binds nothing that follows."""
    before = word[: -len(PEM_FIRST)]
    redacted = _judged(before, link, escaped=escaped)[0] if before else None
    return None if redacted is None else redacted + PEM_FIRST, Link.NONE


def _may_be_pem(buffer: str, at: int, *, final: bool) -> bool:
    return bool(PEM_HEADER.match(buffer, at) or (not final and PEM_MAYBE.match(buffer, at)))


def _pem_header(buffer: str, at: int, out: list[str], *, final: bool) -> tuple[ShapeState, int]:
    header = PEM_HEADER.match(buffer, at)
    if header:
        out.append(MARKER)
        return ShapeState(mode=Mode.PEM_BODY), header.end()
    if not final and PEM_MAYBE.match(buffer, at):
        return ShapeState(mode=Mode.PEM_HEADER, text=buffer[at:]), len(buffer)
    out.append(PEM_FIRST)
    return ShapeState(), at + len(PEM_FIRST)


def _pem_body(buffer: str, at: int) -> tuple[ShapeState, int]:
    """Swallow a private key up to its last line, or to what no key holds."""
    stops = PEM_STOPS.search(buffer, at)
    stop = stops.start() if stops else len(buffer)
    end = PEM_END.search(buffer, at, stop)
    if end:
        return ShapeState(), end.end()
    tail = buffer[at:stop][-PEM_END_LONGEST:]
    if stops is None:
        return ShapeState(mode=Mode.PEM_BODY, text=tail), stop
    if stops[0] == ":" and PEM_FIELD.search(tail):
        return ShapeState(mode=Mode.PEM_FIELD), stops.end()
    return ShapeState(), stop


def _pem_field(buffer: str, at: int) -> tuple[ShapeState, int]:
    ends = LINE_ENDS.search(buffer, at)
    if ends is None:
        return ShapeState(mode=Mode.PEM_FIELD), len(buffer)
    return ShapeState(mode=Mode.PEM_BODY), ends.start()


def is_begun(state: ShapeState) -> bool:
    """Tell whether the word in progress begins what would be redacted once it is whole."""
    if state.mode is not Mode.WORDS or not state.text:
        return False
    is_bound = state.link in (Link.VALUE, Link.HEADER, Link.CREDENTIAL)
    return is_bound or TOKEN_BEGUN.search(state.text) is not None


def shape_feed(state: ShapeState, text: str, *, final: bool) -> tuple[ShapeState, str]:
    """Take the next piece of text; return what is decided of all so far."""
    buffer, at = state.text + text, 0
    short = state.mode is Mode.WORDS and len(buffer) <= LONGEST_WORD
    if short and not final and not WORD_ENDS.search(text):
        return replace(state, text=buffer), ""
    if short and state.link is Link.NONE and _tells_nothing(buffer):
        safe = buffer if final else buffer.rstrip(IN_WORD)
        return ShapeState(text=buffer[len(safe) :], escaped=safe.endswith("\\")), safe
    out: list[str] = []
    while at < len(buffer):
        match state.mode:
            case Mode.WORDS:
                state, at = _words(state, buffer, at, out, final=final)
            case Mode.SKIP:
                state, at = _skip(buffer, at)
            case Mode.PEM_HEADER:
                state, at = _pem_header(buffer, at, out, final=final)
            case Mode.PEM_BODY:
                state, at = _pem_body(buffer, at)
            case Mode.PEM_FIELD:
                state, at = _pem_field(buffer, at)
            case _:
                assert_never(state.mode)
    return state, "".join(out)
