"""Detects a turn that loops, from the turn's own rounds of calls.

A round (one batch of calls) is stale if its calls gave the model no new information: each repeats an
earlier call and got the same result. The count is the number of consecutive stale rounds plus one
for the original: a call made eight times counts eight, and two calls that alternate, or three that
rotate, count as well. A new result or a message from the person resets the count.

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
quote the call. Calls of a tool that are denied for the same reason are near-equal, whatever their
arguments. A near-equal call that changed something is never stale, even if its result reads the
same: a model that labels twenty issues reads `done` twenty times.

The rounds are folded from the journal, and the judgement is an entry in it (`BatchAppended`). So a
restart finds both, and a later release that counts differently does not reinterpret old turns.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Literal

from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.gate.action import canonical_json, parse_arguments
from zeroclaw.gate.receipt import detach
from zeroclaw.text.escape import escape_invisible, shortened
from zeroclaw.turn.batch import Slot
from zeroclaw.turn.states import TurnLimits
from zeroclaw.value import Value, replace

PAGING = frozenset(
    {
        "offset", "limit", "page", "start_line", "end_line", "cursor", "after", "before",
        "next_page_token", "page_token", "skip", "first_line", "max_lines",
    }
)  # fmt: skip
"""Arguments that select a part of something (S4-18); the last two are those of `read_file`."""
BOUNDS = frozenset({"timeout", "timeout_s", "timeout_ms", "retries"})
"""Arguments that bound a call without changing its meaning; `timeout_s` is that of `shell`."""
MAX_ROUNDS = 64
"""Rounds that are kept; a turn has 50 unless configured otherwise."""
MAX_CALLS = 32
"""Calls kept per round; further calls are ignored."""
PATIENCE = 4
"""Factor on the limits when results differ in digits, which may be a job making progress."""
MAX_QUOTED, QUOTED_CHARS = 3, 160
"""Calls quoted in the warning to the model, and characters of each call's arguments."""


class CallRecord(Value):
    """One call and its result.

    Attributes:
        values: A digest of each argument, by name.
        result: A digest of the result.
        gist: A digest of the result without its digits.
        did_run: It ran and did not fail, so it may have changed something.
        excerpt: The beginning of its arguments.
        repeats: How it repeats an earlier call with the same result; `noisy` if only the gist is
            the same.
    """

    tool: str
    values: tuple[tuple[str, str], ...]
    result: str
    gist: str
    did_run: bool
    excerpt: str
    repeats: Literal["", "equal", "near", "noisy"] = ""


class Round(Value):
    """The calls of one batch; `warned` if the runtime warned the model after it."""

    calls: tuple[CallRecord, ...]
    warned: bool = False


Rounds = tuple[Round, ...]


class Judgement(Value):
    """The verdict on the newest round; both fields are empty if it is no loop.

    Attributes:
        warning: The warning for the model.
        loop: The tools that loop; the turn ends.
    """

    warning: str = ""
    loop: tuple[str, ...] = ()


def append_round(rounds: Rounds, slots: Iterable[Slot], *, warned: bool = False) -> Rounds:
    """Return the rounds with a complete batch appended."""
    earlier = [call for round_ in rounds for call in round_.calls]
    last = rounds[-1].calls if rounds else ()
    calls = tuple(_record(slot, earlier, last) for slot in islice(slots, MAX_CALLS))
    return (*rounds, Round(calls=calls, warned=warned))[-MAX_ROUNDS:]


def judge(rounds: Rounds, limits: TurnLimits, changes: Callable[[str], bool]) -> Judgement:
    """Return the verdict on the newest round.

    Args:
        rounds: The rounds since the person's last message.
        limits: `max_repeats` ends the turn, 0 turns the detection off; `warn_repeats` warns the model.
        changes: Whether calls of a tool may change something.
    """
    stale: list[Round] = []
    # In halves, see above; starts at 2 (one whole round) for the original.
    count, patience, reached = 2, 1, 0.0
    for round_ in reversed(rounds):
        if not all(_is_stale(call, changes) for call in round_.calls):
            break
        stale.append(round_)
        kinds = {call.repeats for call in round_.calls}
        count += 1 if "near" in kinds else 2
        if "noisy" in kinds:
            patience = PATIENCE
        reached = max(reached, count / patience)
    calls = Counter((call.tool, call.excerpt) for round_ in stale for call in round_.calls)
    if 0 < 2 * limits.max_repeats <= reached:
        return Judgement(loop=tuple(dict.fromkeys(tool for tool, _ in calls)))
    is_due = limits.max_repeats and 0 < 2 * limits.warn_repeats <= reached
    if is_due and not any(round_.warned for round_ in stale):
        lines = "".join(
            f"\n- `{tool}` with {excerpt} ({times} times)"
            for (tool, excerpt), times in calls.most_common(MAX_QUOTED)
        )
        return Judgement(warning=_WARNING.format(count=len(stale) + 1, lines=lines))
    return Judgement()


_WARNING = (
    "[From the runtime, not from a person: the last {count} rounds of calls told you nothing new. "
    "You repeated, with the same result but for numbers at most:{lines}\n"
    "Do something else, or answer with what you have and say what is missing. If it goes on like "
    "this, the turn is ended.]"
)


def _is_stale(call: CallRecord, changes: Callable[[str], bool]) -> bool:
    if call.repeats == "near":
        return not (call.did_run and changes(call.tool))
    return bool(call.repeats)


def _record(slot: Slot, earlier: Iterable[CallRecord], last: Iterable[CallRecord]) -> CallRecord:
    text, _ = detach("" if slot.result is None else slot.result.content)
    output = text.encode(errors="surrogatepass")
    arguments = escape_invisible(" ".join(slot.call.arguments.split())) or "{}"
    record = CallRecord(
        tool=slot.call.name,
        values=_values(slot.call.arguments),
        result=_digest(output),
        gist=_digest(output.translate(None, b"0123456789")),
        did_run=slot.outcome == "ok",
        excerpt=shortened(arguments, QUOTED_CHARS),
    )
    of_tool = [call for call in earlier if call.tool == record.tool]
    same_gist = [call for call in of_tool if call.gist == record.gist]
    same_result = [call for call in same_gist if call.result == record.result]
    for kind, calls in (("equal", same_result), ("noisy", same_gist)):
        if equal := [call for call in calls if call.values == record.values]:
            is_second_look = len(equal) == 1 and not any(call is equal[0] for call in last)
            return record if is_second_look else replace(record, repeats=kind)
    failed = [call for call in of_tool if not (call.did_run or record.did_run)]
    is_denied = slot.outcome == "denied" and same_result
    if is_denied or any(_is_near(call.values, record.values) for call in (*same_result, *failed)):
        return replace(record, repeats="near")
    return record


def _values(arguments: str) -> tuple[tuple[str, str], ...]:
    try:
        parsed = parse_arguments(arguments)
    except ToolArgumentsInvalid:
        return (("", _digest(arguments.encode(errors="surrogatepass"))),)
    keys = sorted(parsed.keys() - BOUNDS)
    return tuple((key, _digest(canonical_json(parsed[key]).encode())) for key in keys)


def _is_near(first: tuple[tuple[str, str], ...], second: tuple[tuple[str, str], ...]) -> bool:
    if [key for key, _ in first] != [key for key, _ in second]:
        return False
    pairs = zip(first, second, strict=True)
    is_equal = [value == other for value, other in pairs if value[0] not in PAGING]
    return not all(is_equal) and 2 * sum(is_equal) >= len(is_equal)


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=12).hexdigest()
