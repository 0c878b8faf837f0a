r"""Secrets out of text, whole or as it streams.

Two transducers in a row, each a pure step over (state, text):

    known.py: values ──▶ shapes.py: looks ──▶ safe text

and one look at a text that is about to be shown, markup gone, through its disguises (`disguise.py`).

*Known values* are matched anywhere, in the forms that they take on the way: as they are,
JSON-escaped, URL-encoded, HTML-escaped, and inside Base16, Base32 and Base64 wherever they begin.
Everything that lies in any match is covered, overlaps too, so no value survives another's match.

*Looks* are those of well-known credentials, decided word by word when the word has ended (K16).

What comes out depends on the text alone, never on how it was cut or on time: nothing is emitted
before the text that decides about it has been seen. Held back are the longest possible beginning of
a known value (at most `LONGEST_VALUE` characters) and the word in progress (at most `LONGEST_WORD`;
8 KiB together). A longer word is redacted whole: it can't be judged without holding more, and only
encoded data looks like that.
"""

import re
from collections.abc import Iterable, Mapping

from zeroclaw.redact.disguise import (
    CHECKED,
    DOT,
    begun,
    folded,
    folded_from,
    is_lookalike,
    key,
    key_from,
    without_names,
)
from zeroclaw.redact.known import (
    LONGEST_VALUE,
    MARKER,
    SHORTEST_VALUE,
    KnownState,
    automaton,
    forms,
    holds_marker,
    known_feed,
    occurrences,
)
from zeroclaw.redact.shapes import (
    LONG_WORD,
    LONGEST_WORD,
    PIECE,
    Mode,
    ShapeState,
    is_begun,
    shape_feed,
)
from zeroclaw.value import Value

__all__ = [
    "CHECKED",
    "DOT",
    "LONGEST_VALUE",
    "LONGEST_WORD",
    "MARKER",
    "SHORTEST_VALUE",
    "Redaction",
    "Redactor",
    "folded",
    "folded_from",
    "holds_marker",
    "is_lookalike",
    "secret_environment",
    "without_credentials",
    "without_names",
]

_SECRET_NAMES = ("TOKEN", "KEY", "SECRET", "PASSWORD")
_BLOCK = 2048  # characters; of a longer text each block without a telling word is passed at once

SHOWN_OF_A_VALUE = 4
"""Characters; a longer end of a text that begins a known value is held back while it grows."""

SURE_VALUE = 12
"""Letters and digits; a value with so many is known by them alone."""

_NOTHING_KNOWN = KnownState()
_NOTHING_SHAPED = ShapeState()


def secret_environment(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables whose name says that they are secret and that are long enough."""
    return {
        name: value
        for name, value in environment.items()
        if len(value) >= SHORTEST_VALUE and any(word in name.upper() for word in _SECRET_NAMES)
    }


def without_credentials(url: str) -> str:
    """Return an address as it may be printed: without user, password, query and fragment.

    `…` stands where something was left out. An `@` that comes late counts as the end of a password
    as well, for people write one that holds a slash without encoding it.
    """
    scheme, slashes, rest = url.partition("://") if "://" in url else ("", "", url)
    _, at, place = rest.rpartition("@")
    shown, *left_out = re.split("[?#]", place, maxsplit=1)
    return f"{scheme}{slashes}{'…@' if at else ''}{shown}{'?…' if left_out else ''}"


class Redaction(Value):
    """What one stream holds back between two pieces of text; it may hold a secret.

    `Redaction()` is the beginning of a stream. `repr` shows none of the text.
    """

    known: KnownState = _NOTHING_KNOWN
    shape: ShapeState = _NOTHING_SHAPED


class Redactor:
    """Takes known values and well-known shapes of secrets out of text; immutable.

    Args:
        secrets: Known values; those shorter than `SHORTEST_VALUE` are not looked for.
        references: Where each known value comes from, by the value.
    """

    __slots__ = ("_automaton", "_keys", "_references", "_values")

    def __init__(
        self, secrets: Iterable[str] = (), *, references: Mapping[str, str] | None = None
    ) -> None:
        self._references = references or {}
        values = dict.fromkeys((*secrets, *self._references))
        self._values = tuple(one for one in values if len(one) >= SHORTEST_VALUE)
        needles = forms(self._values)
        self._automaton = automaton(needles)
        bare = {one: key(folded(one), bare=True) for one in needles}
        short = {
            one: key(folded(one), bare=False) for one in needles if len(bare[one]) < SURE_VALUE
        }
        # A password may be a word but for its signs, and the word is no secret.
        self._keys = {
            True: tuple(one for one in set(bare.values()) if len(one) >= SURE_VALUE),
            False: tuple(one for one in set(short.values()) if len(one) >= SHORTEST_VALUE),
        }

    def references_in(self, text: str) -> tuple[tuple[int, int, str], ...]:
        """Return where known values stand as they are: start, end, and the secret's reference.

        In order; one value inside another is part of it. None at all where two overlap, so that no
        reference says what stands there.
        """
        found = sorted(
            (start, -end, self._references.get(value, "a secret"))
            for value in self._values
            for start, end in occurrences(value, text)
        )
        named: list[tuple[int, int, str]] = []
        for start, end, reference in found:
            last = named[-1][1] if named else 0
            if -end <= last:
                continue
            if start < last:
                return ()
            named.append((start, -end, reference))
        return tuple(named)

    def redact(self, text: str) -> str:
        """Return a whole text without its secrets."""
        return self._step(Redaction(), text, final=True)[1]

    def finds(self, text: str, *, known_only: bool = False) -> bool:
        """Tell whether a whole text holds a secret, for what can't be redacted and goes on or not.

        Unlike `redact` it lets words pass that are too long to be judged: an embedded image is no
        secret. Known values are found in those as well.

        Args:
            text: Whole.
            known_only: Look for known values alone; in data much looks like a credential.
        """
        automaton = self._automaton
        if automaton and known_feed(automaton, _NOTHING_KNOWN, text, final=True)[1] != text:
            return True
        if known_only:
            return False
        short = LONG_WORD.sub(" ", text)
        return _SHAPES.redact(short) != short

    def in_reading(self, reading: str, *, growing: bool = False) -> list[tuple[int, int]]:
        """Return where what a person will read holds a secret, however it was disguised.

        Args:
            reading: The text without its markup, `folded`.
            growing: More may follow, so an end that begins a known value, or a word that begins
                like a credential, counts as well.
        """
        state, safe = _SHAPES.feed(Redaction(), reading)
        found = _shaped(reading) if safe + _SHAPES.flush(state) != reading else []
        if growing and is_begun(state.shape):
            found.append((len(reading) - len(state.shape.text), len(reading)))
        for bare, keys in self._keys.items():
            spelled = key(reading, bare=bare) if keys else ""
            tail = begun(keys, spelled, least=SHOWN_OF_A_VALUE) if growing else 0
            if not tail and not any(one in spelled for one in keys):
                continue
            spelled, came = key_from(reading, bare=bare)
            known = [place for one in keys for place in occurrences(one, spelled)]
            known += [(len(spelled) - tail, len(spelled))] * bool(tail)
            found += [(came[start], came[end - 1] + 1) for start, end in known]
        return found

    def feed(self, state: Redaction, text: str) -> tuple[Redaction, str]:
        """Take the next piece of a stream; return what may be shown of all so far."""
        return self._step(state, text, final=False)

    def flush(self, state: Redaction) -> str:
        """End a stream; return what was still held, redacted."""
        return self._step(state, "", final=True)[1]

    def _step(self, state: Redaction, text: str, *, final: bool) -> tuple[Redaction, str]:
        known, shape = state.known, state.shape
        if self._automaton is not None:
            known, text = known_feed(self._automaton, known, text, final=final)
        out: list[str] = []
        for start in range(0, max(len(text), 1), _BLOCK):
            last = final and start + _BLOCK >= len(text)
            shape, safe = shape_feed(shape, text[start : start + _BLOCK], final=last)
            out.append(safe)
        return Redaction(known=known, shape=shape), "".join(out)


_SHAPES = Redactor()


def _shaped(text: str) -> list[tuple[int, int]]:
    """Return where `shape_feed` changes a text: word by word, what comes out is compared."""
    found: list[tuple[int, int]] = []
    state, done = _NOTHING_SHAPED, 0
    for piece in PIECE.finditer(text):
        end = piece.end()
        state, safe = shape_feed(state, piece[0], final=end == len(text))
        upto = end - len(state.text) if state.mode is Mode.WORDS else end
        if safe != text[done:upto]:
            # What ended the word came out behind it.
            after = len(piece[0]) if not piece[1] and safe.endswith(piece[0]) else 0
            found.append((done, upto - after))
        done = upto
    return found
