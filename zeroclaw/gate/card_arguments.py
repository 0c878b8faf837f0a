r"""The arguments of a call as a card shows them: whole, so that nothing can hide in them (P5).

They are shown as JSON text. An invisible character is escaped as JSON escapes it (`\u202e`). So is
a letter of another script that reads as a Latin one within a Latin word, and a Cyrillic one if all
Cyrillic letters of the call have a Latin twin. So parsing the text as JSON gives exactly what the
action's hash binds. Only a value that the daemon knows as a secret is not shown: its reference is
shown instead, as `⟦{env="BOT_TOKEN"}⟧`. If a model writes a bracket of this kind, it
is escaped like an invisible character, so an unescaped one comes from this module.
"""

import json
import re
from collections.abc import Mapping
from typing import cast

from zeroclaw.redact import Redactor, is_lookalike
from zeroclaw.text.escape import is_hidden
from zeroclaw.value import Value

MAX_CARD_CHARS = 60_000
"""Limit of the displayed arguments of all calls on one card; every channel can carry that."""

_OPENING, _CLOSING = "⟦⟧"
# The place of a secret. An action can't contain halves of a surrogate pair.
_MARK_START, _MARK_END = "\ud800", "\udfff"
# An escape is matched whole, or the letter after its backslash would begin a word.
_TO_DISPLAY = re.compile(rf"{_MARK_START}([0-9]+){_MARK_END}|\\.|\w+|[^\n -~]")
# Greek, Cyrillic, Armenian, Cherokee; wide and mathematical forms. Within a Latin word they read as
# Latin letters.
_LOOKS_LATIN = re.compile(
    "[\u0370-\u052f\u0531-\u058f\u13a0-\u13ff\u1c80-\u1c8f\u1f00-\u1fff\ua640-\ua69f\uab70-\uabbf"
    "\uff21-\uff5a\U0001d400-\U0001d7ff]"
)
# Cyrillic and Greek letters that readers can't tell from Latin ones.
_TWINS = frozenset(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u051b\u051d\u04bb"  # aeopcyxijsdqwh
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0408\u0405"  # ABEKMHOPCTYXIJS
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"  # ABEZHIKMNOPTYX
    "\u03bf\u03bd\u03f2\u03f3"  # ovcj
)
_LATIN = re.compile("[A-Za-z]")


class CardArguments(Value):
    """The arguments of one call, as a card shows them.

    Attributes:
        text: JSON; see the module.
        hidden: The reference of each secret that the text names, once for each occurrence.
    """

    text: str
    hidden: tuple[str, ...] = ()


class Unshowable(Value):
    """The call can't be shown whole, so no approver may be asked about it.

    Attributes:
        reason: A line for the model and the audit.
    """

    reason: str


def card_arguments(
    arguments: Mapping[str, object], redactor: Redactor, room: int = MAX_CARD_CHARS
) -> CardArguments | Unshowable:
    """Return the arguments as a card shows them.

    Args:
        arguments: The arguments of a frozen action.
        redactor: Knows the secrets.
        room: Characters left on the card.
    """
    text = _json(arguments)
    if len(text) > room:
        return _too_large(len(text), room)
    hidden: list[str] = []
    if redactor.finds(text, known_only=True):  # else there is nothing to mask, which costs more
        text = _json(_masked(arguments, redactor, hidden))
        if redactor.finds(text, known_only=True):
            reason = "it holds a secret in a form that a card can neither show nor name"
            return Unshowable(reason=reason)

    # A genuine text in another script also uses letters that look like no Latin one.
    is_disguise = all(letter in _TWINS for letter in _LOOKS_LATIN.findall(text))

    def displayed(match: re.Match[str]) -> str:
        if match[1]:
            return f"{_OPENING}{hidden[int(match[1])]}{_CLOSING}"
        text = match[0]
        if text.isascii() and text.isprintable():
            return text
        is_latin = _LATIN.search(text) is not None
        return "".join(
            _display_char(
                char,
                misleads=(is_latin and is_lookalike(char))
                or ((is_latin or is_disguise) and _LOOKS_LATIN.match(char) is not None),
            )
            for char in text
        )

    text = _TO_DISPLAY.sub(displayed, text)
    if len(text) > room:
        return _too_large(len(text), room)
    return CardArguments(text=text, hidden=tuple(hidden))


def _display_char(char: str, *, misleads: bool) -> str:
    """Return one character of the JSON text, escaped if a reader could mistake it."""
    escaped = misleads or is_hidden(char) or char in (_OPENING, _CLOSING)
    return json.dumps(char)[1:-1] if escaped else char


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _too_large(chars: int, room: int) -> Unshowable:
    return Unshowable(
        reason=f"it is too large to be shown whole on a card: {chars:,} characters where {room:,} are "
        "left; make it smaller, or split it"
    )


def _masked(value: object, redactor: Redactor, hidden: list[str]) -> object:
    """Return the value with a mark in place of each secret that has a reference."""
    if isinstance(value, str):
        return _masked_text(value, redactor, hidden)
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return {
            _masked_text(key, redactor, hidden): _masked(item, redactor, hidden)
            for key, item in pairs
        }
    if isinstance(value, list):
        return [_masked(item, redactor, hidden) for item in cast("list[object]", value)]
    return value


def _masked_text(text: str, redactor: Redactor, hidden: list[str]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, reference in redactor.references_in(text):
        pieces += text[done:start], f"{_MARK_START}{len(hidden)}{_MARK_END}"
        hidden.append(reference)
        done = end
    return "".join((*pieces, text[done:]))
