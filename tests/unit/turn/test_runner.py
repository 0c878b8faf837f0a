"""From an inbox item to a delivered answer, across restarts."""

import asyncio
from pathlib import Path

from tests.fakes.house import House, World
from tests.fakes.manual_clock import VirtualTimeLoop
from tests.fakes.scripted_calls import Call
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.conversation.inbox import INBOX, Waiting
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.envelope import ItemId
from zeroclaw.errors import Conflict
from zeroclaw.events import StageEntered, TextStreamed, ToolDecided, ToolEnded, ToolStarted
from zeroclaw.inbound.commands.halt import Halt
from zeroclaw.provider import TextDelta
from zeroclaw.store import Commit, DurablePoint, RowKind
from zeroclaw.turn.runner import CLOSE_S
from zeroclaw.turn.session import Leases, open_session
from zeroclaw.value import replace

LOOK = asks_for(("look", "{}"), saying="looking ")
POKE = asks_for(("poke", '{"a": 1}'), saying="let me ")


async def grown(house: House) -> None:
    """Say hello, and let the answer stand in part before the rest comes: else it is no draft."""
    rest = asyncio.Event()
    house.world.model.will((TextDelta(text="it is "), rest, *says("ok")))
    await house.say("hello")
    rest.set()
    await house.settle()


async def test_a_simple_turn_takes_few_commits(world: World) -> None:
    """Two stand before its first text, four before its final (S2-14)."""
    async with world.running() as house:
        await grown(house)
        assert world.store.points() == [
            DurablePoint.ADMITTED,
            DurablePoint.TURN_STARTED,
            DurablePoint.REF_KNOWN,
            DurablePoint.FINISHED,
            DurablePoint.DELIVERED,
        ]
        [answer] = world.platforms["chat"].standing(house.place())
        assert (answer.text, answer.draft) == ("it is ok", False)


async def test_a_tool_turn_is_written_down_step_by_step(world: World) -> None:
    """Nothing runs before it is on record (P3, S0-38, S2-13, S3-21 without shield and snapshot)."""
    world.model.will(LOOK, says("done"))
    async with world.running() as house:
        await house.say("look")
        points = [point for point in world.store.points() if point is not DurablePoint.REF_KNOWN]
        assert points == [
            DurablePoint.ADMITTED,
            DurablePoint.TURN_STARTED,
            DurablePoint.CALL_STARTED,
            DurablePoint.CALL_FINISHED,
            DurablePoint.FINISHED,
            DurablePoint.DELIVERED,
        ]
        assert house.texts() == ["looking \n\ndone"]


async def test_a_turn_that_starts_as_the_house_is_halted_ends_with_it(world: World) -> None:
    """It was not running yet when everything that ran was ended (P3)."""
    async with world.running() as house:
        await house.say("warm up")
        halted: list[str] = []

        def halt(commit: Commit) -> None:
            if commit.point is DurablePoint.TURN_STARTED:
                halted.append("now")
                house.services.policy.halt(Halt(by="Ada", at=world.clock.now()))

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


async def test_a_turn_is_published_stage_by_stage(world: World) -> None:
    """In order, and only for whoever watches (S0-01, S0-08, S0-11, S0-22, S0-40, S4-02, S4-12)."""
    world.model.will(LOOK, says("done"))
    async with world.running() as house:
        seen = house.watch()
        await house.say("look")
        told = [event.what for event in seen]
        kinds = [type(one).__name__ for one in told]
        assert kinds[0] == "TurnStarted"
        assert kinds.count("TurnStarted") == 1
        assert kinds[-1] == "TurnEnded"
        assert [one.stage for one in told if isinstance(one, StageEntered)] == [
            "compose_request",
            "send_request",
            "stream_response",
            "tool_call",
            "compose_request",
            "send_request",
            "stream_response",
            "render",
        ]
        middle = [e for e in told if isinstance(e, ToolDecided | ToolStarted | ToolEnded)]
        assert [type(event).__name__ for event in middle] == [
            "ToolDecided",
            "ToolStarted",
            "ToolEnded",
        ]
        assert [e.text for e in told if isinstance(e, TextStreamed)] == ["looking ", "done"]
        assert len({event.correlation for event in seen}) == 1


async def test_a_draft_that_learns_of_its_message_as_the_turn_changes(world: World) -> None:
    """It is written anew over what was written first, and is given up when it never fits (P6)."""
    clashes: list[Commit] = []

    def clash(commit: Commit) -> None:
        if commit.point is DurablePoint.REF_KNOWN and not clashes:
            clashes.append(commit)
            world.store.touch(RowKind.TURN)

    async with world.running() as house:
        world.store.before = clash
        await grown(house)
        assert house.texts() == ["it is ok"]
        assert len(clashes) == 1
        [row] = await house.rows(RowKind.TURN)
        assert len(TURNS.of(row).refs) == 1


async def test_a_draft_that_never_fits_is_given_up(world: World) -> None:
    """The final is sent all the same (P6)."""

    clashes: list[Commit] = []

    def clash(commit: Commit) -> None:
        if commit.point is DurablePoint.REF_KNOWN:
            clashes.append(commit)
            world.store.touch(RowKind.TURN)

    async with world.running() as house:
        world.store.before = clash
        await grown(house)
        assert clashes
        assert await house.states() == ["answered"]
        assert house.texts()[-1] == "it is ok"


async def test_a_message_that_changed_since_it_was_looked_at_is_looked_at_again(
    world: World,
) -> None:
    """The turn reads what is on disk, or nothing at all."""
    async with world.running() as house:
        await house.say("/halt")
        await house.say("tow")
        [row] = await house.rows(RowKind.INBOX, "queued")
        stale = Waiting(item=INBOX.of(row), version=row.version)
        await house.edit("p2", "two")
        session = await open_session(world.store, Leases(world.store), stale.item.conversation)
        await house.services.runner.run(session, (stale,), asyncio.Event())
        await house.services.runner.run(
            session, (replace(stale, item=replace(stale.item, id=ItemId("gone"))),), asyncio.Event()
        )
        await house.services.runner.resume(session, asyncio.Event())
        assert await house.states() == ["queued"]
        assert session.history.turn is None


def test_a_call_that_hangs_does_not_hold_up_a_turn_that_is_cancelled(tmp_path: Path) -> None:
    """A shutdown gives the draft its seconds, and no more."""

    async def check() -> None:
        world, loop = World(tmp_path), asyncio.get_running_loop()
        world.model.will((*says("hello ")[:1], asyncio.Event(), *says("now")))
        calling = asyncio.Event()

        async def hang(_: Call) -> None:
            calling.set()
            await asyncio.Event().wait()

        world.platforms["chat"].before = hang
        async with world.running() as house:
            await house.say("hello")
            await calling.wait()
            [turn] = [one for one in asyncio.all_tasks() if one.get_name().startswith("mailbox ")]
            cancelled_at = loop.time()
            turn.cancel()
            await asyncio.wait((turn,))
            assert loop.time() - cancelled_at == CLOSE_S

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(check())
