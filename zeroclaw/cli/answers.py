"""Asks the running daemon one thing, and turns its `error` into an error."""

from collections.abc import Mapping
from pathlib import Path

from zeroclaw.errors import Refused
from zeroclaw.host.control import request


class DaemonRefused(Refused):
    """Raised when the daemon answered with an error; the text is the daemon's."""


async def answer(place: Path, line: Mapping[str, object]) -> Mapping[str, object]:
    """Return the daemon's answer.

    Args:
        place: The data directory.
        line: `{"call": name, …}`.

    Raises:
        Unreachable: No daemon runs there.
        DaemonRefused: It answered with an error.
    """
    told = await request(place, line)
    if "error" in told:
        raise DaemonRefused(str(told["error"]))
    return told
