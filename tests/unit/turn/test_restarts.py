"""Turns that a restart cut off, taken up from their journals."""

import asyncio

import pytest

from tests.fakes.house import World
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ChannelUnavailable, StoreRefused
from zeroclaw.message import NO_USAGE, AssistantMessage, ToolCall, ToolMessage
from zeroclaw.store import Append, Commit, DurablePoint, RowKind
from zeroclaw.turn.entries import AssistantReceived, TurnResumed, decode
from zeroclaw.turn.session import Leases, Transition, open_session

LOOK = asks_for(("look", "{}"), saying="looking ")
POKE = asks_for(("poke", '{"a": 1}'), saying="let me ")


async def test_the_operators_read_once_that_a_call_may_have_run(world: World) -> None:
    """What they are told is one commit with what is recorded, however often that is tried."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it", "ben")
        world.poke.hold = asyncio.Event()
        await house.press()
    refusals = [StoreRefused("not now")]

    def refuse_once(commit: Commit) -> None:
        if commit.point is DurablePoint.CALL_FINISHED and refusals:
            raise refusals.pop()

    world.store.before = refuse_once
    async with world.running() as house:
        await house.advance(2)
        assert refusals == []
        assert "\n".join(house.texts()).count("may have run") == 1


async def test_a_turn_cut_off_three_times_is_given_up(world: World) -> None:
    """The fourth start tells person and operator; `/retry` begins anew (P1, S4-19)."""
    world.model.will(*[(asyncio.Event(),)] * 4)
    async with world.running() as house:
        await house.say("hello", "ben")
    for _ in range(3):
        async with world.running() as house:
            assert await house.states() == ["taken"]
    async with world.running() as house:
        assert await house.states() == ["failed"]
        assert house.texts("ben") == [
            "_I was cut off again and again while I worked on this; send `/retry` to try again._"
        ]
        assert len(house.texts()) == 1
        assert len([one for one in await house.journal() if isinstance(one, TurnResumed)]) == 3
        await house.say("/retry", "ben")
        assert house.texts("ben")[-1] == "ok"


async def test_the_operators_read_once_that_a_turn_was_given_up(world: World) -> None:
    """They are told in the commit of its end, however often that is tried (S4-19)."""
    world.model.will(*[(asyncio.Event(),)] * 4)
    async with world.running() as house:
        await house.say("hello", "ben")
    for _ in range(3):
        async with world.running() as house:
            assert house.texts() == []
    refusals = [StoreRefused("not now")]

    def refuse_once(commit: Commit) -> None:
        if commit.point is DurablePoint.FINISHED and refusals:
            raise refusals.pop()

    world.store.before = refuse_once
    async with world.running() as house:
        assert house.texts() == []
        await house.advance(2)
        assert house.texts() == [
            "An answer to Ben in `chat` failed: I was cut off again and again while I worked on it."
        ]


async def test_a_turn_that_is_given_up_ends_its_calls_too(world: World) -> None:
    """Unfilled slots get their results, signed and audited (P1, K24)."""
    world.model.will(asks_for(("look", "{}"), ("poke", "{}")))
    world.look.hold = asyncio.Event()
    async with world.running() as house:
        await house.say("both")
        await house.press()
    for _ in range(4):
        async with world.running() as house:
            await house.settle()
    async with world.running() as house:
        assert await house.states() == ["failed", "answered"]
        kinds = await house.audited()
        assert kinds.count("proposed") == 2
        assert len([kind for kind in kinds if kind in {"executed", "unknown"}]) == 2
        await house.say("and now?")
        results = [m for m in world.model.requests[-1].messages if isinstance(m, ToolMessage)]
        assert len(results) == 2
        assert all("[receipt: zc-receipt-" in result.content for result in results)


async def test_waiting_for_a_person_is_no_crash(world: World) -> None:
    """However often the daemon is restarted meanwhile, the question stays (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
    for _ in range(5):
        async with world.running() as house:
            assert await house.states() == ["taken"]
    async with world.running() as house:
        await house.press()
        assert world.poke.runs == [{"a": 1}]


async def test_a_turn_without_its_row_is_not_made_up(world: World) -> None:
    """A damaged store is logged and tried again, and nothing is answered wrongly."""
    world.model.will((asyncio.Event(),))
    async with world.running() as house:
        await house.say("hello")
    world.store.forget(RowKind.TURN)
    await house_wakes(world)


async def house_wakes(world: World) -> None:
    async with world.running() as house:
        await house.say("again")
        assert world.clock.sleeping() != ()
        assert house.texts() == []


async def test_a_call_that_brings_the_process_down_each_time_is_given_up(world: World) -> None:
    """Starting once more is no progress, even for a tool that may run twice (S4-19)."""
    world.model.will(LOOK)
    world.look.hold = asyncio.Event()
    async with world.running() as house:
        await house.say("look")
    for _ in range(4):
        async with world.running() as house:
            await house.settle()
    async with world.running() as house:
        assert await house.states() == ["failed"]
        assert len(world.look.runs) == 4


async def test_a_batch_that_was_not_gated_is_asked_about_after_the_restart(world: World) -> None:
    """Its approver is found, because the channels are there before any turn goes on (P5)."""
    async with world.running() as house:
        world.store.cut_after(DurablePoint.TURN_STARTED)
        await house.say_and_die("poke it")
        [turn] = await house.rows(RowKind.TURN)
    world.store.heal()
    # As an earlier release wrote it down, and a control item that comes before the gate has spoken.
    poke = ToolCall(id="call_0", name="poke", arguments='{"a": 1}')
    received = AssistantReceived(
        message=AssistantMessage(tool_calls=(poke,)), usage=NO_USAGE, at=world.clock.now()
    )
    session = await open_session(
        world.store, Leases(world.store), ConversationId(str(turn.conversation))
    )
    await session.commit(Transition(point=DurablePoint.HOUSEKEEPING, journal=(received,)))
    async with world.running() as house:
        assert house.card().calls[0].tool == "poke"
        await house.press()
        assert world.poke.runs == [{"a": 1}]


@pytest.mark.parametrize("between", ["", "/new"])
async def test_an_answer_that_a_restart_held_up_comes_before_the_next(
    world: World, between: str
) -> None:
    """Nothing is asked of the model before the earlier answer stands, `/new` or not (P2)."""
    platform = world.platforms["chat"]
    world.model.will(says("one"))
    async with world.running() as house:
        platform.will("send", *[ChannelUnavailable("down")] * 9)
        await house.say("first")
        assert await house.states() == ["answered"]
        if between:
            await house.say(between)
        await house.say("second")
        assert house.texts() == []
    world.model.otherwise(says("two"))
    async with world.running() as house:
        assert len(world.model.requests) == 1
        platform.will("send")
        await house.advance(600)
        said = [text.split()[0] for text in house.texts()]
        assert [word for word in said if word in {"one", "two"}] == ["one", "two"]


async def test_a_halt_ends_what_was_not_taken_up_yet(world: World) -> None:
    """Even one that is over by then: what ran when everything was halted does not go on (P3)."""
    world.model.will((asyncio.Event(),))
    async with world.running() as house:
        await house.say("one")
    await world.clock.advance(1)
    await world.halt("Ada")
    refusals = [StoreRefused("not now")]

    def refuse_once(commit: Commit) -> None:
        if refusals and takes_up(commit):
            raise refusals.pop()

    world.store.before = refuse_once
    async with world.running() as house:
        assert not refusals
        assert await house.ask("resume") == {"halted": False, "before": True}
        await house.advance(1)
        assert house.texts() == ["_Stopped: everything was halted by Ada._"]
        await house.say("two")
        assert house.texts()[-1] == "ok"


@pytest.mark.parametrize("resumed", ["/resume", "resume"])
async def test_a_halt_is_known_after_a_kill_that_follows_its_end(
    world: World, resumed: str
) -> None:
    """The turn may still be ending when everything goes on, and the process dies (P3)."""
    world.model.will((asyncio.Event(),))
    async with world.running() as house:
        await house.say("one")
    await world.clock.advance(1)
    await world.halt("Ada")
    world.store.before = refuse_turns
    async with world.running() as house:
        if resumed == "resume":
            assert await house.ask("resume") == {"halted": False, "before": True}
        else:
            await house.say("/resume")
    world.store.before = None
    async with world.running() as house:
        await house.advance(1)
        assert "_Stopped: everything was halted by Ada._" in house.texts()
    assert len(world.model.requests) == 1


def takes_up(commit: Commit) -> bool:
    """Whether a commit takes up a turn that a restart left open."""
    appended = (one for one in commit.writes if isinstance(one, Append))
    return any(isinstance(decode(one.body), TurnResumed) for one in appended)


def refuse_turns(commit: Commit) -> None:
    """Refuse to take up a turn."""
    if takes_up(commit):
        message = "not now"
        raise StoreRefused(message)
