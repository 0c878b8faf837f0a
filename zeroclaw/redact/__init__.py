"""Removes secrets from text, complete or streamed.

Two transducers in a row, each a pure step over (state, text):

    known.py: known values ──▶ shapes.py: credential shapes ──▶ safe text

In addition, the outgoing screen checks a text for disguised secrets once its markup is rendered
(`disguise.py`).

*Known values* are matched anywhere and in every form they may take: unchanged, JSON-escaped,
URL-encoded, HTML-escaped, and inside Base16, Base32 and Base64 at any alignment, Base64 also in
lines. Every character that is part of any match is removed, including overlaps, so no value
survives another's match.

*Shapes* are those of well-known credentials, judged word by word when the word has ended (K16).

The output depends only on the text, never on chunk boundaries or timing: no text is emitted before
the text that decides about it has arrived. A stream holds back the longest possible beginning of a
known value (at most `LONGEST_VALUE` characters) and the current word (at most `LONGEST_WORD`; 8 KiB
together). A longer word is redacted completely: judging it would mean holding back more, and only
encoded data looks like that.
"""

import re
from collections.abc import Iterable, Mapping

from zeroclaw.redact.disguise import (
    CHECKED,
    DOT,
    folded,
    folded_from,
    is_lookalike,
    key,
    key_from,
    prefix_length,
    without_names,
)
from zeroclaw.redact.known import (
    LONGEST_VALUE,
    MARKER,
    SHORTEST_VALUE,
    KnownState,
    forms,
    holds_marker,
    known_feed,
    needles,
    occurrences,
)
from zeroclaw.redact.shapes import (
    LONG_WORD,
    LONGEST_WORD,
    PIECE,
    Mode,
    ShapeState,
    is_begun,
    is_plain,
    shape_feed,
)
from zeroclaw.value import Value

__all__ = [
    "CHECKED", "DOT", "LONGEST_VALUE", "LONGEST_WORD", "MARKER", "SHORTEST_VALUE", "Redaction",
    "Redactor", "folded", "folded_from", "holds_marker", "is_lookalike", "secret_environment",
    "without_credentials", "without_names",
]  # fmt: skip

_SECRET_NAMES = ("TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE")
_BLOCK = 2048  # characters; a block without a telling word is passed on in one step

MIN_PREFIX_CHARS = 4
"""A stream holds back the end of its text if it begins a known value with this many characters."""

BARE_CHARS = 12
"""A value with this many letters and digits is recognised by them alone."""

_NO_KNOWN = KnownState()
_NO_SHAPE = ShapeState()


def secret_environment(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables whose names suggest secrets and whose values are long enough to redact."""
    return {
        name: value
        for name, value in environment.items()
        if len(value) >= SHORTEST_VALUE and any(word in name.upper() for word in _SECRET_NAMES)
    }


def without_credentials(url: str) -> str:
    """Return a URL fit for printing: without user, password, query and fragment.

    `…` marks each removed part. The last `@` counts as the end of a password, because people write
    passwords with a slash without encoding it.
    """
    scheme, slashes, rest = url.partition("://") if "://" in url else ("", "", url)
    _, at, location = rest.rpartition("@")
    path, *query = re.split("[?#]", location, maxsplit=1)
    return f"{scheme}{slashes}{'…@' if at else ''}{path}{'?…' if query else ''}"


class Redaction(Value):
    """The state of one stream: the text held back between two chunks, which may contain a secret.

    `Redaction()` is the start of a stream. Its `repr` shows none of the text.
    """

    known: KnownState = _NO_KNOWN
    shape: ShapeState = _NO_SHAPE


class Redactor:
    """Removes known values and well-known credential shapes from text; immutable.

    Args:
        secrets: Known values; those shorter than `SHORTEST_VALUE` are ignored.
        references: The secret reference of each known value, by value.
    """

    __slots__ = ("_keys", "_needles", "_references", "_values")

    def __init__(
        self, secrets: Iterable[str] = (), *, references: Mapping[str, str] | None = None
    ) -> None:
        self._references = references or {}
        values = dict.fromkeys((*secrets, *self._references))
        self._values = tuple(value for value in values if len(value) >= SHORTEST_VALUE)
        written = forms(self._values)
        self._needles = needles(written)
        bare = {form: key(folded(form), bare=True) for form in written}
        short = {
            form: key(folded(form), bare=False) for form in written if len(bare[form]) < BARE_CHARS
        }
        # A password may be an ordinary word plus punctuation, and the word alone is no secret.
        self._keys = {
            True: tuple(text for text in set(bare.values()) if len(text) >= BARE_CHARS),
            False: tuple(text for text in set(short.values()) if len(text) >= SHORTEST_VALUE),
        }

    def references_in(self, text: str) -> tuple[tuple[int, int, str], ...]:
        """Return where known values occur unencoded: start, end, and the secret's reference.

        Results are in order; a value inside another one is part of it. Returns nothing if two
        values overlap partly, because then no single reference describes the text.
        """
        found = sorted(
            (start, -end, self._references.get(value, "a secret"))
            for value in self._values
            for start, end in occurrences(value, text)
        )
        references: list[tuple[int, int, str]] = []
        for start, end, reference in found:
            last = references[-1][1] if references else 0
            if -end <= last:
                continue
            if start < last:
                return ()
            references.append((start, -end, reference))
        return tuple(references)

    def redact(self, text: str) -> str:
        """Return a complete text without its secrets."""
        known = self._needles
        if is_plain(text) and (known is None or not known.begins.search(text)):
            return text  # most are a few words; a stream's steps would cost five times as much
        return self._step(Redaction(), text, final=True)[1]

    def finds(self, text: str, *, known_only: bool = False) -> bool:
        """Whether a complete text has a secret; for text that must pass unchanged or not at all.

        Unlike `redact`, this accepts words that are too long to be judged: an embedded image is no
        secret. It does find known values in them.

        Args:
            text: The complete text.
            known_only: Search for known values only, because binary data often looks like a
                credential.
        """
        known = self._needles
        if known and known_feed(known, _NO_KNOWN, text, final=True)[1] != text:
            return True
        if known_only:
            return False
        short = LONG_WORD.sub(" ", text)
        return _SHAPES.redact(short) != short

    def in_reading(self, reading: str, *, growing: bool = False) -> list[tuple[int, int]]:
        """Return where a text contains a secret as a person reads it, however disguised.

        Args:
            reading: The text without its markup, `folded`.
            growing: More text may follow, so also count an end that begins a known value, or a word
                that begins like a credential.
        """
        state, safe = _SHAPES.feed(Redaction(), reading)
        found = _shaped(reading) if safe + _SHAPES.flush(state) != reading else []
        if growing and is_begun(state.shape):
            found.append((len(reading) - len(state.shape.text), len(reading)))
        for bare, keys in self._keys.items():
            spelled = key(reading, bare=bare) if keys else ""
            tail = prefix_length(keys, spelled, least=MIN_PREFIX_CHARS) if growing else 0
            if not tail and not any(needle in spelled for needle in keys):
                continue
            spelled, positions = key_from(reading, bare=bare)
            known = [span for needle in keys for span in occurrences(needle, spelled)]
            known += [(len(spelled) - tail, len(spelled))] * bool(tail)
            found += [(positions[start], positions[end - 1] + 1) for start, end in known]
        return found

    def feed(self, state: Redaction, text: str) -> tuple[Redaction, str]:
        """Process the next chunk of a stream; return the text that is now safe to show."""
        return self._step(state, text, final=False)

    def flush(self, state: Redaction) -> str:
        """End a stream; return the text still held back, redacted."""
        return self._step(state, "", final=True)[1]

    def _step(self, state: Redaction, text: str, *, final: bool) -> tuple[Redaction, str]:
        known, shape = state.known, state.shape
        if self._needles is not None:
            known, text = known_feed(self._needles, known, text, final=final)
        parts: list[str] = []
        for start in range(0, max(len(text), 1), _BLOCK):
            last = final and start + _BLOCK >= len(text)
            shape, safe = shape_feed(shape, text[start : start + _BLOCK], final=last)
            parts.append(safe)
        return Redaction(known=known, shape=shape), "".join(parts)


_SHAPES = Redactor()


def _shaped(text: str) -> list[tuple[int, int]]:
    """Return where `shape_feed` changes a text, by comparing its output word by word."""
    spans: list[tuple[int, int]] = []
    state, start = _NO_SHAPE, 0
    for piece in PIECE.finditer(text):
        end = piece.end()
        state, safe = shape_feed(state, piece[0], final=end == len(text))
        stop = end - len(state.text) if state.mode is Mode.WORDS else end
        if safe != text[start:stop]:
            # The output includes the separator that ended the word; exclude it.
            trailing = len(piece[0]) if not piece[1] and safe.endswith(piece[0]) else 0
            spans.append((start, stop - trailing))
        start = stop
    return spans
