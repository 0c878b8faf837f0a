"""Messages while an answer is being written, whole or in pieces, and a kill after each commit."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_model import asks_for, says
from tests.unit.inbound.test_reassembly import ALBUM, MORE
from zeroclaw.config.model import ChannelSettings, WhileBusy
from zeroclaw.conversation.inbox import INBOX, PersonMessage
from zeroclaw.envelope import Continues, Envelope
from zeroclaw.inbound.reassembly import AFTER_START_S
from zeroclaw.store import Commit, RowKind
from zeroclaw.turn.entries import Steered, TurnOpened
from zeroclaw.value import replace

pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]

WORDS = (("one", None), ("two", None), ("three", None))
TEXT = (("one ", MORE), ("two ", MORE), ("three", None))
PICTURES = (("one", ALBUM), ("two", ALBUM), ("three", ALBUM))
MAX_COMMITS = 60

Said = tuple[tuple[str, Continues | None], ...]


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
            admission = group.create_task(house.services.ingress.admit(envelope))
            await house.settle()
            if admission.done():
                envelopes.remove(envelope)
            admission.cancel()


@asynccontextmanager
async def living(
    world: World, messages: Said, envelopes: list[Envelope] | None = None
) -> AsyncGenerator[tuple[House, list[Envelope]]]:
    """One process, in which nothing more happens, and the events that it did not take."""
    world.look.hold = asyncio.Event()
    async with world.running() as house:
        if envelopes is None:
            envelopes = [
                replace(house.envelope(house.said(text)), continues=more) for text, more in messages
            ]
        await deliver(house, envelopes)
        world.look.hold.set()
        await house.settle()
        for _ in range(4):
            await house.advance(AFTER_START_S)
        yield house, envelopes


async def killed_after_each_commit(
    path: Path, mode: WhileBusy, messages: Said, check: Callable[[House], Awaitable[None]]
) -> None:
    """Let a process be killed after each commit in turn, and see what the one after it left."""
    for number in range(1, MAX_COMMITS):
        world = World(path / str(number))
        settings = ChannelSettings(allowed_users=("*",), while_busy=mode, collect_s=2)
        world.configure(channels={"chat": settings})
        world.model.will(asks_for(("look", "{}")), *[says("ok")] * 9)
        killed_after(world, number)
        async with living(world, messages) as (_, envelopes):
            was_killed = len(world.store.commits) == number
        world.store.heal()
        async with living(world, messages, envelopes) as (house, _):
            states = {row.state for row in await house.rows(RowKind.INBOX)}
            assert states <= {"answered", "joined", "stopped"}, states
            await check(house)
        if not was_killed:
            return
    pytest.fail("it never came to its end without a kill")


async def texts_sent(house: House) -> list[str]:
    journal = await house.journal()
    return [entry.user.content for entry in journal if isinstance(entry, TurnOpened | Steered)]


async def each_has_its_turn(house: House) -> None:
    contents = [INBOX.of(row).content for row in await house.rows(RowKind.INBOX)]
    assert [content.text for content in contents if isinstance(content, PersonMessage)] == [
        "one",
        "two",
        "three",
    ]
    assert not await house.rows(RowKind.TURN, "open")
    assert "\n\n".join(await texts_sent(house)).split() == ["one", "two", "three"]
    assert await house.rows(RowKind.OUTBOX) == await house.rows(RowKind.OUTBOX, "delivered")


@pytest.mark.parametrize("mode", ["queue", "collect", "steer", "interrupt"])
async def test_a_kill_after_any_commit_loses_and_repeats_nothing(
    mode: WhileBusy, tmp_path: Path
) -> None:
    """Each message is in one turn and ends in one state (P1, P2)."""
    await killed_after_each_commit(tmp_path, mode, WORDS, each_has_its_turn)


@pytest.mark.parametrize("pieces", [TEXT, PICTURES], ids=["text", "album"])
@pytest.mark.parametrize("mode", ["queue", "collect", "steer", "interrupt"])
async def test_a_kill_after_any_commit_parts_nothing(
    mode: WhileBusy, pieces: Said, tmp_path: Path
) -> None:
    """The one message is read whole, once, and each piece ends in one state (P1)."""
    whole = "one two three" if pieces is TEXT else "one\n\ntwo\n\nthree"

    async def is_whole(house: House) -> None:
        text = "\n\n".join(await texts_sent(house))
        assert text.count(whole) == 1, text
        assert sorted(text.split()) == sorted(f"first {whole} last".split())

    messages = (("first", None), *pieces, ("last", None))
    await killed_after_each_commit(tmp_path, mode, messages, is_whole)
