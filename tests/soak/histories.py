"""The history of one message, so that a wrong answer explains itself."""

from collections.abc import Iterable
from operator import itemgetter

from channels.telegram.emulator import Emulator
from channels.telegram.emulator.faults import Call
from channels.telegram.emulator.people import UserAction
from tests.soak.expected import ExpectedAnswer

MAX_LINES = 60
"""The newest of a history; what is older is left out."""


def history(
    telegram: Emulator,
    expected: ExpectedAnswer,
    *,
    began: float,
    turns: Iterable[tuple[float, str]],
) -> list[str]:
    """Return the calls in a chat from a message on to the last that speaks of it, line by line.

    Args:
        telegram: Where.
        expected: The message and its answer.
        began: Seconds on the emulator's clock from which is counted.
        turns: What befell the daemon, and when, on that clock.
    """
    action = expected.action
    assert isinstance(action, UserAction)
    written = action.sent.versions[0].at
    calls = [
        call for call in telegram.calls if call.chat == expected.chat.id and call.at >= written
    ]
    until = max((call.at for call in calls if expected.key in call.text), default=telegram.now().at)
    events = [(written, f"written as {action.sent.id}")]
    events += [(at, what) for at, what in turns if written <= at <= until]
    events += [(call.at, _described(call)) for call in calls if call.at <= until]
    lines = [f"    {at - began:8.3f}  {what}" for at, what in sorted(events, key=itemgetter(0))]
    stand = [
        f"    stands    {message!r}"
        for message in expected.chat.from_bot
        if expected.key in message.text
    ]
    return [f"  {expected.key} in {expected.chat!r}:", *lines[-MAX_LINES:], *stand]


def _described(call: Call) -> str:
    """Return a call with its planned fault."""
    return repr(call) if call.fault is None else f"{call!r}  ({call.fault!r})"
