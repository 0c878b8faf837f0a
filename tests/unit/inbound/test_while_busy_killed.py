"""Messages while an answer is being written, and a kill after each commit in turn."""

import asyncio
from pathlib import Path

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_model import asks_for, says
from zeroclaw.config.model import ChannelSettings, WhileBusy
from zeroclaw.conversation.inbox import INBOX, PersonMessage
from zeroclaw.envelope import Envelope
from zeroclaw.store import Commit, RowKind
from zeroclaw.turn.entries import Steered, TurnOpened

LOOK = asks_for(("look", "{}"))
WORDS = ("one", "two", "three")
WINDOW_S = 2.0
MOST_COMMITS = 60


def killed_after(world: World, number: int) -> None:
    """Let no commit return from the `number`th on, which is written."""
    left = [number]

    def die(commit: Commit) -> None:
        left[0] -= 1
        if left[0] == 0:
            world.store.cut_after(commit.point)
            assert world.store.after is not None
            world.store.after(commit)

    world.store.after = die


async def deliver(house: House, envelopes: list[Envelope]) -> None:
    """Hand over what is not acknowledged yet, as a platform does, which a kill cuts off."""
    for envelope in tuple(envelopes):
        async with asyncio.TaskGroup() as group:
            told = group.create_task(house.services.ingress.admit(envelope))
            await house.settle()
            if told.done():
                envelopes.remove(envelope)
            told.cancel()


async def lives(world: World, envelopes: list[Envelope] | None = None) -> list[Envelope]:
    """One process, from its start until nothing more happens; returns what it did not take."""
    world.look.hold = asyncio.Event()
    async with world.running() as house:
        if envelopes is None:
            envelopes = [house.envelope(house.said(word)) for word in WORDS]
        await deliver(house, envelopes)
        world.look.hold.set()
        for _ in range(4):
            await house.advance(WINDOW_S)
    return envelopes


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["queue", "collect", "steer", "interrupt"])
async def test_a_kill_after_any_commit_loses_and_repeats_nothing(
    mode: WhileBusy, tmp_path: Path
) -> None:
    """Each message is in one turn and ends in one state, whatever becomes of it (P1, P2)."""
    for number in range(1, MOST_COMMITS):
        world = World(tmp_path / str(number))
        settings = ChannelSettings(allowed_users=("*",), while_busy=mode, collect_s=WINDOW_S)
        world.configure(channels={"chat": settings})
        world.model.will(LOOK, *[says("ok")] * 9)
        killed_after(world, number)
        envelopes = await lives(world)
        was_killed = len(world.store.commits) == number
        world.store.heal()
        await lives(world, envelopes)
        await in_order(world)
        if not was_killed:
            return
    pytest.fail("it never came to its end without a kill")


async def in_order(world: World) -> None:
    async with world.running() as house:
        rows = await house.rows(RowKind.INBOX)
        states = {row.state for row in rows}
        assert states <= {"answered", "joined", "stopped"}, states
        asks = [INBOX.of(row).content for row in rows]
        assert [one.text for one in asks if isinstance(one, PersonMessage)] == list(WORDS)
        assert not await house.rows(RowKind.TURN, "open")
        said = [
            entry.user.content
            for entry in await house.journal()
            if isinstance(entry, TurnOpened | Steered)
        ]
        assert "\n\n".join(said).split() == list(WORDS)
        assert len(await house.rows(RowKind.OUTBOX, "delivered")) == len(
            await house.rows(RowKind.OUTBOX)
        )
