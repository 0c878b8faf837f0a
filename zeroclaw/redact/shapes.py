"""Removes well-known shapes of secrets from text as it streams, judging word by word.

A word is a run of the characters that tokens and URLs consist of; it is judged when it has ended.
A link records how the preceding words introduce it (`password:`, `Authorization: Basic`). A PEM
private key has a separate mode: once its first line is complete, none of the key is emitted.

    WORDS ── a word too long ──▶ SKIP ── it ends ──▶ WORDS
    WORDS ── a private key's first line ──▶ PEM_BODY ── its end ──▶ WORDS
                                               └─▶ PEM_FIELD ─▶ PEM_BODY

A pattern is tried on one complete word, or on the end of one. Quantifiers are possessive or bounded,
and a failed attempt costs a bounded number of steps, so the cost of a word is linear in its length
for any text.
"""

import re
import string
from enum import Enum, IntEnum, auto
from typing import assert_never

from zeroclaw.redact.known import MARKER, SHORTEST_VALUE
from zeroclaw.value import Hidden, Value, replace

LONGEST_WORD = 4000
"""In characters. A longer run of word characters is redacted completely."""

IN_WORD = string.ascii_letters + string.digits + "!#$%&*+-./:=?@_~"
_CLASS = re.escape(IN_WORD)
PIECE = re.compile(f"([{_CLASS}]+)|[^{_CLASS}]+")
WORD_AND_GAP = re.compile(f"([{_CLASS}]*+)([^{_CLASS}]*+)")
WORD_ENDS = re.compile(f"[^{_CLASS}]")
LONG_WORD = re.compile(f"[{_CLASS}]{{{LONGEST_WORD + 1},}}+")

# Tokens that are recognised by their prefix.
TOKENS = re.compile(
    r"(?P<receipt>zc-receipt-[0-9]{1,12}-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-]))"  # ours, not a secret
    r"|(?<![A-Za-z0-9])(?:"
    r"eyJ[A-Za-z0-9_-]{8,1024}+\.[A-Za-z0-9_-]{8,}+"  # JWT, RFC 7515 7.1
    r"\.[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]++){0,2}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS access key ids
    r"|gh[pousr]_[A-Za-z0-9]{30,}+|github_pat_[A-Za-z0-9_]{40,}+"
    r"|gl(?:pat|ptt|dt|rt|oas|soat|agent)-[A-Za-z0-9_.-]{20,}+"
    r"|sk-(?=[A-Za-z_-]{0,200}+[0-9])[A-Za-z0-9_-]{20,}+"  # OpenAI, Anthropic, OpenRouter
    r"|(?:gsk_|xai-|hf_|npm_|r8_)[A-Za-z0-9]{30,}+|pypi-[A-Za-z0-9_-]{50,}+"
    r"|xox[abceoprs]-[A-Za-z0-9.-]{10,}+|xapp-[A-Za-z0-9-]{20,}+"  # Slack
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}+|GOCSPX-[A-Za-z0-9_-]{20,}+"  # Google
    r"|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}+|whsec_[A-Za-z0-9+/=]{24,}+"  # Stripe
    r"|SG\.[A-Za-z0-9_-]{16,128}+\.[A-Za-z0-9_-]{16,}+"  # SendGrid
    r"|[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+"  # Discord bots
    r"|AGE-SECRET-KEY-1[A-Z0-9]{50,}+|do[opr]_v1_[a-f0-9]{64}|shp(?:at|ss|ca|pa)_[a-fA-F0-9]{32}"
    r")"
    r"|(?<![0-9])[0-9]{6,12}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"  # Telegram bots
    r"|(?<=hooks\.slack\.com/)[a-z]{1,20}/[A-Za-z0-9/_-]{20,}+"
    r"|(?<=/api/webhooks/)[0-9]{10,25}/[A-Za-z0-9_-]{40,}+"  # Discord
)
URL_PASSWORD = re.compile(r"(?<=://)(?P<user>[^/?#@:]*+):(?:[^/?#@]++@)+")
_NAME = (
    r"(?i:token|secret|passw(?:or)?d|credential|(?:api|access|private|auth)[_-]?key)"
    r"[A-Za-z0-9_-]{0,32}+"
)
PAIR = re.compile(rf"(?P<name>{_NAME}[:=]{{1,2}}+)(?P<value>[^&?#]{{12,}}+)")
NAME_AT_END = re.compile(rf"{_NAME}[*_~]{{0,3}}+(?P<binds>[:=]{{0,2}}+)[*~]{{0,3}}+\Z")
HEADER_AT_END = re.compile(r"(?i)authorization[:=]?\Z")
SCHEMES = frozenset({"basic", "bearer", "bot", "digest", "token", "apikey"})
IN_NAMES = ("token", "secret", "passw", "credential", "key")
"""Every name contains one of these, in lower case."""
SHORTEST_TOKEN = 15
"""In characters. No token, and no name with its value, is shorter: `xoxb-` and ten more."""
FIRST_HALVES = ("api", "access", "private")
FIRST_HALF_AT_END = re.compile(r"(?i)(?<![a-z])(?:api|access|private)\Z")
SECOND_HALF = re.compile(r"(?i)keys?[*_~]{0,3}+(?P<binds>[:=]{0,2}+)[*~]{0,3}+\Z")
# A text that contains none of these, in lower case, can't match the patterns above.
_BEGINNINGS = (
    *("eyj", "akia", "asia", "abia", "acca", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_"),
    *("glpat-", "glptt-", "gldt-", "glrt-", "gloas-", "glsoat-", "glagent-", "sk-", "gsk_", "xai-"),
    *("hf_", "npm_", "r8_", "pypi-", "xox", "xapp-", "aiza", "ya29", "gocspx", "sk_", "rk_"),
    *("whsec_", "sg.", "dop_", "dor_", "doo_", "shp", "slack.com/", "webhooks/", "age-secret-"),
)
CLUES = (
    *("token", "secret", "passw", "key", "credential", "authorization", "bearer", "api", "access"),
    *("private", "://"),
    *_BEGINNINGS,
)
TOKEN_BEGUN = re.compile(f"(?i:{'|'.join(map(re.escape, _BEGINNINGS))}).")
"""Matches a token's prefix and at least one character after it."""
SHORTEST_CLUE = min(map(len, CLUES))
CLUE_WORD = re.compile("|".join(map(re.escape, CLUES)))
CLUE_SHAPE = re.compile(r"[0-9]:[A-Za-z0-9_-]{35}|\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}")

PEM_FIRST = "-----BEGIN"
PEM_HEADER = re.compile(
    r"-----BEGIN(?: [A-Z0-9]{1,12}){0,4}? PRIVATE KEY(?: BLOCK)?-----"  # RFC 7468, RFC 9580 6.2
)
PEM_BEGUN = re.compile(r"-----BEGIN(?: [A-Z0-9]{0,12}){0,7}-{0,5}\Z")
PEM_LONGEST = 90
"""Longest first line of a private key in characters; more than the pattern matches."""
PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
PEM_END_LONGEST = 75
PEM_STOPS = re.compile(r"[^A-Za-z0-9+/=\\\s\"',>|#\[\]-]")
"""Characters that no private key contains, even if quoted, commented, or partly redacted."""
PEM_FIELD = re.compile(r"(?:\A\s*|\n|\\n)[A-Za-z][A-Za-z0-9-]{0,40}\Z")  # `Proc-Type`, `Version`
LINE_ENDS = re.compile(r"[\n\\]")


class Link(IntEnum):
    """How the words so far introduce the next one; an `IntEnum`, which hashes fast."""

    NONE = auto()
    FIRST_HALF = auto()  # `API`, as in `API key`
    NAMED = auto()  # a name such as `token`; a `:` or `=` or `is` may follow
    HEADER = auto()  # `Authorization:`
    VALUE = auto()  # a value follows: redacted if it looks like a secret
    CREDENTIAL = auto()  # after `Authorization: Basic`: redacted if 8 characters or longer


class Mode(Enum):
    """The state of the machine."""

    WORDS = auto()
    SKIP = auto()  # the rest of a word that was too long
    PEM_BODY = auto()
    PEM_FIELD = auto()  # the rest of a header line inside the body


class ShapeState(Value):
    """The state between two chunks.

    Attributes:
        text: Text held back: the current word, or all text from the word that may begin a private
            key's first line. In the body of a key or of an overlong word: its last characters,
            which are never emitted.
        link: How the preceding words introduce the next; it carries across blanks and quotes only.
        escaped: The character before `text` is a backslash, so that `n` may be a line break.
    """

    mode: Mode = Mode.WORDS
    text: Hidden[str] = ""
    link: Link = Link.NONE
    escaped: bool = False


_TRANSPARENT = frozenset(" \t\"'`\\>")  # what a link carries across; `>` for `=>`
_SHORTEST_BOUND = 12  # characters of a value recognised only by its name; most words are shorter
_SHORT_CHARS = 256
_ESCAPES = frozenset("nrt")


def _looks_secret(value: str) -> bool:
    """Whether the value of a telling name looks like a secret: long, with letters and digits."""
    return (
        len(value) >= _SHORTEST_BOUND
        and any(character.isdigit() for character in value)
        and any(character.isalpha() for character in value)
    )


def _without_tokens(word: str) -> str:
    """Return a complete word without the secrets that it contains by their shape alone."""

    def token(match: re.Match[str]) -> str:
        return match[0] if match["receipt"] else MARKER

    def pair(match: re.Match[str]) -> str:
        return match["name"] + MARKER if _looks_secret(match["value"]) else match[0]

    if len(word) >= SHORTEST_TOKEN:
        word = TOKENS.sub(token, word)
    if "://" in word:
        word = URL_PASSWORD.sub(rf"\g<user>:{MARKER}@", word)
    return PAIR.sub(pair, word) if len(word) >= SHORTEST_TOKEN else word


def _redact_bound(word: str, link: Link) -> tuple[str, Link]:
    """Return a word redacted according to the preceding words, and the link it leaves."""
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
    return _without_tokens(word), _link_after(word, link)


def _link_after(word: str, link: Link) -> Link:
    lowered = word.lower()
    # A substring test costs a tenth of a failing regular expression.
    if "authorization" in lowered and HEADER_AT_END.search(word):
        return Link.HEADER
    name = NAME_AT_END.search(word) if any(part in lowered for part in IN_NAMES) else None
    if not name and link is Link.FIRST_HALF:
        name = SECOND_HALF.match(word)
    if name:
        return Link.VALUE if name["binds"] else Link.NAMED
    if lowered == "bearer":
        return Link.VALUE
    is_half = lowered.endswith(FIRST_HALVES) and FIRST_HALF_AT_END.search(word)
    return Link.FIRST_HALF if is_half else Link.NONE


def _judge(word: str, link: Link, *, escaped: bool) -> tuple[str | None, Link]:
    """Return a word without its secrets, None if it has none, and the link it leaves."""
    if link is Link.NONE and _has_no_clue(word):
        return None, link
    redacted = word
    if escaped and word[:1] in _ESCAPES:
        # An escaped line break in JSON: for tokens, a word begins after it.
        redacted = word[:1] + _without_tokens(word[1:])
    redacted, link = _redact_bound(redacted, link)
    return None if redacted == word else redacted, link


def _has_no_clue(text: str) -> bool:
    lowered = text.lower()
    # Measured: one regular expression is faster for a few characters, many searches for hundreds.
    if len(text) <= _SHORT_CHARS:
        has_clue = CLUE_WORD.search(lowered) is not None
    else:
        has_clue = any(map(lowered.__contains__, CLUES))
    return not has_clue and not CLUE_SHAPE.search(text)


def _feed_words(
    state: ShapeState, buffer: str, at: int, parts: list[str], *, final: bool
) -> tuple[ShapeState, int]:
    link, escaped, emitted, none = state.link, state.escaped, at, Link.NONE
    header = PEM_HEADER.search(buffer, at)
    if header and _pem_word(buffer, at, header) is None:
        header = None
    decided = len(buffer) if final else _decided_end(buffer, at)
    stop = header.start() if header else decided
    # Words repeat within a text: during this call, each is judged once per preceding link.
    judged: dict[tuple[str, Link, bool], tuple[str | None, Link]] = {}
    for piece in WORD_AND_GAP.finditer(buffer, at, stop):
        word, gap = piece.groups()
        if link is not none or len(word) >= SHORTEST_CLUE:
            judgement = judged.get((word, link, escaped))
            if judgement is None:
                if len(word) > LONGEST_WORD:
                    parts += buffer[emitted : piece.start()], MARKER
                    return ShapeState(mode=Mode.SKIP), piece.end(1) - len(PEM_FIRST)
                judgement = judged[word, link, escaped] = _judge(word, link, escaped=escaped)
            redacted, link = judgement
            if redacted is not None:
                parts += buffer[emitted : piece.start()], redacted
                emitted = piece.end(1)
        if gap:
            link = link if link is none or gap == " " or _TRANSPARENT.issuperset(gap) else none
            escaped = gap[-1] == "\\"
    parts.append(buffer[emitted:stop])
    if header:
        parts.append(MARKER)
        return ShapeState(mode=Mode.PEM_BODY), header.end()
    if not final and len(buffer) - max(at, len(buffer.rstrip(IN_WORD))) > LONGEST_WORD:
        parts.append(MARKER)
        return ShapeState(mode=Mode.SKIP), len(buffer) - len(PEM_FIRST)
    return ShapeState(text=buffer[stop:], link=link, escaped=escaped), len(buffer)


def _decided_end(buffer: str, at: int) -> int:
    """Return how far a text is decided: up to its last word, or one that may begin a PEM key."""
    header = PEM_BEGUN.search(buffer, max(at, len(buffer) - PEM_LONGEST))
    word = _pem_word(buffer, at, header) if header else None
    return max(at, len(buffer.rstrip(IN_WORD))) if word is None else word


def _pem_word(buffer: str, at: int, header: re.Match[str]) -> int | None:
    """Return the start of the word that a private key's first line ends; None if it is too long."""
    word = at + len(buffer[at : header.start()].rstrip(IN_WORD))
    return word if header.start() + len(PEM_FIRST) - word <= LONGEST_WORD else None


def _skip(buffer: str, at: int) -> tuple[ShapeState, int]:
    """Drop an overlong word, except for the beginning of a private key at its end."""
    end = WORD_ENDS.search(buffer, at)
    if end is None:
        return ShapeState(mode=Mode.SKIP, text=buffer[at:][-len(PEM_FIRST) :]), len(buffer)
    is_key = buffer.endswith(PEM_FIRST, at, end.start())
    return ShapeState(), end.start() - len(PEM_FIRST) * is_key


def _pem_body(buffer: str, at: int) -> tuple[ShapeState, int]:
    """Drop a private key up to its last line, or to a character that no key contains."""
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


def is_begun(state: ShapeState) -> bool:
    """Whether the current word begins like something that would be redacted once complete."""
    if state.mode is not Mode.WORDS or not state.text:
        return False
    is_bound = state.link in (Link.VALUE, Link.HEADER, Link.CREDENTIAL)
    return is_bound or TOKEN_BEGUN.search(state.text) is not None


def is_plain(text: str) -> bool:
    """Whether a short text contains no secret, provided that no preceding word introduces one."""
    return len(text) <= LONGEST_WORD and PEM_FIRST not in text and _has_no_clue(text)


def shape_feed(state: ShapeState, text: str, *, final: bool) -> tuple[ShapeState, str]:
    """Process the next chunk; return the text that is decided so far."""
    buffer, at = state.text + text, 0
    short = state.mode is Mode.WORDS and len(buffer) <= LONGEST_WORD
    if short and not final and not WORD_ENDS.search(text):
        return replace(state, text=buffer), ""
    if short and state.link is Link.NONE and is_plain(buffer):
        safe = buffer if final else buffer.rstrip(IN_WORD)
        return ShapeState(text=buffer[len(safe) :], escaped=safe.endswith("\\")), safe
    parts: list[str] = []
    while at < len(buffer):
        match state.mode:
            case Mode.WORDS:
                state, at = _feed_words(state, buffer, at, parts, final=final)
            case Mode.SKIP:
                state, at = _skip(buffer, at)
            case Mode.PEM_BODY:
                state, at = _pem_body(buffer, at)
            case Mode.PEM_FIELD:
                end = LINE_ENDS.search(buffer, at)
                state = state if end is None else ShapeState(mode=Mode.PEM_BODY)
                at = len(buffer) if end is None else end.start()
            case _:
                assert_never(state.mode)
    return state, "".join(parts)
