"""What the store tells of trouble, in a house that lived through it."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.fakes.house import World
from tests.fakes.scripted_model import asks_for
from zeroclaw.cli.doctor.health import LATELY, MIN_FAILURES, STUCK, Health, health
from zeroclaw.clock import made_at
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ProviderRejected
from zeroclaw.store import Commit, DurablePoint, Put, RowKind

HERE = ConversationId("here")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ada, who is the operator, and Ben, on one platform; nothing has been said yet."""
    return World(tmp_path)


async def rows(world: World, *states: str, kind: RowKind = RowKind.INBOX, key: str = "") -> None:
    """Put rows in these states, the oldest first, as far as a look at them goes."""
    writes = tuple(
        Put(
            kind=kind,
            key=key or world.ids.ulid(),
            body=b"{}",
            conversation=HERE,
            state=state,
            place="chat/ada",
        )
        for state in states
    )
    await world.store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=writes))


async def test_an_empty_store_tells_of_no_trouble(world: World) -> None:
    """Nor of a time that something was made at."""
    assert await health(world.store, world.clock.now()) == Health()


async def test_a_question_that_waits_is_told_with_its_times(world: World) -> None:
    """When it was asked, and when silence denies it."""
    world.model.will(asks_for(("poke", "{}")))
    async with world.running() as house:
        await house.say("poke")
        asked_at = world.clock.now()
        found = await health(world.store, asked_at)
        assert (found.pending, found.next_deadline_at) == (
            1,
            asked_at + timedelta(seconds=world.config.approvals.timeout_s),
        )
        assert found.oldest_at is not None
        assert abs(found.oldest_at - asked_at) < timedelta(seconds=1)
        assert found.newest_at is not None


async def test_a_halt_is_told(world: World) -> None:
    """Who and when, also where no daemon runs."""
    await world.halt("ada")
    found = await health(world.store, world.clock.now())
    assert found.halt is not None
    assert (found.halt.by, found.halt.at) == ("ada", world.clock.now())


async def test_a_conversation_whose_last_turns_all_failed_is_told(world: World) -> None:
    """What waits, was stopped by nobody or joined another does not hide it."""
    await rows(world, "failed", "answered", *["failed"] * MIN_FAILURES, "joined", "queued")
    found = await health(world.store, world.clock.now())
    assert [(one.conversation, one.place, one.times) for one in found.failing] == [
        (HERE, "chat/ada", MIN_FAILURES)
    ]
    assert found.failing[0].last_at == made_at(world.ids.ulid())
    assert found.queued == 1


async def test_why_the_last_turn_failed_is_told(world: World) -> None:
    """As its person read it; it is in the journal, so no daemon has to run (P10)."""
    world.model.will(*[(ProviderRejected("no such model"),)] * MIN_FAILURES)
    async with world.running() as house:
        for _ in range(MIN_FAILURES):
            await house.say("hello")
    [found] = (await health(world.store, world.clock.now())).failing
    assert found.why == "the model can't answer: no such model"


async def test_a_conversation_that_was_answered_since_is_well(world: World) -> None:
    """However often it failed before."""
    await rows(world, *["failed"] * 9, "answered")
    assert (await health(world.store, world.clock.now())).failing == ()
    await rows(world, *["failed"] * (MIN_FAILURES - 1))
    assert (await health(world.store, world.clock.now())).failing == ()


async def test_messages_that_are_not_out_are_counted_when_it_takes_long(world: World) -> None:
    """One that is being sent now is no trouble."""
    await rows(world, "pending", "sending", kind=RowKind.OUTBOX)
    now = world.clock.now()
    assert (await health(world.store, now + STUCK)).stuck == 0
    assert (await health(world.store, now + STUCK + timedelta(seconds=1))).stuck == 2


async def test_messages_that_were_refused_lately_are_counted(world: World) -> None:
    """A key that tells no time tells nothing."""
    await rows(world, "refused", kind=RowKind.OUTBOX)
    await rows(world, "refused", kind=RowKind.OUTBOX, key="no-ulid")
    now = world.clock.now()
    assert (await health(world.store, now)).refused == 1
    assert (await health(world.store, now + LATELY)).refused == 0
