"""Killed around each call to Discord, the daemon answers, asks and runs as if nothing had been.

What was sent before the kill, and not recorded, is looked for in the chat's history when the daemon is
back, and stands once: an answer, a card, a note. A press that was made while the daemon was away failed
in the operator's app, so she presses again.
"""

import asyncio
from pathlib import Path

import pytest
from simcord.backend.models import Message

from tests.faults.forked import COMMAND
from tests.faults.instants import Instants, nth
from tests.faults.killed_daemon import PORT_VARIABLE
from tests.faults.promises import REPEAT
from tests.journeys.discord.bot import Bot, bot

pytestmark = pytest.mark.slow

ANSWER = "Let me knock.\n\nSo be it."
WAITING = "Waiting for an operator to approve `knock`."
LIVES = 3
"""As often as the model may be asked the same again."""
CALLS = {
    "edited": ["send 1", "send 2", "edit 1", "ask 1", "settle 1"],
    "whole": ["send 1", "ask 1", "settle 1"],
}


def cards(here: Bot) -> list[Message]:
    return [one for one in here.discord.from_bot(here.olga.direct) if "knock**" in one.content]


async def press_whatever_is_asked(here: Bot) -> None:
    """Be Olga, who presses once in each life of the bot, until the card is settled."""
    pressed: set[tuple[int, int]] = set()
    while True:
        changed = here.discord.next_change()
        for card in cards(here):
            life = (card.id, here.discord.identifies)
            if card.components and life not in pressed and here.discord.is_heard:
                pressed.add(life)
                once = here.button(card, "Approve once")
                here.olga.presses(here.olga.direct, card.id, once)
        await changed.wait()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("shown", "call"), [(shown, call) for shown, calls in CALLS.items() for call in calls]
)
async def test_a_kill_around_a_call_to_discord_loses_and_doubles_nothing(
    tmp_path: Path, shown: str, call: str, when: str
) -> None:
    """Answered once, run once, every card settled, and nothing may be a repeat. P1, P3, P5."""
    told = asyncio.Event()
    async with (
        Instants(told.set) as instants,
        bot(
            tmp_path,
            start=False,
            command=COMMAND,
            environment={PORT_VARIABLE: str(instants.port)},
            channel={"stream": shown == "edited"},
        ) as here,
        asyncio.TaskGroup() as group,
    ):
        instants.kill = here.daemon.kill
        name, _, number = call.partition(" ")
        instants.ends_at = nth("call", name, when, int(number))
        for _ in range(LIVES):
            here.model.call("knock", {"what": "on wood"}, text="Let me knock.", round=0)
            here.model.say("So be it.", round=1)
        operator = group.create_task(press_whatever_is_asked(here))
        await here.daemon.start()
        await here.until(lambda: here.discord.is_heard)
        here.ann.says(here.ann.direct, "please knock")
        while instants.last is None:
            await told.wait()
            told.clear()
        await here.daemon.ended()
        instants.ends_at = None
        instants.begin()
        begun = here.discord.identifies
        await here.daemon.start()
        # All may stand already, so the new life has to be up before it is told to end.
        await here.until(lambda: here.discord.identifies > begun and _is_quiet(here))
        operator.cancel()
        texts = [one.content for one in here.discord.from_bot(here.ann.direct)]
        assert sorted(texts) == [ANSWER, WAITING]
        assert [one for one in texts if REPEAT in one] == []
        [card] = cards(here)
        assert "approved by" in card.content
        # A card is settled while its call runs, and a draft may be edited, so that the kill may hit
        # both; then it may have run.
        ran = here.bench.ran("knock")
        assert ran == ["on wood"] or (name in ("settle", "edit") and not ran)


def _is_quiet(here: Bot) -> bool:
    texts = [one.content for one in here.discord.from_bot(here.ann.direct)]
    asked = cards(here)
    return sorted(texts) == [ANSWER, WAITING] and bool(asked) and not asked[0].components
