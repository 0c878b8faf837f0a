"""The receipt screen: what a person sees instead of the receipts in a model's answer (P7).

Everything that begins like a receipt is replaced, in any case and with any dashes: an issued
receipt by its plain form, everything else by a warning. A model's imitation of the mark for a true
receipt gets the warning as well. Before an answer is shown, `take_out` removes the true ones: what
they prove is shown next to the text, in a form that no text can have. The screen runs after the
redactor and before the draft, and streams like the redactor: the output depends on the text, not on
how it was cut.

The model writes Markdown, and a channel shows something else: entities, escapes, emphasis and
lookalikes can turn harmless text into a receipt, or a secret. So `screen_shown` checks again, on
the text as a person will read it. By then no text contains a true receipt.
"""

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from urllib.parse import unquote

from zeroclaw.envelope import CheckedReceipt
from zeroclaw.gate.receipt import ANY_DASH, DASHES, PREFIX, PREFIX_PLAIN, issued_at
from zeroclaw.redact import CHECKED, DOT, MARKER, Redactor, folded, folded_from, without_names
from zeroclaw.value import Value

Lookup = Callable[[str], CheckedReceipt | None]
"""Returns what a well-formed token proves; None for one not issued here, or not for this."""

FALSE_MARK = "⚠️ false receipt"

_TRUE = re.compile(r"\[receipt: (zc-receipt-[0-9]+-[A-Za-z0-9_-]{43})\]")
_LONGEST_RUN = 200  # characters; a longer run can't be a token, so it is not held back

_RUN = f"[A-Za-z0-9_{DASHES}]"
_RUN_ENDS = re.compile(f"[^A-Za-z0-9_{DASHES}]")

# Each is a sequence of parts, because every prefix of it must be recognised as well.
_RECEIPT = tuple(f"[{letter}{letter.upper()}]" for letter in "receipt")
_TOKEN = (*PREFIX, f"{_RUN}{{1,{_LONGEST_RUN}}}+")
_BRACKETED = (r"\[", *_RECEIPT, ":", "[ ]?", "`?", *_TOKEN, "`?", r"\]")
_QUOTED = ("`", *_TOKEN, "`")
_CHECKED_RECEIPT = (
    *("[\u2705\u2714\u2611\U0001f553]", "[\ufe0e\ufe0f]?", "[ \u00a0*_`]{0,4}+"),
    *_RECEIPT,
)
# A true mark continues with one of these; `✅ Receipt uploaded` is an honest line.
_IMITATION = (*_CHECKED_RECEIPT, "[ \u00a0*_`]{0,4}+", "(?=[:\u00b7])")
_INTRODUCED = (*_CHECKED_RECEIPT, "[: \u00a0*_`]{0,6}+", *_TOKEN)


def _whole(name: str, parts: tuple[str, ...], after: str = "") -> str:
    """Return an expression for a sequence, with its token captured under a name."""
    token = "".join(_TOKEN)
    return "".join(parts).replace(token, f"(?P<{name}>{token})") + after


def _begun(parts: tuple[str, ...]) -> str:
    """Return an expression for every prefix of a sequence."""
    nested = ""
    for part in reversed(parts):
        nested = f"{part}(?:{nested})?" if nested else part
    return nested


# These and `_reads_false` are compiled with the first answer: they cost 5 ms of every start.
@cache
def _whole_ones() -> re.Pattern[str]:
    sequences = (
        _whole("long", _TOKEN, f"(?={_RUN})"),
        _whole("introduced", _INTRODUCED, f"(?!{_RUN})"),
        _whole("imitation", _IMITATION),
        _whole("bracketed", _BRACKETED),
        _whole("quoted", _QUOTED),
        _whole("bare", _TOKEN),
    )
    return re.compile("|".join(sequences))


@cache
def _may_begin() -> re.Pattern[str]:
    sequences = (_IMITATION, _INTRODUCED, _BRACKETED, _QUOTED, _TOKEN)
    return re.compile(rf"(?:{'|'.join(map(_begun, sequences))})\Z")


# What may separate two letters that a reader still reads as one word; a page shows any run of
# blanks as one.
_GAP = r"(?:\s*+[\W_]){0,16}\s*+"
_READS_RECEIPT = _GAP.join(("r", "e", "c", "e", "[i1l|]", "p", "t"))
# How a true mark continues: a colon or a dot; `of an earlier run`, also in other words; the
# console's `checked` at the end of a line; tool and outcome with signs around them, the outcome
# after a dot or before a time at any distance.
_OUTCOME = r"(?:ok|failed|denied|cancelled|unknown)\b"
_STYLE = "[ *_`]{0,4}+"
_SIGN = rf"{_STYLE}[-|/,;=~<>()\[\]][:]?{_STYLE}"
_READS_ON = (
    rf"(?:(?![:{DOT}])[\W_]){{0,16}}[:{DOT}]|{_GAP}{_GAP.join('ofanear')}"
    r"|\W{1,4}+(?:of|from)\W{1,4}+(?:(?:an?|the)\W{1,4}+)?(?:earlier|previous|prior)\W{1,4}+runs?\b"
    rf"|\W{{1,4}}+checked\b(?=\W{{0,16}}?(?:[:{DOT}\n]|\Z))"
    rf"|(?:{_SIGN}|\s{{1,4}}+for\s{{1,4}}+)\w{{1,64}}(?:{_SIGN}|{_STYLE}:{_STYLE}){_OUTCOME}"
    rf"|(?:[^\n]{{0,80}}\n)?[^\n]{{0,80}}?(?:{DOT}{_STYLE}{_OUTCOME}|\b{_OUTCOME}\W{{1,4}}(?:at\W)?\d\d?:\d)"
)


@cache
def _reads_false() -> re.Pattern[str]:
    return re.compile(
        rf"z{_GAP}c{_GAP}{_READS_RECEIPT}(?:{_GAP}[0-9][\w-]*+|-\w[\w-]*+)"
        rf"|{CHECKED}{_GAP}(?:(?:authentic|checked|genuine|true|valid|verified){_GAP})?{_READS_RECEIPT}"
        rf"(?={_READS_ON})",
        re.IGNORECASE,
    )


# Characters that reverse the order of Latin letters. Next to right-to-left letters, which need
# them, the last two may stay.
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_MAY_TURN = re.compile("[\u200f\u061c\u202a-\u202e\u2066-\u2069]")
_TURNS = re.compile(
    "[\u202a-\u202e\u2066-\u2069]"
    rf"|(?<![{_RIGHT_TO_LEFT}])(?<![{_RIGHT_TO_LEFT}]\W)[\u200f\u061c](?!\W?[{_RIGHT_TO_LEFT}])"
)
# A person who opens an address sees and sends the characters that its numbers encode.
_NUMBERED = re.compile("%[0-9A-Fa-f]{2}")
_WORD = re.compile(r"\S+")


class Screening(Value):
    """What one answer's stream holds back; `Screening()` is the beginning.

    Attributes:
        text: Seen but not shown: the beginning of something that may be a receipt.
        in_run: The rest of a false receipt is still arriving, and is dropped.
    """

    text: str = ""
    in_run: bool = False


def feed(state: Screening, text: str, lookup: Lookup) -> tuple[Screening, str]:
    """Add the next piece of an answer; return the text that may be shown now."""
    return _step(state, text, lookup, final=False)


def flush(state: Screening, lookup: Lookup) -> str:
    """End an answer; return what was still held back, marked."""
    return _step(state, "", lookup, final=True)[1]


def screen(text: str, lookup: Lookup) -> str:
    """Return a whole answer with its receipts marked."""
    state, shown = feed(Screening(), text, lookup)
    return shown + flush(state, lookup)


def screen_shown(text: str, redactor: Redactor, *, growing: bool = False) -> str:
    """Return a text as it may be shown: each secret and receipt in it masked; mostly unchanged.

    Also removes characters that make a display show Latin letters in another order than they are
    checked in.

    Args:
        text: What a person will read, without the markup.
        redactor: Knows the secrets.
        growing: More may follow; an end that begins a secret is masked as well.
    """
    if not text.isascii() and _MAY_TURN.search(text):
        text = _TURNS.sub("", text)
    if (drawn := without_names(text)) != text:
        shown = _masked(drawn, redactor, growing=growing)
        return text if shown == drawn else shown
    return _masked(text, redactor, growing=growing)


def _masked(text: str, redactor: Redactor, *, growing: bool) -> str:
    """Return a text with each secret and receipt that a person would read in it masked."""
    reading = folded(text)
    found = [(*one, MARKER) for one in redactor.in_reading(reading, growing=growing)]
    found += [(*one.span(), FALSE_MARK) for one in _reads_false().finditer(reading)]
    if "%" in reading:
        found += [(*one, MARKER) for one in _in_numbers(reading, redactor, growing=growing)]
    if not found:
        return text
    _, came = folded_from(text)
    out: list[str] = []
    done = 0
    for start, end, marker in sorted(found):
        first, last = came[start], came[end - 1] + 1
        if last <= done:
            continue
        if first > done or not out or out[-1] != marker:
            out += text[done : max(first, done)], marker
        done = last
    return "".join((*out, text[done:]))


def _in_numbers(reading: str, redactor: Redactor, *, growing: bool) -> list[tuple[int, int]]:
    """Return the words that contain a secret once their percent-encoding is decoded."""
    words = [one for one in _WORD.finditer(reading) if _NUMBERED.search(one[0])]
    # Checked as one text: word by word would cost many times as much.
    pieces = [f"{folded(unquote(one[0]))}\n" for one in words]
    ends = list(accumulate(map(len, pieces)))
    hit = {
        at
        for start, end in redactor.in_reading("".join(pieces), growing=growing)
        for at in range(bisect_right(ends, start), bisect_right(ends, end - 1) + 1)
    }
    return [words[at].span() for at in sorted(hit)]


def take_out(text: str, lookup: Lookup, instead: str) -> tuple[str, tuple[CheckedReceipt, ...]]:
    """Return a screened text without its receipts, and what these prove, each once.

    Args:
        text: As `feed` and `flush` returned it.
        lookup: Looks up the receipts; one that is unknown after all is false.
        instead: The text that replaces a true one.
    """
    if PREFIX_PLAIN not in text:
        return text, ()
    found: dict[str, CheckedReceipt] = {}

    def out(written: re.Match[str]) -> str:
        true = lookup(written[1])
        if true is None:
            return FALSE_MARK
        found[true.token] = true
        return instead

    return _TRUE.sub(out, text), tuple(found.values())


def _marked(found: re.Match[str], lookup: Lookup) -> str:
    """Return the mark for a receipt that the model wrote; dashes and case of the prefix don't matter."""
    token = found["introduced"] or found["bracketed"] or found["quoted"] or found["bare"]
    if not token:
        return FALSE_MARK
    token = PREFIX_PLAIN + ANY_DASH.sub("-", token[len(PREFIX_PLAIN) :])
    is_false = issued_at(token) is None or lookup(token) is None
    return FALSE_MARK if is_false else f"[receipt: {token}]"


def _step(state: Screening, text: str, lookup: Lookup, *, final: bool) -> tuple[Screening, str]:
    buffer, in_run = state.text + text, state.in_run
    out: list[str] = []
    at = 0
    begun = None if final else _may_begin().search(buffer)
    while True:
        if in_run:
            ends = _RUN_ENDS.search(buffer, at)
            if ends is None:
                return Screening(in_run=True), "".join(out)
            at, in_run = ends.start(), False
        if begun and begun.start() < at:
            begun = _may_begin().search(buffer, at)
        found = _whole_ones().search(buffer, at)
        held = begun.start() if begun else len(buffer)
        if found is None or held <= found.start():
            out.append(buffer[at:held])
            return Screening(text=buffer[held:]), "".join(out)
        out += buffer[at : found.start()], _marked(found, lookup)
        at, in_run = found.end(), found["long"] is not None
