"""Sends the running daemon a request."""

from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from zeroclaw.errors import Refused
from zeroclaw.host.answers import DaemonAnswer, Errors, Text
from zeroclaw.host.control import DaemonUnreachable, NotRunning, connect, request

A = TypeVar("A", bound=DaemonAnswer)


class DaemonRefused(Refused):
    """Raised when the daemon answered with an error; the text is the daemon's."""


async def ask(place: Path, call: str, kind: type[A], **more: object) -> A:
    """Return the daemon's answer.

    Args:
        place: The data directory.
        call: The name of the call.
        kind: The form of the answer.
        more: Its arguments.

    Raises:
        DaemonUnreachable: It can't be asked; `NotRunning` if no daemon runs there.
        DaemonRefused: It answered with an error, or in another form.
    """
    told = await request(place, {"call": call, **more})
    if "error" in told:
        raise DaemonRefused(str(told["error"]))
    try:
        return msgspec.convert(told, kind)
    except msgspec.ValidationError as error:
        why = f"{error}"[:1].lower() + f"{error}"[1:]
        message = f"the running daemon says something in another form: {why}; restart it"
        raise DaemonRefused(message) from error


async def ask_if_running(place: Path, call: str, kind: type[A], **more: object) -> A | None:
    """Return the daemon's answer, None if no daemon runs; see `ask`."""
    with suppress(NotRunning):
        return await ask(place, call, kind, **more)
    return None


async def is_running(place: Path) -> bool:
    """Tell whether a daemon runs in this data directory, another user's included."""
    try:
        await (await connect(place)).aclose()
    except DaemonUnreachable as error:
        return not isinstance(error, NotRunning)
    return True


async def held_by_daemon(place: Path) -> frozenset[str]:
    """Return the key paths of secrets that the running daemon has; empty if none runs."""
    with suppress(DaemonUnreachable, DaemonRefused):
        return (await ask(place, "errors", Errors)).secrets
    return frozenset()


async def change(place: Path, call: str, *words: str) -> str:
    """Return the daemon's sentence about the change that it made.

    Args:
        place: The data directory.
        call: A call that takes `{"call": …, "words": "…"}` and answers with a `Text`.
        words: What to do, as a person would write it in a chat.

    Raises:
        DaemonUnreachable: No daemon runs there.
        Refused: Nothing was changed; the text is the daemon's.
    """
    told = await ask(place, call, Text, words=" ".join(words))
    if not told.changed:
        raise Refused(told.text)
    return told.text
