"""Whether a platform is out of reach, and the moment when it no longer is.

One for each channel, which outlives the adapters that are made for it one after another. What waits
before it tries again need not wait any longer once something else was answered.
"""

import asyncio
from dataclasses import dataclass, field


@dataclass(eq=False, kw_only=True)
class Outage:
    """What the calls of one channel have told of it.

    Attributes:
        ended: How many outages are over.
    """

    ended: int = 0
    _is_on: bool = False
    _next: asyncio.Event = field(default_factory=asyncio.Event)

    def go_on(self) -> None:
        """A call did not reach the platform."""
        self._is_on = True

    def end(self) -> None:
        """The platform has answered; nothing happens where it was in reach."""
        if self._is_on:
            self._is_on = False
            self.ended += 1
            self._next.set()
            self._next = asyncio.Event()

    async def ends(self, *, since: int) -> None:
        """Wait until more outages are over than so many."""
        while self.ended <= since:
            await self._next.wait()
