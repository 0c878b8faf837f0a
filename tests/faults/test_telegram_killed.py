"""Killed around each call to Telegram, the daemon answers, asks and runs as if nothing had been.

Telegram knows no keys, so a kill between a send and its record leaves the window of the design: an
answer again, which says that it may be one, or the beginning of one that nobody can take away.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.faults.instants import Instants, nth
from tests.faults.killed_daemon import PORT_VARIABLE
from tests.faults.promises import REPEAT
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow

COMMAND = (sys.executable, "-m", "tests.faults.killed_daemon")
ANSWER = "Let me knock.\n\nSo be it."
LIVES = 3
"""As often as the model may be asked the same again."""


async def press_whatever_is_asked(here: Bot) -> None:
    """Be Olga, who approves every card once, also while the daemon is dead."""
    pressed: set[int] = set()
    while True:
        asked = await here.telegram.until(
            lambda: [
                one for one in here.olga.chat.from_bot if one.buttons and one.id not in pressed
            ]
        )
        here.olga.presses(asked[0], "Approve once")
        pressed.add(asked[0].id)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("call", "number"), [("send", 1), ("send", 2), ("edit", 1), ("ask", 1), ("settle", 1)]
)
async def test_a_kill_around_a_call_to_telegram_loses_nothing(
    tmp_path: Path, call: str, number: int, when: str
) -> None:
    """Answered once, run once, every card settled; a repeat says that it may be one. P1, P3, P5."""
    told = asyncio.Event()
    async with (
        Instants(told.set) as instants,
        bot(
            tmp_path,
            start=False,
            command=COMMAND,
            environment={PORT_VARIABLE: str(instants.port)},
        ) as here,
        asyncio.TaskGroup() as group,
    ):
        instants.kill = here.daemon.kill
        instants.ends_at = nth("call", call, when, number)
        for _ in range(LIVES):
            here.model.call("knock", {"what": "on wood"}, text="Let me knock.", round=0)
            here.model.say("So be it.", round=1)
        operator = group.create_task(press_whatever_is_asked(here))
        await here.daemon.start()
        here.ann.says("please knock")
        while instants.last is None:
            await told.wait()
            told.clear()
        await here.daemon.ended()
        instants.ends_at = None
        instants.begin()
        await here.daemon.start()
        await here.until(lambda: _is_quiet(here))
        operator.cancel()
        _hold_to_account(here)


def _answers(here: Bot) -> list[str]:
    return [text for text in here.ann.chat.texts if text.removesuffix(REPEAT) == ANSWER]


def _is_quiet(here: Bot) -> bool:
    cards = here.olga.chat.from_bot
    is_settled = bool(cards) and not any(card.buttons for card in cards)
    return bool(_answers(here)) and is_settled and not here.telegram.account.updates.waiting


def _hold_to_account(here: Bot) -> None:
    answers = _answers(here)
    assert answers.count(ANSWER) <= 1, here.ann.chat.texts
    assert len(answers) <= 2, here.ann.chat.texts
    assert here.bench.ran("knock") == ["on wood"]
    # A kill may have hit the call as well; then Olga is told, beside her cards.
    cards = [one for one in here.olga.chat.from_bot if one.versions[0].markup is not None]
    assert [card.text for card in cards if "approved by" not in card.text] == []
