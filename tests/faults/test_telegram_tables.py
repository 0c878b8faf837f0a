"""Killed while a table is shown, the daemon finds the rich message by its number, as any other.

In Ann's own chat it is a rich draft and then a rich message, in the group a message that is edited.
"""

from pathlib import Path

import pytest

from tests.faults.crash_run import CrashRun
from tests.faults.kill_points import nth
from tests.faults.kills import kill_at
from tests.faults.on_telegram import TEAM, OnTelegram, on_telegram
from tests.faults.scenarios import Scenario
from tests.faults.scenarios_on_telegram import cut
from zeroclaw.store import DurablePoint

pytestmark = [pytest.mark.slow, pytest.mark.needs("bwrap")]

TABLE = ("See:\n\n| what | much |\n|---|---|\n", "| milk | 1 |\n", "| bread | 2 |\n")
SHOWN = "See:\n\nwhat | much\nmilk | 1\nbread | 2"


async def _alone(run: CrashRun) -> None:
    run.write("prices", *TABLE)
    await run.say("ann", "prices", SHOWN)


async def _group(run: CrashRun) -> None:
    world = run.world
    assert isinstance(world, OnTelegram)
    gate = world.model.gate()
    head, *rows = TABLE
    world.model.say(head, gate, *rows, key="prices", times=None)

    async def read() -> None:
        # The rows must not come together with their head: then there is nothing to edit.
        await world.until(lambda: world.telegram.called("sendMessage", "sendRichMessage"))
        gate.open()

    run.keep_running(read())
    await run.say("ann", "prices", SHOWN, where=TEAM)


SCENARIOS = {"alone": Scenario(play=_alone), "group": Scenario(play=_group)}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("what", "call", "name"),
    [
        ("call", "send", "alone"),
        ("call", "edit", "group"),
        ("commit", DurablePoint.DELIVERED.value, "alone"),
    ],
)
async def test_a_kill_around_a_table_loses_and_repeats_nothing(
    tmp_path: Path, what: str, call: str, name: str, when: str
) -> None:
    """P1, P6."""
    scenario = SCENARIOS[name]
    open_world = on_telegram(channel=scenario.channel)
    await kill_at(tmp_path, scenario, nth(what, call, when, 1), open_world=open_world)


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize(
    ("method", "name"), [("sendRichMessage", "alone"), ("editMessageText", "group")]
)
async def test_a_kill_during_a_call_that_shows_a_table_loses_nothing(
    tmp_path: Path, method: str, name: str, *, carried_out: bool
) -> None:
    """A message that stands is found by its number, in its own form. P1."""
    scenario = cut(SCENARIOS[name], method, 1, carried_out=carried_out)
    open_world = on_telegram(channel=scenario.channel)
    await kill_at(tmp_path, scenario, nth("api", method, "during", 1), open_world=open_world)
