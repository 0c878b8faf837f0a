"""Hands a platform's events to ingress and sends the short answers to them."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from zeroclaw import Admission, Admit, ChannelUnavailable, Envelope, Ignored, Log, ZeroclawError

MOST_ANSWERS = 64
"""Short answers sent concurrently; further ones are dropped, but never the effects they report."""


async def admitted(
    admit: Admit, envelope: Envelope, log: Log, anew: Envelope | None = None
) -> Admission | None:
    """Return the admission of an event; None if it was not stored and must be delivered again.

    Args:
        admit: Admits an event.
        envelope: The event.
        log: The channel's log.
        anew: For an edit that mentions the bot, the message as a new one. Many people add a mention
            that they forgot, and ingress ignores the edit of a message that was none for the bot.
    """
    try:
        admission = await admit(envelope)
        if anew is not None and isinstance(admission, Ignored):
            admission = await admit(anew)
    except ZeroclawError as error:
        log("event_not_admitted", why=str(error), level="warning")
        return None
    return admission


@contextmanager
def until(closed: asyncio.Event) -> Generator[None]:
    """End a block without an error if the connection that it receives by was cut to close the channel."""
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
        self._under_way = asyncio.Semaphore(MOST_ANSWERS)

    def begin(self, group: asyncio.TaskGroup, send: Callable[[], Awaitable[object]]) -> None:
        """Start to send an answer, or drop it if too many are being sent; never waits."""
        if not self._under_way.locked():
            group.create_task(self._sent(send))

    async def _sent(self, send: Callable[[], Awaitable[object]]) -> None:
        async with self._under_way:
            try:
                await send()
            except ZeroclawError as error:
                self._log(self._event, why=str(error))
