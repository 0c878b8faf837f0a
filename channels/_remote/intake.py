"""Show ingress what happened, and whoever did it what came of that."""

import asyncio
from collections.abc import Awaitable, Callable

from zeroclaw import Admission, Admit, ChannelLog, Envelope, ZeroclawError

MOST_ANSWERS = 64
"""Short answers under way at once; one beyond that is lost, what it tells of is not."""


async def admitted(admit: Admit, envelope: Envelope, log: ChannelLog) -> Admission | None:
    """Return what ingress says; None where it could not be stored, and must be shown again."""
    try:
        return await admit(envelope)
    except ZeroclawError as error:
        log("event_not_admitted", why=str(error), level="warning")
        return None


class ShortAnswers:
    """What people are shown of what they did, such as a toast; nobody waits for it, and it may be lost."""

    def __init__(self, log: ChannelLog, event: str, most: int = MOST_ANSWERS) -> None:
        """Hold what the log is told of one that fails, and how many are under way at most."""
        self._log, self._event = log, event
        self._under_way = asyncio.Semaphore(most)

    def begin(self, group: asyncio.TaskGroup, give: Callable[[], Awaitable[None]]) -> None:
        """Begin to give one, unless too many are under way; never waits."""
        if not self._under_way.locked():
            group.create_task(self._given(give))

    async def _given(self, give: Callable[[], Awaitable[None]]) -> None:
        async with self._under_way:
            try:
                await give()
            except ZeroclawError as error:
                self._log(self._event, why=str(error))
