"""Passes a platform's events to ingress and sends the short answers to them."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from zeroclaw import Admission, Admit, ChannelUnavailable, Envelope, Ignored, Log, ZeroclawError

MAX_ANSWERS = 64
"""Short answers sent concurrently; further ones are dropped, but never the effects they report."""


async def try_admit(
    admit: Admit, envelope: Envelope, log: Log, as_new: Envelope | None = None
) -> Admission | None:
    """Admit an event; return None if it was not stored and must be delivered again.

    Args:
        admit: Ingress.
        envelope: The event.
        log: The channel's log.
        as_new: For an edit that mentions the bot, the message as a new one. Many people add a mention
            that they forgot, and ingress ignores an edit if the original was not for the bot.
    """
    try:
        admission = await admit(envelope)
        if as_new is not None and isinstance(admission, Ignored):
            admission = await admit(as_new)
    except ZeroclawError as error:
        log("event_not_admitted", reason=str(error), level="warning")
        return None
    return admission


@contextmanager
def until(closed: asyncio.Event) -> Generator[None]:
    """Suppress the errors of a cut connection in the block if `closed` is set: the channel was closed."""
    try:
        yield
    except* ChannelUnavailable:
        if not closed.is_set():
            raise


class ShortAnswers:
    """Sends toasts and the like in the background; a failed one is logged and not retried."""

    def __init__(self, log: Log, event: str) -> None:
        """Log failures as `event`."""
        self._log, self._event = log, event
        self._slots = asyncio.Semaphore(MAX_ANSWERS)

    def begin(self, group: asyncio.TaskGroup, send: Callable[[], Awaitable[object]]) -> None:
        """Start to send an answer, or drop it if too many are being sent; never waits."""
        if not self._slots.locked():
            group.create_task(self._run(send))

    async def _run(self, send: Callable[[], Awaitable[object]]) -> None:
        async with self._slots:
            try:
                await send()
            except ZeroclawError as error:
                self._log(self._event, reason=str(error))
