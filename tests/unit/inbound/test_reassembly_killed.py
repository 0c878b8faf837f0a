"""A message that comes in pieces while an answer is being written, and a kill after each commit."""

import asyncio
from pathlib import Path

import pytest

from tests.fakes.house import World
from tests.fakes.scripted_model import says
from tests.unit.inbound.test_reassembly import ALBUM, MORE
from tests.unit.inbound.test_while_busy_killed import (
    LOOK,
    MOST_COMMITS,
    WINDOW_S,
    deliver,
    killed_after,
)
from zeroclaw.config.model import ChannelSettings, WhileBusy
from zeroclaw.envelope import Continues, Envelope
from zeroclaw.inbound.reassembly import AFTER_START_S
from zeroclaw.store import RowKind
from zeroclaw.turn.entries import Steered, TurnOpened
from zeroclaw.value import replace

TEXT = (("one ", MORE), ("two ", MORE), ("three", None))
PICTURES = (("one", ALBUM), ("two", ALBUM), ("three", ALBUM))


async def lives(
    world: World,
    pieces: tuple[tuple[str, Continues | None], ...],
    envelopes: list[Envelope] | None = None,
) -> list[Envelope]:
    """One process; the message stands between two ordinary ones."""
    world.look.hold = asyncio.Event()
    async with world.running() as house:
        if envelopes is None:
            said = (("first", None), *pieces, ("last", None))
            envelopes = [
                replace(house.envelope(house.said(text)), continues=more) for text, more in said
            ]
        await deliver(house, envelopes)
        world.look.hold.set()
        await house.settle()
        for _ in range(4):
            await house.advance(AFTER_START_S)
    return envelopes


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [TEXT, PICTURES], ids=["text", "album"])
@pytest.mark.parametrize("mode", ["queue", "collect", "steer", "interrupt"])
async def test_a_kill_after_any_commit_parts_nothing(
    mode: WhileBusy, pieces: tuple[tuple[str, Continues | None], ...], tmp_path: Path
) -> None:
    """What was one message is read whole, once, and each piece ends in one state (P1)."""
    whole = "one two three" if pieces is TEXT else "one\n\ntwo\n\nthree"
    for number in range(1, MOST_COMMITS):
        world = World(tmp_path / str(number))
        settings = ChannelSettings(allowed_users=("*",), while_busy=mode, collect_s=WINDOW_S)
        world.configure(channels={"chat": settings})
        world.model.will(LOOK, *[says("ok")] * 9)
        killed_after(world, number)
        envelopes = await lives(world, pieces)
        was_killed = len(world.store.commits) == number
        world.store.heal()
        await lives(world, pieces, envelopes)
        await is_whole(world, whole)
        if not was_killed:
            return
    pytest.fail("it never came to its end without a kill")


async def is_whole(world: World, whole: str) -> None:
    async with world.running() as house:
        states = {row.state for row in await house.rows(RowKind.INBOX)}
        assert states <= {"answered", "joined", "stopped"}, states
        said = [
            entry.user.content
            for entry in await house.journal()
            if isinstance(entry, TurnOpened | Steered)
        ]
        assert "\n\n".join(said).count(whole) == 1, said
        assert sorted("\n\n".join(said).split()) == sorted(f"first {whole} last".split())
