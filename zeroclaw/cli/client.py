"""Sends requests to the running daemon."""

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


async def ask(place: Path, call: str, kind: type[A], **arguments: object) -> A:
    """Return the daemon's answer.

    Args:
        place: The data directory.
        call: The name of the call.
        kind: The type of the answer.
        arguments: The arguments of the call.

    Raises:
        DaemonUnreachable: It can't be reached; `NotRunning` if no daemon runs there.
        DaemonRefused: It answered with an error, or in another form.
    """
    reply = await request(place, {"call": call, **arguments})
    if "error" in reply:
        raise DaemonRefused(str(reply["error"]))
    try:
        return msgspec.convert(reply, kind)
    except msgspec.ValidationError as error:
        reason = f"{error}"[:1].lower() + f"{error}"[1:]
        message = f"the running daemon answers in another form: {reason}; restart it"
        raise DaemonRefused(message) from error


async def ask_if_running(place: Path, call: str, kind: type[A], **arguments: object) -> A | None:
    """Return the daemon's answer, None if no daemon runs; see `ask`."""
    with suppress(NotRunning):
        return await ask(place, call, kind, **arguments)
    return None


async def is_running(place: Path) -> bool:
    """Return whether a daemon runs in this data directory, also one of another user."""
    try:
        await (await connect(place)).aclose()
    except DaemonUnreachable as error:
        return not isinstance(error, NotRunning)
    return True


async def secrets_of_daemon(place: Path) -> frozenset[str]:
    """Return the key paths of the secrets that the running daemon has; empty if none runs."""
    with suppress(DaemonUnreachable, DaemonRefused):
        return (await ask(place, "errors", Errors)).secrets
    return frozenset()


async def change(place: Path, call: str, *words: str) -> str:
    """Have the daemon change something, and return its sentence about the change.

    Args:
        place: The data directory.
        call: A call that takes `{"call": …, "words": "…"}` and answers with a `Text`.
        words: What to do, as a person would write it in a chat.

    Raises:
        DaemonUnreachable: No daemon runs there.
        Refused: Nothing was changed; the text is the daemon's.
    """
    reply = await ask(place, call, Text, words=" ".join(words))
    text = reply.text.replace(f"`/{call} ", f"`zeroclaw {call} ")  # as typed in a shell
    if not reply.changed:
        raise Refused(text)
    return text
