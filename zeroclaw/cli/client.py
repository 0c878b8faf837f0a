"""Asks the running daemon one thing, or opens its store where none runs."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import cast

from zeroclaw.clock import Clock
from zeroclaw.errors import Refused
from zeroclaw.host.control import Unreachable, request
from zeroclaw.store import Store


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
        told = await answer(place, {"call": "errors"})
    except (Unreachable, DaemonRefused):
        return frozenset()
    return frozenset(texts(told.get("secrets")))


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


@asynccontextmanager
async def store_at(place: Path) -> AsyncGenerator[tuple[Store, Clock]]:
    """Open the store of a daemon that does not run, and the clock that it goes by.

    Raises:
        StoreUnusable: It can't be opened, or a daemon holds it after all.
    """
    # Only loaded when no daemon holds it.
    from zeroclaw.host.clock import SystemClock
    from zeroclaw.stores.sqlite import open_store

    clock = SystemClock()
    store = await open_store(place, clock=clock)
    try:
        yield store, clock
    finally:
        await store.aclose()


def table(value: object) -> Mapping[str, object]:
    """Return what is a table in an answer, and an empty one for all else."""
    # What comes over the socket is JSON, whose objects have text keys only.
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def texts(value: object) -> tuple[str, ...]:
    """Return what is a list in an answer as texts, and none for all else."""
    return tuple(map(str, cast("list[object]", value))) if isinstance(value, list) else ()


def time(value: object) -> datetime | None:
    """Return what is an aware time in an answer, None for all else."""
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
