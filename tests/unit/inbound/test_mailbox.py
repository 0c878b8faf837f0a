"""One conversation at a time, whatever goes wrong in it."""

import asyncio

from tests.fakes.house import World
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.errors import Fenced
from zeroclaw.inbound.mailbox import BACK_OFF
from zeroclaw.store import Commit, DurablePoint, RowKind


async def test_a_conversation_that_fails_is_tried_again(world: World) -> None:
    """With growing pauses, and nobody else is touched (P1, P9)."""
    failing = {"turn": True}

    def fail(commit: Commit) -> None:
        if commit.point is DurablePoint.TURN_STARTED and failing["turn"]:
            message = "a fault"
            raise LookupError(message)

    async with world.running() as house:
        world.store.before = fail
        await house.say("one")
        assert world.clock.sleeping()[0] == BACK_OFF.first_s
        assert await house.states() == ["queued"]
        await house.advance(BACK_OFF.first_s)
        assert world.clock.sleeping()[0] == 2 * BACK_OFF.first_s
        await house.advance(10 * BACK_OFF.longest_s)
        assert world.clock.sleeping()[0] <= BACK_OFF.longest_s
        failing["turn"] = False
        await house.advance(BACK_OFF.longest_s)
        assert house.texts() == ["ok\n\n_Answered 11 min after it was written._"]


async def test_a_turn_that_a_fault_cut_off_goes_on(world: World) -> None:
    """From its journal, as after a restart (P1)."""
    world.model.will(says("lost"), says("kept"))
    failing = {"turn": True}

    def fail(commit: Commit) -> None:
        if commit.point is DurablePoint.FINISHED and failing.pop("turn", False):
            message = "a fault"
            raise LookupError(message)

    async with world.running() as house:
        world.store.before = fail
        await house.say("one")
        assert await house.states() == ["taken"]
        await house.advance(BACK_OFF.first_s)
        assert house.texts() == ["kept"]
        assert await house.states() == ["answered"]


async def test_what_a_turn_was_told_that_failed_is_told_again_to_the_one_that_goes_on(
    world: World,
) -> None:
    """Its lane may have nothing new then (P1)."""
    failed: list[DurablePoint] = []

    def fail(commit: Commit) -> None:
        if commit.point is DurablePoint.FINISHED and not failed:
            failed.append(commit.point)
            message = "this works the next time"
            raise LookupError(message)

    world.model.will((asyncio.Event(),), (asyncio.Event(),))
    async with world.running() as house:
        await house.say("one")
        world.store.before = fail
        await house.say("/stop")
        assert await house.states() == ["taken", "control"]
        await house.advance(BACK_OFF.first_s)
        assert await house.states() == ["stopped", "answered"]


async def test_a_turn_that_always_fails_is_given_up_and_told(world: World) -> None:
    """After three tries that came no further, to person and operator (P1, S4-19)."""

    def fail(commit: Commit) -> None:
        if commit.point is DurablePoint.CALL_STARTED:
            message = "this never works"
            raise LookupError(message)

    async with world.running() as house:
        world.model.will(*[asks_for(("look", "{}"))] * 4)
        world.store.before = fail
        await house.say("one", "ben")
        for _ in range(5):
            await house.advance(BACK_OFF.longest_s)
        assert house.texts() == [
            "An answer to Ben in `chat` failed: I was cut off again and again while I worked on it."
        ]
        assert house.texts("ben")[-1] == (
            "_I was cut off again and again while I worked on this; send `/retry` to try again._"
        )
        assert await house.states() == ["failed"]


async def test_whoever_lost_the_conversation_leaves_it_alone(world: World) -> None:
    """A newer holder goes on; this one takes it anew when something new comes (P2)."""
    async with world.running() as house:
        await house.say("one")
        [row] = await house.rows(RowKind.INBOX)
        assert row.conversation is not None
        await world.store.lease(row.conversation)
        await house.say("two")
        assert await house.states() == ["answered", "queued"]
        assert len(house.services.mailboxes) == 0
        await house.say("three")
        assert await house.states() == ["answered"] * 3


async def test_a_conversation_that_cannot_go_on_holds_up_no_new_one(world: World) -> None:
    """`/new` is a way out of it."""
    poisoned: list[str] = []

    def fail(commit: Commit) -> None:
        if commit.conversation in poisoned and commit.fence is not None:
            message = "damaged"
            raise LookupError(message)

    held = asyncio.Event()
    world.model.will((held,))
    async with world.running() as house:
        await house.say("one")
        [row] = await house.rows(RowKind.INBOX)
        poisoned.append(str(row.conversation))
        world.store.before = fail
        await house.say("/new")
        await house.say("two")
        held.set()
        await house.settle()
        assert house.texts()[-1] == "ok"
        assert await house.states("answered") == ["answered"]


async def test_a_mailbox_that_lost_its_fence_closes(world: World) -> None:
    """Even in the middle of a turn: the newer holder resumes it."""

    def fence(commit: Commit) -> None:
        if commit.point is DurablePoint.FINISHED:
            message = "somebody newer"
            raise Fenced(message)

    async with world.running() as house:
        world.store.before = fence
        await house.say("one")
        assert len(house.services.mailboxes) == 0
        assert await house.states() == ["taken"]
        world.store.before = None
        await house.say("two")
        assert await house.states() == ["answered", "answered"]


async def test_a_closed_house_starts_no_turn(world: World) -> None:
    """What runs may end; what waits is answered after the next start (P1)."""
    held = asyncio.Event()
    world.model.will((held, *says("to one")))
    async with world.running() as house:
        await house.say("one")
        await house.say("two")
        house.services.mailboxes.close()
        await house.say("three", "ben")
        held.set()
        await house.services.mailboxes.at_rest()
        assert await house.states() == ["answered", "queued", "queued"]
    async with world.running() as house:
        assert house.texts() == ["to one", "ok"]
        assert house.texts("ben") == ["ok"]


async def test_a_halted_mailbox_closes_with_the_house(world: World) -> None:
    """Nothing is lost: the message is there at the next start."""
    async with world.running() as house:
        await house.say("/halt")
        await house.say("one")
        house.services.mailboxes.close()
        await house.services.mailboxes.at_rest()
        assert await house.states() == ["queued"]
