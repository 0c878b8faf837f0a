"""A thousand turns on Telegram with a model that takes 4,096 tokens, and a daemon that is killed."""

import asyncio
import random
import re
from pathlib import Path

import pytest

from tests.journeys.telegram.bot import Bot, bot
from tests.journeys.test_a_long_conversation import FILLING, OF_A_SUMMARY, WINDOW
from zeroclaw.context.tokens import of_text
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.host.clock import SystemClock
from zeroclaw.store import LogKind, read_all
from zeroclaw.stores.sqlite import open_store
from zeroclaw.turn import entries

pytestmark = pytest.mark.slow

FACT = "The gate code is 7431."
OFF = {"enabled": False}
_ANSWERED = re.compile(r"turn (\d+):")


def answered(world: Bot) -> frozenset[int]:
    """The turns that Ann has an answer to; the model says what she said."""
    found = (_ANSWERED.search(text) for text in world.ann.chat.texts)
    return frozenset(int(match[1]) for match in found if match is not None)


async def converse(world: Bot, first: int, last: int) -> None:
    """Say so many things, each when the one before it is answered."""
    for number in range(first, last):
        if number % 3 == 1:
            # For ever, for a kill before the answer is on record has it asked for again.
            seen = {"what": f"at {number}: {FILLING}"}
            world.model.call("peek", seen, round=0, key=f"turn {number}:", times=None)
        fact = FACT if number == 3 else "nothing new"
        world.ann.says(f"turn {number}: {fact} {FILLING}")
        await world.until(lambda n=number: n in answered(world))


@pytest.mark.long("says a thousand things, and kills the daemon between and within them")
@pytest.mark.timeout(2_400)
async def test_a_thousand_turns_on_telegram_end_well(tmp_path: Path) -> None:
    """The fact of turn 3 is a note that the last turn has; the disk holds all turns.

    S3-08, S3-09, S3-11, S3-12, S4-16, P1.
    """
    turns, chance = 1_000, random.Random(11)
    tools = {"notes": {"enabled": True}} | dict.fromkeys(
        ("attachments", "fetch", "files", "shell"), OFF
    )
    async with bot(
        tmp_path, autonomy="full", provider={"context_tokens": WINDOW}, tools=tools
    ) as world:
        world.model.say(f'"{FACT}"\nState: going on.', key=OF_A_SUMMARY, times=None)
        done = 0
        while done < turns:
            chunk = min(chance.randrange(20, 120), turns - done)
            async with asyncio.TaskGroup() as group:
                talk = group.create_task(converse(world, done + 1, done + chunk + 1))
                killed_at = done + chance.randrange(chunk)
                await world.until(lambda n=killed_at: not n or n in answered(world))
                await world.restart()
                await talk
            done += chunk
        assert await world.daemon.terminate() == 0
        for request in world.model.requests:
            texts = [str(message.get("content") or "") for message in request.messages]
            assert sum(map(of_text, texts)) <= WINDOW * 3 // 4
        for request in world.model.requests[-100:]:
            if not request.last_user.startswith(OF_A_SUMMARY):
                assert f"another conversation: {FACT}" not in request.last_user
                assert f"this conversation: {FACT}" in request.last_user
    store = await open_store(tmp_path / "data", clock=SystemClock())
    try:
        (stream,) = await store.streams(LogKind.JOURNAL)
        journal = [
            entries.decode(entry.body) async for entry in read_all(store, LogKind.JOURNAL, stream)
        ]
        rows = [row async for row in TURNS.all(store, state="closed")]
    finally:
        await store.aclose()
    opened = [entry for entry in journal if isinstance(entry, entries.TurnOpened)]
    ended = [entry.reason for entry in journal if isinstance(entry, entries.TurnFinished)]
    assert FACT in opened[2].user.content
    assert len(opened) == len(rows) == turns
    assert ended == ["model_stop"] * turns
