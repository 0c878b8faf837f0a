"""Killed at each durable point and around each call to Telegram, the daemon keeps its promises.

    pytest tests/faults/test_telegram_walked.py -k "sendMessage and group"

Telegram knows no keys: whether a message stands whose record was never made is found out by looking
for it. So nothing is answered twice here, nor asked twice.
"""

from pathlib import Path

import pytest

from tests.faults.kill_points import nth
from tests.faults.kills import ONCE_MORE, kill_at, kill_cases
from tests.faults.on_telegram import on_telegram
from tests.faults.scenarios_on_telegram import ON_TELEGRAM, cut
from zeroclaw.store import DurablePoint
from zeroclaw.value import replace

pytestmark = [pytest.mark.slow, pytest.mark.needs("bwrap")]

NOT_PERFORMED = {
    # No scene here outgrows its model; `test_durable_points.py` walks it.
    DurablePoint.COMPACTED
}
WALK: dict[DurablePoint, tuple[tuple[str, int], ...]] = {
    # The second admission is the operator's press, or the edit.
    DurablePoint.ADMITTED: (
        *(("text", 1), ("group", 1), ("approved", 2), ("edited", 2)),
        *(("reasoned", 2), ("reasoned", 3)),
    ),
    DurablePoint.FETCHED: (("file", 1),),
    DurablePoint.TURN_STARTED: (("text", 1), ("group", 1)),
    DurablePoint.GATED: (("batch", 1),),
    # First a card is to be sent, then it was.
    DurablePoint.ASKED: (("approved", 2), ("approved", 1), ("group asks", 2), ("long card", 2)),
    DurablePoint.ANSWERED: (("approved", 1), ("denied", 1), ("batch", 2)),
    DurablePoint.SETTLED: (("approved", 1), ("long card", 1), ("batch", 2)),
    DurablePoint.CALL_STARTED: (("shell", 1), ("batch", 1)),
    DurablePoint.CALL_FINISHED: (("shell", 1), ("edited", 1)),
    DurablePoint.STEERED: (("edited", 1),),
    DurablePoint.FINISHED: (("text", 1), ("group", 1), ("refused", 1)),
    DurablePoint.REF_KNOWN: (("group", 1), ("long", 1), ("long", 2), ("long in group", 2)),
    DurablePoint.DELIVERED: (("text", 1), ("group", 1), ("long", 1), ("refused", 1)),
    DurablePoint.REFUSED: (("refused", 1),),
    # That a send begins is on record before it does.
    DurablePoint.HOUSEKEEPING: (
        *(("approved", 1), ("approved", 2), ("denied", 1)),
        *(("group", 1), ("long in group", 2)),
    ),
}
CALLS = (
    ("preview", "drafted", 1),
    ("send", "text", 1),
    ("send", "group", 1),
    ("send", "long", 2),
    ("send", "long in group", 2),
    ("edit", "group", 1),
    ("ask", "approved", 1),
    ("ask", "long card", 1),
    ("settle", "approved", 1),
    ("settle", "long card", 1),
    ("settle", "reasoned", 1),
    ("delete", "shorter", 1),
    ("delete", "shorter", 2),
    *(("send", "file out", number) for number in range(1, 4)),
)
METHODS = (
    ("getMe", "text", 1),
    ("getWebhookInfo", "text", 1),
    ("getUpdates", "text", 1),
    ("getUpdates", "approved", 2),
    ("getFile", "file", 1),
    ("sendChatAction", "slow", 1),
    ("sendMessageDraft", "drafted", 1),
    ("sendMessage", "text", 1),
    ("sendMessage", "approved", 2),
    ("sendMessage", "group", 1),
    ("sendMessage", "long", 3),
    ("sendDocument", "long card", 1),
    ("editMessageText", "group", 1),
    ("editMessageText", "denied", 1),
    ("editMessageCaption", "long card", 1),
    ("answerCallbackQuery", "approved", 1),
    ("answerCallbackQuery", "reasoned", 1),
    ("sendMessage", "reasoned", 3),
    ("sendMessage", "reasoned", 4),
    ("deleteMessage", "shorter", 1),
    ("deleteMessage", "shorter", 2),
    ("sendDocument", "file out", 1),
)
FIRST = [*{method: (method, name, n) for method, name, n in reversed(METHODS)}.values()]


def test_every_durable_point_is_walked() -> None:
    """A point that the code exports is killed at, or said not to be performed yet."""
    assert set(WALK) | NOT_PERFORMED == set(DurablePoint)
    assert not set(WALK) & NOT_PERFORMED


@pytest.mark.parametrize(("point", "name", "n", "when"), kill_cases(WALK, further="before"))
async def test_a_kill_at_a_durable_point_loses_and_repeats_nothing(
    tmp_path: Path, point: DurablePoint, name: str, n: int, when: str
) -> None:
    """Answered once, run at most once, every card settled, the books in order. P1, P3, P5."""
    scenario = ON_TELEGRAM[name]
    open_world = on_telegram(channel=scenario.channel)
    if scenario.notice and (point, when) == (DurablePoint.FINISHED, "after"):
        # That commit says that the send begins, so that a refusal of the next one proves nothing.
        scenario = replace(scenario, notice="may or may not have arrived")
    await kill_at(tmp_path, scenario, nth("commit", point.value, when, n), open_world=open_world)


# Before a call stands the commit that it follows from, at which a daemon is killed above.
@pytest.mark.parametrize("when", [pytest.param("before", marks=ONCE_MORE), "after"])
@pytest.mark.parametrize(("call", "name", "n"), CALLS)
async def test_a_kill_between_a_call_and_its_record_loses_and_repeats_nothing(
    tmp_path: Path, call: str, name: str, n: int, when: str
) -> None:
    """An unrecorded effect at Telegram is found and continued. P1, P5, P6."""
    scenario = ON_TELEGRAM[name]
    open_world = on_telegram(channel=scenario.channel)
    await kill_at(tmp_path, scenario, nth("call", call, when, n), open_world=open_world)


async def test_a_life_without_a_message_knows_where_to_look_as_well(tmp_path: Path) -> None:
    """The numbers of what people wrote are stored; killed again, no card stands twice. P5."""
    open_world = on_telegram()
    first, second = nth("commit", "gated", "before"), nth("call", "ask", "after")
    await kill_at(tmp_path, ON_TELEGRAM["group asks"], first, second, open_world=open_world)


@pytest.mark.parametrize(
    ("method", "name", "n", "carried_out"),
    [
        pytest.param(
            *(method, name, n, carried_out),
            id=f"{method}-{name}-{n}-{'carried out' if carried_out else 'lost'}",
            # A method's first call stands for the others that never reached Telegram.
            marks=() if carried_out or (method, name, n) in FIRST else ONCE_MORE,
        )
        for method, name, n in METHODS
        for carried_out in (False, True)
    ],
)
async def test_a_kill_during_a_lookup_at_telegram_loses_and_repeats_nothing(
    tmp_path: Path, method: str, name: str, n: int, *, carried_out: bool
) -> None:
    """Killed before the answer, it can't know whether the call had its effect. P1, P3, P5."""
    scenario = cut(ON_TELEGRAM[name], method, n, carried_out=carried_out)
    open_world = on_telegram(channel=scenario.channel)
    await kill_at(tmp_path, scenario, nth("api", method, "during"), open_world=open_world)
