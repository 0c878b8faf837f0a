"""When a turn goes in circles, and when it only looks so (S4-17, S4-18, K22)."""

import json
from collections import Counter
from collections.abc import Iterable
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.house import World
from tests.fakes.scripted_model import LOOK, asks_for, says
from tests.unit.turn.parts import AT, LIMITS, allowed, call, opened, result
from zeroclaw.config.model import RuntimeSettings
from zeroclaw.envelope import ActionId, ItemId
from zeroclaw.message import AssistantMessage, ToolOutcome, UserMessage
from zeroclaw.store import DurablePoint
from zeroclaw.tool import ToolContext, ToolOutput
from zeroclaw.turn import entries
from zeroclaw.turn.batch import Slot
from zeroclaw.turn.journal import History, OpenTurn, extend
from zeroclaw.turn.loop_detection import (
    MAX_CALLS,
    MAX_ROUNDS,
    PAGING,
    Judgement,
    Rounds,
    append_round,
    judge,
)
from zeroclaw.turn.states import Done, TurnLimits

BOUNDS = TurnLimits(max_repeats=8, warn_repeats=5)
SAYS_NOTHING = "nothing found"
WRITE = frozenset({"write"})


def slot(
    arguments: str, came_to: str = SAYS_NOTHING, tool: str = "search", **more: ToolOutcome
) -> Slot:
    made = call(tool, arguments=arguments)
    return Slot(
        call=made, status="ended", result=result(came_to), outcome=more.get("outcome", "ok")
    )


def search(words: str, came_to: str = SAYS_NOTHING, **more: object) -> Slot:
    return slot(json.dumps({"words": words, **more}), came_to)


def log_of(rounds: Iterable[Iterable[Slot]]) -> Rounds:
    return reduce(append_round, (tuple(slots) for slots in rounds), ())


def each(slots: Iterable[Slot]) -> Rounds:
    """A log of rounds with one call each."""
    return log_of((slot,) for slot in slots)


def judgement(rounds: Rounds, bounds: TurnLimits = BOUNDS) -> Judgement:
    return judge(rounds, bounds, WRITE.__contains__)


def ends(rounds: Rounds) -> bool:
    return bool(judgement(rounds).loop)


def repeat(*slots: Slot, rounds: int) -> list[Slot]:
    return [slots[number % len(slots)] for number in range(rounds)]


# --- what goes round -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slots", "rounds"),
    [
        pytest.param((search("a"),), 8, id="equal"),
        pytest.param((search("a"), search("b")), 11, id="two that alternate"),
        pytest.param((search("a"), search("b"), search("c")), 13, id="three that go round"),
        pytest.param((slot('{"a":1,"b":2}'), slot('{ "b": 2, "a": 1 }')), 8, id="as JSON says it"),
        pytest.param((slot("{oops"),), 8, id="malformed"),
        pytest.param((slot("{}", "no", outcome="denied"),), 8, id="denied"),
        pytest.param((slot("{}", tool="write"),), 8, id="equal writes"),
        pytest.param((slot("{}", "on"), slot("{}", "off")), 11, id="there and back again"),
        pytest.param(
            tuple(slot(json.dumps({"command": "x", "timeout_s": n})) for n in range(9)),
            8,
            id="given more time",
        ),
    ],
)
def test_a_turn_that_goes_round_ends(slots: tuple[Slot, ...], rounds: int) -> None:
    """After eight rounds of the same, the first included; two looks at each are free (S4-17, K22)."""
    assert not ends(each(repeat(*slots, rounds=rounds - 1)))
    assert ends(each(repeat(*slots, rounds=rounds)))


@pytest.mark.parametrize(
    ("others", "warned_at", "ended"),
    [
        pytest.param((), 20, 32, id="one"),
        pytest.param((search("code", "n = 1"),), 23, 35, id="two that alternate"),
    ],
)
def test_numbers_in_a_result_are_little_news(
    others: tuple[Slot, ...], warned_at: int, ended: int
) -> None:
    """They may be the time that tests took, or how far a job is, so four times as many are let be."""
    timed = (search("tests", f"failed, 0.{number} s") for number in range(ended))
    slots = [slot_ for run in timed for slot_ in (run, *others)]
    assert judgement(each(slots[: warned_at - 1])) == Judgement()
    assert judgement(each(slots[:warned_at])).warning
    assert not ends(each(slots[: ended - 1]))
    assert ends(each(slots[:ended]))


def test_numbers_of_before_do_not_make_the_same_result_news() -> None:
    """Exact repeats end the turn as early as without them."""
    noisy = [search("a", f"after {n} s") for n in range(3)]
    assert ends(each([*noisy, *[search("b")] * 8]))
    assert not ends(each([*noisy, *[search("b")] * 7]))


def test_calls_that_differ_in_half_or_less_are_near_equal() -> None:
    """The same question in other words, with the same answer; it counts half."""
    slots = [search(f"words {number}", lang="en") for number in range(15)]
    assert ends(each(slots))
    assert not ends(each(slots[:14]))
    assert not ends(each(search(f"words {number}") for number in range(40)))


def test_a_refused_write_changes_nothing() -> None:
    """So near-equal ones that are denied go round, though the tool could change something."""
    slots = [
        slot(json.dumps({"path": "/etc", "text": str(number)}), "no", "write", outcome="denied")
        for number in range(15)
    ]
    assert ends(each(slots))


def test_calls_that_are_denied_for_one_reason_are_near_with_any_arguments() -> None:
    """A model that rewords what it may not do wears out its approvers; other reasons are news."""
    slots = [
        slot(json.dumps({"command": f"rm {n}"}), "denied", "shell", outcome="denied")
        for n in range(15)
    ]
    assert ends(each(slots))
    assert not ends(each(slots[:14]))
    reasons = (
        slot(json.dumps({"command": f"rm {n}"}), "#" * n, "shell", outcome="denied")
        for n in range(15)
    )
    assert not ends(each(reasons))


def test_calls_that_fail_again_are_near_with_any_error() -> None:
    """Errors quote the arguments; fifteen of nearly the same call in a row lead nowhere."""
    slots = [
        slot(
            json.dumps({"path": "a.py", "old": str(number), "new": "x"}),
            f"`{'x' * number}` is not in a.py",
            "write",
            outcome="failed",
        )
        for number in range(15)
    ]
    assert ends(each(slots))
    assert not ends(each(slots[:14]))
    assert not ends(each((*slots[:14], search("a"), slots[14])))


def test_a_round_is_stale_when_all_of_it_is() -> None:
    """Calls that are made side by side count once."""
    pair = (search("a"), search("b"))
    assert not ends(log_of([pair] * 7))
    assert ends(log_of([pair] * 8))
    assert not ends(log_of((*pair, search(str(number))) for number in range(20)))


# --- what only looks so --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "slots",
    [
        pytest.param([search("a", f"{n} %") for n in range(19)], id="a job that gets on"),
        pytest.param(
            [search("a", "#" * n) for n in range(30)], id="a job that gets on and shows it"
        ),
        pytest.param(
            [slot(json.dumps({"words": "a", f"key_{n}": 1})) for n in range(30)], id="other keys"
        ),
        pytest.param([search(f"{n}", f"page {n}", lang="en") for n in range(30)], id="new answers"),
        pytest.param(
            [slot(json.dumps({"label": "bug", "issue": n}), "done", "write") for n in range(30)],
            id="the same done to many",
        ),
        pytest.param(
            [
                slot_
                for n in range(15)
                for slot_ in (
                    slot(json.dumps({"path": "a.py", "text": str(n)}), "written", "write"),
                    slot('{"command": "pytest"}', "1 failed", "write"),
                )
            ],
            id="mended and tested",
        ),
        pytest.param([search(f"{n % 15}", f"{n % 15}") for n in range(30)], id="a second look"),
        pytest.param(
            [search("a", f"page {n}", page=n) for n in (*range(15), *range(13, -1, -1))],
            id="pages to the end and back",
        ),
        pytest.param(
            [slot(json.dumps({"n": n}), "no such thing", outcome="failed") for n in range(30)],
            id="other guesses",
        ),
    ],
)
def test_progress_is_no_loop(slots: list[Slot]) -> None:
    """A new result is progress, and so is a change to something else."""
    assert judgement(each(slots)) == Judgement()


@given(st.lists(st.integers(0, 3), max_size=30), st.sampled_from(sorted(PAGING)), st.booleans())
def test_paging_never_goes_round(pages: list[int], key: str, alone: bool) -> None:
    """Whatever the pages hold, as long as each is another (S4-18)."""
    whole = {} if alone else {"path": "a", "lang": "en"}
    slots = [slot(json.dumps({**whole, key: n})) for n, _ in enumerate(pages)]
    assert not ends(each(slots))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), min_size=1, max_size=40))
def test_news_begins_the_count_anew(made: list[tuple[str, str]]) -> None:
    """Only rounds since the newest new result count; a slow count agrees."""
    times: Counter[tuple[str, str]] = Counter()
    count, last = 1, ("", "")
    for search_result in made:
        count = count + 1 if times[search_result] > 1 or search_result == last else 1
        times[search_result] += 1
        last = search_result
    log = each(search(words, came_to) for words, came_to in made)
    assert ends(log) is (count >= 8)


# --- the warning ---------------------------------------------------------------------------------


def test_the_model_reads_once_what_it_repeats() -> None:
    """Before the turn is ended; and again only when it found something in between."""
    same = (search("a"),)
    log = log_of([same] * 4)
    assert judgement(log) == Judgement()
    word = judgement(append_round(log, same)).warning
    assert "last 5 rounds" in word
    assert '- `search` with {"words": "a"} (4 times)' in word
    log = append_round(log, same, warned=True)
    assert judgement(append_round(log, same)) == Judgement()
    log = reduce(append_round, [(search("b"),), *[same] * 4], log)
    assert judgement(log).warning


def test_long_arguments_are_cut_and_show_all_their_signs() -> None:
    """The warning is a line of data for each call, for any arguments."""
    hostile = search("x\n\n\u202e" + "y" * 999)
    word = judgement(each([hostile] * 5)).warning
    line = next(row for row in word.splitlines() if row.startswith("- "))
    assert "\u202e" not in line
    assert len(line) < 220


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (TurnLimits(), Judgement()),
        (TurnLimits(warn_repeats=2), Judgement()),
        (TurnLimits(max_repeats=50), Judgement()),
        (TurnLimits(max_repeats=3), Judgement(loop=("search",))),
        (TurnLimits(max_repeats=1), Judgement(loop=("search",))),
    ],
)
def test_the_bounds_are_the_configurations(bounds: TurnLimits, expected: Judgement) -> None:
    """0 is never (K22)."""
    assert judgement(each([search("a")] * 9), bounds) == expected


def test_the_log_is_bounded() -> None:
    """However many calls a model makes, and in however many rounds (P9)."""
    log = log_of([[search(str(n)) for n in range(2 * MAX_CALLS)]] * (MAX_ROUNDS + 1))
    assert (len(log), len(log[-1].calls)) == (MAX_ROUNDS, MAX_CALLS)
    assert ends(log)


# --- folded from the journal ---------------------------------------------------------------------


def round_of(word: str = "", loop: tuple[str, ...] = ()) -> tuple[entries.Entry, ...]:
    made = AssistantMessage(tool_calls=(call("search"),))
    got = result(f"{SAYS_NOTHING}\n[receipt: zc-receipt-{len(word)}-{'A' * 43}]")
    return (
        entries.AssistantReceived(message=made, usage=entries.NO_USAGE, at=AT),
        entries.Gated(verdicts=(allowed("a"),), at=AT),
        entries.CallStarted(action=ActionId("a"), at=AT),
        entries.CallFinished(action=ActionId("a"), result=got, outcome="ok", at=AT),
        entries.BatchAppended(at=AT, word=word, loop=loop),
    )


def folded(*written: entries.Entry, limits: TurnLimits = LIMITS) -> tuple[History, OpenTurn]:
    history = reduce(extend, (opened(limits=limits), *written), History())
    assert history.turn is not None
    return history, history.turn


MANY = TurnLimits(max_rounds=50)


def test_the_log_is_what_the_journal_says() -> None:
    """A restart counts on where the turn stood; a receipt makes no result a new one (P1)."""
    _, turn = folded(*round_of(), *round_of("again"), *round_of(), limits=MANY)
    assert [[call.repeats for call in made.calls] for made in turn.rounds] == [
        [""],
        ["equal"],
        ["equal"],
    ]
    assert [made.warned for made in turn.rounds] == [False, True, False]


def test_a_word_stands_behind_its_results() -> None:
    """As data of the runtime's own, which no person has said (S1-02)."""
    history, _ = folded(*round_of("again"), limits=MANY)
    assert history.messages[-1] == UserMessage(content="again", note="repeats")
    assert history.messages[-2].content.startswith(SAYS_NOTHING)


def test_what_a_person_says_begins_the_log_anew() -> None:
    """It is news for the model."""
    steered = entries.Steered(user=UserMessage(content="look left"), item=ItemId("i"), at=AT)
    _, turn = folded(*round_of(), steered, *round_of(), limits=MANY)
    assert [made.calls[0].repeats for made in turn.rounds] == [""]


def test_a_loop_ends_the_turn_with_its_results() -> None:
    """And says how to go on (S4-17, P10)."""
    history, turn = folded(*round_of(loop=("search", "look")), limits=MANY)
    assert isinstance(turn.state, Done)
    assert turn.state.reason == "loop_detected"
    assert "I called `search`, `look` again and again" in turn.state.note
    assert "`/retry`" in turn.state.note
    assert history.messages[-1].content.startswith(SAYS_NOTHING)


def test_a_journal_of_before_knows_no_loops() -> None:
    """A turn of then is one now: reading it decides nothing anew."""
    written = [entry for _ in range(20) for entry in round_of()]
    _, turn = folded(*written, limits=MANY)
    assert not isinstance(turn.state, Done)


# --- on the daemon -------------------------------------------------------------------------------


async def test_the_word_comes_before_the_end(world: World) -> None:
    """The model reads what it repeats, then the turn ends and the person reads how to go on."""
    async with world.told("look", *[LOOK] * 12) as house:
        assert len(world.look.runs) == 8
        warnings = [
            request.count("told you nothing new") for request in map(str, world.model.requests)
        ]
        assert warnings == [0] * 5 + [1] * 3
        assert "I called `look` again and again" in house.texts()[-1]
        world.model.otherwise(says("found it"))
        await house.say("/retry")
        assert house.texts()[-1] == "found it"


@pytest.mark.parametrize("killed", [4, 5, 7, 8])
async def test_a_restart_counts_on(world: World, killed: int) -> None:
    """Wherever it falls: no round more, and no second word (P1)."""
    world.model.will(*[LOOK] * 20)

    async def look(_context: ToolContext) -> ToolOutput:
        if len(world.look.runs) == killed:
            world.store.cut_after(DurablePoint.CALL_FINISHED)
        return ToolOutput(text="nothing")

    world.look.does = look
    async with world.running() as house:
        await house.say_and_die("look")
    world.store.heal()
    async with world.running() as house:
        written = [
            entry for entry in await house.journal() if isinstance(entry, entries.BatchAppended)
        ]
        assert [bool(entry.word) for entry in written] == [number == 4 for number in range(8)]
        assert [entry.loop for entry in written] == [()] * 7 + [("look",)]
        assert "I called `look` again and again" in house.texts()[-1]


async def test_a_word_of_its_person_goes_before_the_end(world: World) -> None:
    """A steering message reaches a turn that goes round: the model reads it, and has its rounds anew."""
    world.configure(runtime=RuntimeSettings(max_repeats=2, warn_repeats=0))
    async with world.told("/queue steer", LOOK, LOOK, says("on the left")) as house:

        async def look(_context: ToolContext) -> ToolOutput:
            if len(world.look.runs) == 2:
                await house.services.ingress.admit(house.envelope(house.said("look left"), "ada"))
            return ToolOutput(text="nothing")

        world.look.does = look
        await house.say("look")
        assert house.texts()[-1] == "on the left"


@pytest.mark.parametrize(("tool", "end"), [("poke", "done"), ("look", "I called `look`")])
async def test_calls_that_change_something_may_have_one_result(
    world: World, tool: str, end: str
) -> None:
    """Each of them writes something else; what only reads goes round."""
    world.configure(autonomy="full", runtime=RuntimeSettings(max_repeats=2, warn_repeats=0))
    calls = [asks_for((tool, f'{{"to": "x", "text": "{number}"}}')) for number in range(8)]
    world.model.will(*calls, says("done"))

    async def agree(_context: ToolContext) -> ToolOutput:
        return ToolOutput(text="ok")

    world.look.does = world.poke.does = agree
    async with world.told("one by one") as house:
        assert end in house.texts()[-1]
