"""The product's own program, started as a fork: for Telegram bots that are killed and started often."""

from typing import TypedDict

from tests.faults.forked import forked
from tests.journeys.daemon_process import Launch


class Started(TypedDict):
    """How `tests.journeys.telegram.bot.bot` is to start its daemon."""

    command: tuple[str, ...]
    launch: Launch


QUICKLY: Started = {"command": ("zeroclaw.cli",), "launch": forked}
