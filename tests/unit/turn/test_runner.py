"""From an inbox item to a delivered answer, across restarts."""

import asyncio
from dataclasses import replace

import pytest

from tests.fakes.house import CAPABILITIES, World
from tests.fakes.scripted_model import Answer, asks_for, says
from zeroclaw.errors import ChannelRejected, Conflict
from zeroclaw.events import StageEntered, TextStreamed, ToolDecided, ToolEnded, ToolStarted
from zeroclaw.message import AssistantMessage, ToolMessage
from zeroclaw.store import Commit, DurablePoint, RowKind
from zeroclaw.turn.entries import TurnFinished, TurnResumed

LOOK = asks_for(("look", "{}"), saying="looking ")
POKE = asks_for(("poke", '{"a": 1}'), saying="let me ")


async def test_a_simple_turn_takes_few_commits(world: World) -> None:
    """Two stand before its first text, four before its final (S2-14)."""
    async with world.running() as house:
        await house.say("hello")
        assert world.store.points() == [
            DurablePoint.ADMITTED,
            DurablePoint.TURN_STARTED,
            DurablePoint.REF_KNOWN,
            DurablePoint.FINISHED,
            DurablePoint.DELIVERED,
        ]
        [answer] = world.platforms["chat"].standing(house.place())
        assert (answer.text, answer.draft) == ("ok", False)


async def test_a_tool_turn_is_written_down_step_by_step(world: World) -> None:
    """Nothing runs before it is on record (P3, S0-38, S2-13)."""
    world.model.will(LOOK, says("done"))
    async with world.running() as house:
        await house.say("look")
        points = [point for point in world.store.points() if point is not DurablePoint.REF_KNOWN]
        assert points == [
            DurablePoint.ADMITTED,
            DurablePoint.TURN_STARTED,
            DurablePoint.ASSISTANT_RECEIVED,
            DurablePoint.GATED,
            DurablePoint.CALL_STARTED,
            DurablePoint.CALL_FINISHED,
            DurablePoint.BATCH_APPENDED,
            DurablePoint.FINISHED,
            DurablePoint.DELIVERED,
        ]
        assert house.texts() == ["looking \n\ndone"]


async def test_one_draft_grows_across_a_tool_call(world: World) -> None:
    """Text before and after the call is one message (K4, S2-06)."""
    held = asyncio.Event()
    world.model.will(LOOK, (*says("done ")[:1], held, *says("now")))
    async with world.running() as house:
        await house.say("look")
        assert house.texts() == ["looking \n\ndone"]
        held.set()
        await house.settle()
        assert house.texts() == ["looking \n\ndone now"]
        assert len(world.platforms["chat"].called("send")) == 1


@pytest.mark.parametrize(
    ("point", "left"),
    [
        (DurablePoint.ADMITTED, (LOOK, says("done"))),
        (DurablePoint.TURN_STARTED, (LOOK, says("done"))),
        (DurablePoint.REF_KNOWN, (says("done"),)),
        (DurablePoint.ASSISTANT_RECEIVED, (says("done"),)),
        (DurablePoint.GATED, (says("done"),)),
        (DurablePoint.CALL_STARTED, (says("done"),)),
        (DurablePoint.CALL_FINISHED, (says("done"),)),
        (DurablePoint.BATCH_APPENDED, (says("done"),)),
        (DurablePoint.FINISHED, ()),
        (DurablePoint.DELIVERED, ()),
    ],
)
async def test_a_kill_after_any_point_leaves_one_answer(
    world: World, point: DurablePoint, left: tuple[Answer, ...]
) -> None:
    """What was committed counts; nothing is asked, gated or run twice that has ended (P1, P3)."""
    world.add_platform("chat", replace(CAPABILITIES, idempotent_send=True))
    world.model.will(LOOK, says("done"))
    async with world.running() as house:
        world.store.cut_after(point)
        await house.say_and_die("look")
    world.store.heal()
    world.model.otherwise(*left)
    async with world.running() as house:
        assert await house.states() == ["answered"]
        assert world.look.ended == 1
        assert house.texts() == ["looking \n\ndone"]
        assert (await house.audited()).count("executed") == 1


async def test_a_call_whose_end_was_lost_is_not_repeated(world: World) -> None:
    """It may have run: the model and the operators are told, and nothing else happens (P3)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it", "ben")
        world.poke.hold = asyncio.Event()
        await house.press()
        assert world.poke.runs == [{"a": 1}]
    async with world.running() as house:
        assert world.poke.runs == [{"a": 1}]
        assert "may have run" in world.model.asked()[-1]
        assert house.texts()[-1] == (
            "`poke` had started when I was cut off, and may have run. I did not repeat it."
        )
        assert await house.audited() == ["proposed", "evaluated", "answered", "unknown"]


async def test_an_idempotent_call_runs_again(world: World) -> None:
    """Its tool says that twice is as good as once (P3)."""
    world.model.will(LOOK)
    world.look.hold = asyncio.Event()
    async with world.running() as house:
        await house.say("look")
    world.look.hold = None
    async with world.running() as house:
        assert world.look.runs == [{}, {}]
        assert await house.audited() == ["proposed", "evaluated", "executed"]


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
            "_I was cut off again and again while I worked on this; send `/retry` to try anew._"
        ]
        assert len(house.texts()) == 1
        assert len([one for one in await house.journal() if isinstance(one, TurnResumed)]) == 3
        await house.say("/retry", "ben")
        assert house.texts("ben")[-1] == "ok"


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


async def test_a_turn_that_starts_as_the_house_is_halted_ends_with_it(world: World) -> None:
    """It was not running yet when everything that ran was ended (P3)."""
    async with world.running() as house:
        await house.say("warm up")
        halted: list[str] = []

        def halt(commit: Commit) -> None:
            if commit.point is DurablePoint.TURN_STARTED:
                halted.append("now")
                house.rooms.policy.halted_by = "Ada"

        world.store.after = halt
        await house.say("hello")
        assert halted == ["now"]
        assert house.texts()[-1] == "_Stopped: everything was halted by Ada._"
        assert len(world.model.requests) == 1


async def test_an_end_that_meets_an_answer_is_written_anew(world: World) -> None:
    """The answer stands, its call does not run, and the turn ends as stopped (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        raced: list[Commit] = []

        def touch(commit: Commit) -> None:
            if commit.point is DurablePoint.FINISHED and not raced:
                raced.append(commit)
                world.store.touch(RowKind.APPROVAL)

        world.store.before = touch
        await house.say("/stop")
        assert house.endings() == [("stopped", "Ada")]
        assert await house.states() == ["stopped", "answered"]


async def test_an_end_that_always_loses_is_tried_again_later(world: World) -> None:
    """The turn stays open, and no other begins upon it (P1, P2)."""

    def race(commit: Commit) -> None:
        if commit.point is DurablePoint.FINISHED:
            message = "raced"
            raise Conflict(message)

    async with world.running() as house:
        world.store.before = race
        await house.say("one")
        await house.say("two")
        assert await house.states() == ["taken", "queued"]
        world.store.before = None
        await house.advance(60)
        assert await house.states() == ["answered", "answered"]


async def test_a_refused_final_is_failed_and_told(world: World) -> None:
    """To the operator, who may not be the one who asked (P1, P6)."""
    world.platforms["chat"].will("send", ChannelRejected("no"))
    async with world.running() as house:
        await house.say("/halt")
        await house.say("/resume")
        world.platforms["chat"].will("send", ChannelRejected("no"), ChannelRejected("no"))
        await house.say("hello", "ben")
        assert await house.states() == ["failed"]
        assert house.texts()[-1] == "An answer in `chat` was refused by the platform: no."


async def test_a_pause_shows_a_note_below_the_draft(world: World) -> None:
    """And only where something is shown already (P6)."""
    world.model.will((*says("half ")[:1], asyncio.Event()), (asyncio.Event(),))
    async with world.running() as house:
        await house.say("one")
        await house.say("two", "ben")
        house.rooms.runner.pause("_paused_")
        await house.rooms.runner.drafts_at_rest()
        assert house.texts() == ["half \n\n_paused_"]
        assert house.texts("ben") == []
    async with world.running() as house:
        assert house.texts() == ["ok"]
        assert house.texts("ben") == ["ok"]


async def test_a_turn_is_published_stage_by_stage(world: World) -> None:
    """In order, and only for whoever watches (S0-01, S0-08, S0-22, S0-40)."""
    world.model.will(LOOK, says("done"))
    async with world.running() as house:
        seen = house.watch()
        await house.say("look")
        kinds = [type(event).__name__ for event in seen]
        assert kinds[0] == "TurnStarted"
        assert kinds[-1] == "TurnEnded"
        assert [event.stage for event in seen if isinstance(event, StageEntered)] == [
            "compose_request",
            "send_request",
            "stream_response",
            "tool_call",
            "compose_request",
            "send_request",
            "stream_response",
            "render",
        ]
        middle = [e for e in seen if isinstance(e, ToolDecided | ToolStarted | ToolEnded)]
        assert [type(event).__name__ for event in middle] == [
            "ToolDecided",
            "ToolStarted",
            "ToolEnded",
        ]
        assert [e.text for e in seen if isinstance(e, TextStreamed)] == ["looking ", "done"]
        assert len({event.correlation for event in seen}) == 1


async def test_what_was_shown_when_it_was_stopped_stays_in_the_history(world: World) -> None:
    """Marked, so that the model knows (S4-20)."""
    world.model.will((*says("half ")[:1], asyncio.Event()))
    async with world.running() as house:
        await house.say("one")
        await house.say("/stop")
        [finished] = [one for one in await house.journal() if isinstance(one, TurnFinished)]
        assert finished.message == AssistantMessage(content="half ", mark="stopped")
        assert finished.reason == "user_abort"


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
