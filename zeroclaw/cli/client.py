"""Asks the running daemon one thing, and turns its `error` into an error."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from zeroclaw.errors import Refused
from zeroclaw.host.control import Unreachable, request


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


async def held_by_daemon(place: Path) -> frozenset[str]:
    """Return the key paths of the secrets that the running daemon has; empty where none runs."""
    try:
        held = (await answer(place, {"call": "errors"})).get("secrets")
    except (Unreachable, DaemonRefused):
        return frozenset()
    return frozenset(map(str, cast("list[object]", held) if isinstance(held, list) else ()))


async def change(place: Path, call: str, *words: str) -> str:
    """Return the daemon's sentence about what it changed.

    Args:
        place: The data directory.
        call: What takes `{"call": …, "words": "…"}` and answers `{"text": "…", "changed": true}`.
        words: What to do, as a person would write it in a chat.

    Raises:
        Unreachable: No daemon runs there.
        Refused: Nothing was changed; the text is the daemon's.
    """
    told = await answer(place, {"call": call, "words": " ".join(words)})
    text = str(told.get("text", ""))
    if told.get("changed") is not True:
        raise Refused(text)
    return text
