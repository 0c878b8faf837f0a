"""Tells that a turn goes in circles, from the turn's own log of calls.

A round (one batch of calls) is stale when none of its calls told the model anything new: each
repeats an earlier call and came to the same result. Stale rounds in a row are counted, with one
more for what they repeat: a call that is made eight times counts eight, and two that alternate, or
three that go round, count as well. One new result, or a word of the person, and the count begins
anew.

    repeats    equal: every argument is the same; and near-equal: the same keys, and at least half of
               the values. Calls that differ in nothing but paging never repeat each other (S4-18),
               and how long a call may take is none of what it asks for.
    same       the result says the same, its receipt apart. A call whose result changed is progress:
               what waits for a job and reads `40 %`, then `60 %`, goes in no circle, and a search in
               other words that finds something else does not either.

A second look is no circle: who reads ten files and then all of them once more, or turns pages back,
checks something. So an equal call counts from its third time on, or where it follows upon itself.

An equal call whose result differs in nothing but digits, such as the time that tests took or the number
of the process that died, is stale as well. But a job that gets on reads like that too: while there is
such a round among them, four times as many are let be.

A round with a near-equal call counts half: a model that looks for ten words that are nowhere reads
`nothing found` ten times. Of two that failed the errors may differ, for they quote the calls. And one
that changed something is new though its result reads like the others': a model that labels twenty issues
reads `done` twenty times.

What is counted is folded from the journal, and what follows from it is an entry of it
(`BatchAppended`): a restart finds both, and a later release that counts otherwise reads no old turn
otherwise.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.gate.action import canonical_json, parse_arguments
from zeroclaw.gate.receipt import detach
from zeroclaw.message import ToolCall, ToolMessage
from zeroclaw.text.escape import escape_invisible
from zeroclaw.value import Value, replace

PAGING = frozenset(
    {
        "offset", "limit", "page", "start_line", "end_line", "cursor", "after", "before",
        "next_page_token", "page_token", "skip", "first_line", "max_lines",
    }
)  # fmt: skip
"""Arguments that say which part of a thing is wanted (S4-18); the last two are `read_file`'s."""
BOUNDS = frozenset({"timeout", "timeout_s", "timeout_ms", "retries"})
"""Arguments that bound a call and change nothing of what is asked for; the second is `shell`'s."""
MOST_ROUNDS = 64
"""Rounds of the log; a turn has 50 unless configured otherwise."""
MOST_CALLS = 32
"""Of one round; what a model asks for beyond them is not looked at."""
PATIENCE = 4
"""How many times as many rounds may repeat where numbers change, which may be a job that gets on."""
MOST_SHOWN, SHOWN_CHARS = 3, 160
"""Calls that the model is reminded of, and characters of each one's arguments."""


class Ended(Protocol):
    """A call of a complete batch, as its slot holds it."""

    @property
    def call(self) -> ToolCall:
        """As the model wrote it."""
        ...

    @property
    def result(self) -> ToolMessage | None:
        """What the model read."""
        ...

    @property
    def outcome(self) -> str | None:
        """`ok` for one that ran and did not fail."""
        ...


class Made(Value):
    """One call, and what it came to.

    Attributes:
        values: A digest of each argument, by name.
        result: A digest of what the model read.
        gist: The same, but for digits.
        did_run: It ran and did not fail, so it may have changed something.
        shown: The beginning of its arguments.
        repeats: What it is to an earlier call with the same result; `noisy` with the same gist alone.
    """

    tool: str
    values: tuple[tuple[str, str], ...]
    result: str
    gist: str
    did_run: bool
    shown: str
    repeats: Literal["", "equal", "near", "noisy"] = ""


class Round(Value):
    """The calls of one batch; `warned` when the model was told that they repeat."""

    calls: tuple[Made, ...]
    warned: bool = False


Log = tuple[Round, ...]


class Judgement(Value):
    """What is to be done about the newest round; both empty for nothing.

    Attributes:
        word: What the model is told.
        loop: The tools whose calls end the turn.
    """

    word: str = ""
    loop: tuple[str, ...] = ()


def extended(log: Log, slots: Iterable[Ended], *, warned: bool = False) -> Log:
    """Return the log with a complete batch."""
    earlier = [one for made in log for one in made.calls]
    last = log[-1].calls if log else ()
    few = zip(slots, range(MOST_CALLS), strict=False)
    calls = tuple(_made(slot, earlier, last) for slot, _ in few)
    return (*log, Round(calls=calls, warned=warned))[-MOST_ROUNDS:]


def judged(log: Log, *, most: int, warn: int, changes: Callable[[str], bool]) -> Judgement:
    """Return what is to be done, now that the newest round of the log is complete.

    Args:
        log: Since the person said something.
        most: Rounds that end the turn, see `Limits.max_repeats`; 0 for none of this.
        warn: Rounds of which the model is told, 0 for never.
        changes: Tells whether calls of a tool may change something.
    """
    stale: list[Round] = []
    # In halves, see above; the two are for what the first of them repeats.
    count, patience, reached = 2, 1, 0.0
    for made in reversed(log):
        if not all(_is_stale(one, changes) for one in made.calls):
            break
        stale.append(made)
        kinds = {one.repeats for one in made.calls}
        count += 1 if "near" in kinds else 2
        if "noisy" in kinds:
            patience = PATIENCE
        reached = max(reached, count / patience)
    calls = Counter((one.tool, one.shown) for made in stale for one in made.calls)
    if 0 < 2 * most <= reached:
        return Judgement(loop=tuple(dict.fromkeys(tool for tool, _ in calls)))
    is_due = most and 0 < 2 * warn <= reached
    if is_due and not any(made.warned for made in stale):
        lines = "".join(
            f"\n- `{tool}` with {shown} ({times} times)"
            for (tool, shown), times in calls.most_common(MOST_SHOWN)
        )
        return Judgement(word=_WORD.format(count=len(stale) + 1, lines=lines))
    return Judgement()


_WORD = (
    "[From the runtime, not from a person: the last {count} rounds of calls told you nothing new. "
    "You repeated, with the same result but for numbers at most:{lines}\n"
    "Do something else, or answer with what you have and say what is missing. If it goes on like "
    "this, the turn is ended.]"
)


def _is_stale(one: Made, changes: Callable[[str], bool]) -> bool:
    if one.repeats == "near":
        return not (one.did_run and changes(one.tool))
    return bool(one.repeats)


def _made(slot: Ended, earlier: Iterable[Made], last: Iterable[Made]) -> Made:
    call, result = slot.call, slot.result
    text, _ = detach("" if result is None else result.content)
    shown = escape_invisible(" ".join(call.arguments.split())) or "{}"
    said = text.encode(errors="surrogatepass")
    made = Made(
        tool=call.name,
        values=_values(call.arguments),
        result=_digest(said),
        gist=_digest(said.translate(None, b"0123456789")),
        did_run=slot.outcome == "ok",
        shown=shown if len(shown) <= SHOWN_CHARS else f"{shown[:SHOWN_CHARS]}…",
    )
    like = [one for one in earlier if (one.tool, one.gist) == (made.tool, made.gist)]
    alike = [one for one in like if one.result == made.result]
    for kind, found in (("equal", alike), ("noisy", like)):
        if equal := [one for one in found if one.values == made.values]:
            is_second_look = len(equal) == 1 and not any(one is equal[0] for one in last)
            return made if is_second_look else replace(made, repeats=kind)
    failed = (one for one in earlier if one.tool == made.tool and not (one.did_run or made.did_run))
    if any(_is_near(one.values, made.values) for one in (*alike, *failed)):
        return replace(made, repeats="near")
    return made


def _values(arguments: str) -> tuple[tuple[str, str], ...]:
    try:
        parsed = parse_arguments(arguments)
    except ToolArgumentsInvalid:
        return (("", _digest(arguments.encode(errors="surrogatepass"))),)
    keys = sorted(parsed.keys() - BOUNDS)
    return tuple((key, _digest(canonical_json(parsed[key]).encode())) for key in keys)


def _is_near(one: tuple[tuple[str, str], ...], other: tuple[tuple[str, str], ...]) -> bool:
    if [key for key, _ in one] != [key for key, _ in other]:
        return False
    pairs = zip(one, other, strict=True)
    same = [mine == theirs for mine, theirs in pairs if mine[0] not in PAGING]
    return not all(same) and 2 * sum(same) >= len(same)


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=12).hexdigest()
