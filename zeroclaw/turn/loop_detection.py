"""Detects a turn that loops, from the turn's own rounds of calls.

A round (one batch of calls) is stale if none of its calls told the model anything new: each repeats
an earlier call and got the same result. The count is the number of consecutive stale rounds plus
one for the original: a call made eight times counts eight, and two calls that alternate, or three
that rotate, count as well. A new result or a message from the person resets the count.

    repeats    equal: all arguments are the same; near-equal: the same keys, and at least half of
               the values. Calls that differ only in paging never repeat each other (S4-18), and
               arguments that only bound a call, such as a time-out, are ignored.
    same       the results are the same apart from the receipt. A changed result is progress:
               polling a job that reports `40 %`, then `60 %`, is no loop, and neither is a
               rephrased search that finds something else.

A second look is no loop: a model that reads ten files and then all of them once more, or pages
back, is checking something. So an equal call counts from its third time on, or when it directly
follows itself.

An equal call whose result differs only in digits, such as how long the tests took or the id of a
process that died, is stale too ("noisy"). But a job that makes progress reads like that as well, so
while the stale rounds include a noisy one, the limits are four times as high.

A round with a near-equal call counts half: a model that searches for ten words that occur nowhere
reads `nothing found` ten times. When two such calls failed, their errors may differ, because errors
quote the call. Calls of a tool that are denied for the same reason are near-equal, whatever they
ask. A near-equal call that changed something is never stale, even if its result reads the same: a
model that labels twenty issues reads `done` twenty times.

The rounds are folded from the journal, and the judgement is an entry in it (`BatchAppended`). So a
restart finds both, and a later release that counts differently does not reinterpret old turns.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Literal

from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.gate.action import canonical_json, parse_arguments
from zeroclaw.gate.receipt import detach
from zeroclaw.text.escape import escape_invisible, shortened
from zeroclaw.turn.batch import Slot
from zeroclaw.value import Value, replace

PAGING = frozenset(
    {
        "offset", "limit", "page", "start_line", "end_line", "cursor", "after", "before",
        "next_page_token", "page_token", "skip", "first_line", "max_lines",
    }
)  # fmt: skip
"""Arguments that select a part of something (S4-18); the last two are those of `read_file`."""
BOUNDS = frozenset({"timeout", "timeout_s", "timeout_ms", "retries"})
"""Arguments that bound a call without changing what it asks for; `timeout_s` is that of `shell`."""
MOST_ROUNDS = 64
"""Rounds that are kept; a turn has 50 unless configured otherwise."""
MOST_CALLS = 32
"""Calls kept per round; further calls are ignored."""
PATIENCE = 4
"""Factor on the limits when results differ in digits, which may be a job making progress."""
MOST_SHOWN, SHOWN_CHARS = 3, 160
"""Calls quoted in the warning to the model, and characters of each call's arguments."""


class Made(Value):
    """One call and its result.

    Attributes:
        values: A digest of each argument, by name.
        result: A digest of the result.
        gist: A digest of the result without its digits.
        did_run: It ran and did not fail, so it may have changed something.
        shown: The beginning of its arguments.
        repeats: How it repeats an earlier call with the same result; `noisy` if only the gist is
            the same.
    """

    tool: str
    values: tuple[tuple[str, str], ...]
    result: str
    gist: str
    did_run: bool
    shown: str
    repeats: Literal["", "equal", "near", "noisy"] = ""


class Round(Value):
    """The calls of one batch; `warned` if the model was told that they repeat."""

    calls: tuple[Made, ...]
    warned: bool = False


Rounds = tuple[Round, ...]


class Judgement(Value):
    """What to do about the newest round; both empty for nothing.

    Attributes:
        word: The warning for the model.
        loop: The tools that loop; the turn is ended.
    """

    word: str = ""
    loop: tuple[str, ...] = ()


def extended(rounds: Rounds, slots: Iterable[Slot], *, warned: bool = False) -> Rounds:
    """Return the rounds with a complete batch appended."""
    earlier = [one for made in rounds for one in made.calls]
    last = rounds[-1].calls if rounds else ()
    few = zip(slots, range(MOST_CALLS), strict=False)
    calls = tuple(_made(slot, earlier, last) for slot, _ in few)
    return (*rounds, Round(calls=calls, warned=warned))[-MOST_ROUNDS:]


def judged(rounds: Rounds, *, most: int, warn: int, changes: Callable[[str], bool]) -> Judgement:
    """Return what to do about the newest round.

    Args:
        rounds: The rounds since the person's last message.
        most: The count that ends the turn, see `Limits.max_repeats`; 0 turns the detection off.
        warn: The count at which the model is warned, 0 for never.
        changes: Whether calls of a tool may change something.
    """
    stale: list[Round] = []
    # In halves, see above; starts at 2 (one whole round) for the original.
    count, patience, reached = 2, 1, 0.0
    for made in reversed(rounds):
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


def _made(slot: Slot, earlier: Iterable[Made], last: Iterable[Made]) -> Made:
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
        shown=shortened(shown, SHOWN_CHARS),
    )
    like = [one for one in earlier if (one.tool, one.gist) == (made.tool, made.gist)]
    alike = [one for one in like if one.result == made.result]
    for kind, found in (("equal", alike), ("noisy", like)):
        if equal := [one for one in found if one.values == made.values]:
            is_second_look = len(equal) == 1 and not any(one is equal[0] for one in last)
            return made if is_second_look else replace(made, repeats=kind)
    failed = (one for one in earlier if one.tool == made.tool and not (one.did_run or made.did_run))
    is_denied = slot.outcome == "denied" and alike
    if is_denied or any(_is_near(one.values, made.values) for one in (*alike, *failed)):
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
