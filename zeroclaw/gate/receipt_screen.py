"""The receipt screen: marks the receipts in a model's answer as true or false (P7).

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


def _complete(name: str, parts: tuple[str, ...], after: str = "") -> str:
    """Return an expression for a sequence, with its token captured under a name."""
    token = "".join(_TOKEN)
    return "".join(parts).replace(token, f"(?P<{name}>{token})") + after


def _prefixes_of(parts: tuple[str, ...]) -> str:
    """Return an expression for every prefix of a sequence."""
    nested = ""
    for part in reversed(parts):
        nested = f"{part}(?:{nested})?" if nested else part
    return nested


# These and `_reads_false` are compiled at the first answer: they cost 5 ms of every start.
@cache
def _receipts() -> re.Pattern[str]:
    sequences = (
        _complete("long", _TOKEN, f"(?={_RUN})"),
        _complete("introduced", _INTRODUCED, f"(?!{_RUN})"),
        _complete("imitation", _IMITATION),
        _complete("bracketed", _BRACKETED),
        _complete("quoted", _QUOTED),
        _complete("bare", _TOKEN),
    )
    return re.compile("|".join(sequences))


@cache
def _receipt_start() -> re.Pattern[str]:
    sequences = (_IMITATION, _INTRODUCED, _BRACKETED, _QUOTED, _TOKEN)
    return re.compile(rf"(?:{'|'.join(map(_prefixes_of, sequences))})\Z")


# The gap between two letters that a reader still reads as one word; a page shows any run of
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
    """The state of one answer's stream; `Screening()` is the beginning.

    Attributes:
        text: Received but not shown: the beginning of a possible receipt.
        in_run: The rest of a false receipt is still arriving, and is dropped.
    """

    text: str = ""
    in_run: bool = False


def feed(state: Screening, text: str, lookup: Lookup) -> tuple[Screening, str]:
    """Add the next piece of an answer; return the text that may be shown now."""
    return _step(state, text, lookup, final=False)


def flush(state: Screening, lookup: Lookup) -> str:
    """End an answer; return the rest that was not shown yet, marked."""
    return _step(state, "", lookup, final=True)[1]


def screen(text: str, lookup: Lookup) -> str:
    """Return a whole answer with its receipts marked."""
    state, marked = feed(Screening(), text, lookup)
    return marked + flush(state, lookup)


def screen_shown(text: str, redactor: Redactor, *, growing: bool = False) -> str:
    """Return a text as it may be shown: each secret and receipt in it masked; mostly unchanged.

    Also removes characters that make a display show Latin letters in another order than this
    function checks them in.

    Args:
        text: The text as a person will read it, without the markup.
        redactor: Knows the secrets.
        growing: More may follow; an end that begins a secret is masked as well.
    """
    if not text.isascii() and _MAY_TURN.search(text):
        text = _TURNS.sub("", text)
    if (drawn := without_names(text)) != text:
        masked = _masked(drawn, redactor, growing=growing)
        return text if masked == drawn else masked
    return _masked(text, redactor, growing=growing)


def _masked(text: str, redactor: Redactor, *, growing: bool) -> str:
    """Return a text with each secret and receipt that a person would read in it masked."""
    reading = folded(text)
    spans = [(*span, MARKER) for span in redactor.in_reading(reading, growing=growing)]
    spans += [(*match.span(), FALSE_MARK) for match in _reads_false().finditer(reading)]
    if "%" in reading:
        spans += [(*span, MARKER) for span in _in_numbers(reading, redactor, growing=growing)]
    if not spans:
        return text
    _, origins = folded_from(text)
    pieces: list[str] = []
    done = 0
    for start, end, marker in sorted(spans):
        first, last = origins[start], origins[end - 1] + 1
        if last <= done:
            continue
        if first > done or not pieces or pieces[-1] != marker:
            pieces += text[done:first], marker
        done = last
    return "".join((*pieces, text[done:]))


def _in_numbers(reading: str, redactor: Redactor, *, growing: bool) -> list[tuple[int, int]]:
    """Return the words that contain a secret once their percent-encoding is decoded."""
    words = [word for word in _WORD.finditer(reading) if _NUMBERED.search(word[0])]
    # Checked as one text: word by word would cost many times as much.
    pieces = [f"{folded(unquote(word[0]))}\n" for word in words]
    ends = list(accumulate(map(len, pieces)))
    hits = {
        index
        for start, end in redactor.in_reading("".join(pieces), growing=growing)
        for index in range(bisect_right(ends, start), bisect_right(ends, end - 1) + 1)
    }
    return [words[index].span() for index in hits]


def take_out(text: str, lookup: Lookup, replacement: str) -> tuple[str, tuple[CheckedReceipt, ...]]:
    """Return a screened text without its receipts, and the true ones among them, each once.

    Args:
        text: As `feed` and `flush` returned it.
        lookup: Looks up the receipts; an unknown one is false.
        replacement: The text in place of a true one.
    """
    if PREFIX_PLAIN not in text:
        return text, ()
    receipts: dict[str, CheckedReceipt] = {}

    def replaced(match: re.Match[str]) -> str:
        checked = lookup(match[1])
        if checked is None:
            return FALSE_MARK
        receipts[checked.token] = checked
        return replacement

    return _TRUE.sub(replaced, text), tuple(receipts.values())


def _marked(match: re.Match[str], lookup: Lookup) -> str:
    """Return the mark for a receipt in the model's text, with any dashes and case of the prefix."""
    token = match["introduced"] or match["bracketed"] or match["quoted"] or match["bare"]
    if not token:
        return FALSE_MARK
    token = PREFIX_PLAIN + ANY_DASH.sub("-", token[len(PREFIX_PLAIN) :])
    is_false = issued_at(token) is None or lookup(token) is None
    return FALSE_MARK if is_false else f"[receipt: {token}]"


def _step(state: Screening, text: str, lookup: Lookup, *, final: bool) -> tuple[Screening, str]:
    buffer, in_run = state.text + text, state.in_run
    shown: list[str] = []
    position = 0
    start = None if final else _receipt_start().search(buffer)
    while True:
        if in_run:
            run_end = _RUN_ENDS.search(buffer, position)
            if run_end is None:
                return Screening(in_run=True), "".join(shown)
            position, in_run = run_end.start(), False
        if start and start.start() < position:
            start = _receipt_start().search(buffer, position)
        match = _receipts().search(buffer, position)
        limit = start.start() if start else len(buffer)
        if match is None or limit <= match.start():
            shown.append(buffer[position:limit])
            return Screening(text=buffer[limit:]), "".join(shown)
        shown += buffer[position : match.start()], _marked(match, lookup)
        position, in_run = match.end(), match["long"] is not None
