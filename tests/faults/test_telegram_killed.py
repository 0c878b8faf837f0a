"""Killed around each call to Telegram, the daemon answers, asks and runs as if nothing had been.

Telegram knows no keys. So what was sent before the kill, and not recorded, is looked for by its
number when the daemon is back, and stands once: an answer, a card, a note. An answer that was only
begun becomes the whole one, and no beginning of it stays behind. What follows the card is a message
below it, unless the answer is sent only when it is complete.
"""

import asyncio
from pathlib import Path

import pytest

from tests.faults.fork_client import COMMAND
from tests.faults.kill_points import KillPoints, nth
from tests.faults.killed_daemon import PORT_VARIABLE
from tests.faults.promises import REPEAT
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

ANSWER = ("Let me knock.", "So be it.")
WAITING = "Waiting for an operator to approve knock."
LIVES = 3
"""As often as the model may be asked the same again."""


async def press_every_card(world: Bot) -> None:
    """Be Olga, who approves every card once, however long it takes until there is one."""
    pressed: set[int] = set()
    while True:
        changed = world.telegram.next_change()
        for message in world.olga.chat.from_bot:
            if message.buttons and message.id not in pressed:
                pressed.add(message.id)
                world.olga.presses(message, "Approve once")
        await changed.wait()


SHOWN: dict[str, dict[str, object]] = {
    "edited": {"drafts": "edited"},
    "native": {"drafts": "native"},
    "whole": {"stream": False},
}
CALLS = {
    "edited": ["send 1", "send 2", "edit 1", "ask 1", "settle 1"],
    "native": ["send 1", "ask 1", "settle 1"],
    "whole": ["send 1", "ask 1", "settle 1"],
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("shown", "call"), [(shown, call) for shown, calls in CALLS.items() for call in calls]
)
async def test_a_kill_around_a_call_to_telegram_loses_and_doubles_nothing(
    tmp_path: Path, shown: str, call: str, when: str
) -> None:
    """Answered once, run once, every card settled, and nothing may be a repeat. P1, P3, P5."""
    reached = asyncio.Event()
    async with (
        KillPoints(reached.set) as kill_points,
        bot(
            tmp_path,
            start=False,
            command=COMMAND,
            environment={PORT_VARIABLE: str(kill_points.port)},
            channel=SHOWN[shown],
        ) as world,
        asyncio.TaskGroup() as group,
    ):
        kill_points.kill = world.daemon.kill
        name, _, number = call.partition(" ")
        kill_points.kills_at = nth("call", name, when, int(number))
        for _ in range(LIVES):
            world.model.call("knock", {"what": "on wood"}, text="Let me knock.", round=0)
            world.model.say("So be it.", round=1)
        operator = group.create_task(press_every_card(world))
        await world.daemon.start()
        world.ann.says("please knock")
        while kill_points.killed_at is None:
            await reached.wait()
            reached.clear()
        await world.daemon.wait()
        kill_points.kills_at = None
        kill_points.begin()
        await world.daemon.start()
        # All may stand already, so the new life has to be up before it is stopped.
        answer = ANSWER if shown != "whole" else ("\n\n".join(ANSWER),)
        await world.until(lambda: world.telegram.is_polled and _is_quiet(world, answer))
        operator.cancel()
        _hold_to_account(world, answer)
        # A card is settled while its call runs, and a draft may be edited, so that the kill may hit
        # both; then it may have run.
        ran = world.bench.ran("knock")
        assert ran == ["on wood"] or (name in ("settle", "edit") and not ran)


def _is_quiet(world: Bot, answer: tuple[str, ...]) -> bool:
    cards = world.olga.chat.from_bot
    is_settled = bool(cards) and not any(card.buttons for card in cards)
    waits = world.telegram.account.updates.waiting
    # That she had to wait is said once and stays, like all that was said.
    return sorted(world.ann.chat.texts) == [*answer, WAITING] and is_settled and not waits


def _hold_to_account(world: Bot, answer: tuple[str, ...]) -> None:
    texts = world.ann.chat.texts
    assert sorted(texts) == [*answer, WAITING]
    assert [text for text in texts if text in answer] == [*answer]
    assert [text for text in texts + world.olga.chat.texts if REPEAT in text] == []
    # Where a kill has hit the call as well, Olga gets a notice, beside her cards.
    cards = [
        message for message in world.olga.chat.from_bot if message.versions[0].markup is not None
    ]
    assert len(cards) == 1
    assert [card.text for card in cards if "approved by" not in card.text] == []
