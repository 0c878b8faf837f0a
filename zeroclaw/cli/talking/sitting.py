"""Puts a session together from this process's own stdin and stdout."""

import os
import secrets
import shutil
import sys
from pathlib import Path

from zeroclaw.cli.client import answer
from zeroclaw.cli.talking.ink import Ink
from zeroclaw.cli.talking.keyboard import typed
from zeroclaw.cli.talking.link import Link
from zeroclaw.cli.talking.session import Session
from zeroclaw.cli.talking.view import View
from zeroclaw.host.clock import SystemClock

HISTORY = 10


async def sit(
    place: Path,
    *,
    first: tuple[str, ...] = (),
    approves: bool = False,
    history: int = HISTORY,
) -> None:
    """Talk until the person leaves.

    Args:
        place: The data directory of the daemon.
        first: Said before anything is typed.
        approves: Every call is approved once, and the session ends with the last answer.
        history: How many earlier messages are shown on a terminal.

    Raises:
        Unreachable: No daemon runs there.
        NoTerminal: It has no terminal channel.
    """
    ink = ink_of_stdout()
    clock = SystemClock()
    session = Session(
        link=Link(place, clock=clock, token=lambda: secrets.token_hex(12)),
        view=View(ink, history=history if ink.moves else 0),
        ink=ink,
        write=_write,
        status=lambda: answer(place, {"call": "status"}),
        clock=clock,
        approves=approves,
    )
    await session.run(typed(sys.stdin.fileno()), first)


def ink_of_stdout() -> Ink:
    """Look at what stdout is; an input that is no terminal makes a script of it all."""
    is_screen = (
        sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    )
    size = shutil.get_terminal_size()
    return Ink(
        moves=is_screen,
        colours=is_screen and not os.environ.get("NO_COLOR"),
        columns=size.columns,
        rows=size.lines,
    )


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
