"""Hand a platform's events to ingress, and send the short answers to them."""

import asyncio
from collections.abc import Awaitable, Callable

from zeroclaw import Admission, Admit, ChannelLog, Envelope, ZeroclawError

MOST_ANSWERS = 64
"""Short answers sent at the same time; one more is dropped, but never the effect it tells of."""


async def admitted(admit: Admit, envelope: Envelope, log: ChannelLog) -> Admission | None:
    """Return what ingress says of an event; None if it could not be stored, and must come again."""
    try:
        return await admit(envelope)
    except ZeroclawError as error:
        log("event_not_admitted", why=str(error), level="warning")
        return None


class ShortAnswers:
    """Sends toasts and the like, for which no event waits; one that fails is logged and lost."""

    def __init__(self, log: ChannelLog, event: str, most: int = MOST_ANSWERS) -> None:
        """Log one that fails as `event`, and send no more than `most` at the same time."""
        self._log, self._event = log, event
        self._under_way = asyncio.Semaphore(most)

    def begin(self, group: asyncio.TaskGroup, send: Callable[[], Awaitable[None]]) -> None:
        """Begin to send one, unless too many are under way; never waits."""
        if not self._under_way.locked():
            group.create_task(self._sent(send))

    async def _sent(self, send: Callable[[], Awaitable[None]]) -> None:
        async with self._under_way:
            try:
                await send()
            except ZeroclawError as error:
                self._log(self._event, why=str(error))
