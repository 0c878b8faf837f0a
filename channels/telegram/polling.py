"""Fetch updates and show them to the door, at least once: what was not stored is fetched again.

Telegram forgets an update when a later poll asks for what comes after it. So a poll is only made
once everything before it is stored, refused or passed over; updates of one chat are shown one after
another, those of different chats at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from channels.telegram.decode import ALLOWED_UPDATES, chat_of, update_id
from zeroclaw import Clock, RateLimited

AGAIN_S = 1.0
"""Seconds until what could not be stored is fetched again."""

LONGEST_QUIET_S = 30.0
"""A wait that Telegram asks for is no failure up to here."""

Fetch = Callable[[int | None, Sequence[str]], Awaitable[list[object]]]
Take = Callable[[object], Awaitable[bool]]


class Poller:
    """Receives for one account."""

    def __init__(self, *, fetch: Fetch, take: Take, clock: Clock) -> None:
        """Hold what is needed.

        Args:
            fetch: Polls, from an update's number on.
            take: Shows one update to the door; False when it must come again.
            clock: For waits.
        """
        self._fetch = fetch
        self._take = take
        self._clock = clock

    async def run(self) -> None:
        """Receive until cancelled, or until Telegram can't be reached."""
        # No position is kept: without one the server begins with what it was not told to forget.
        offset: int | None = None
        while True:
            try:
                updates = await self._fetch(offset, ALLOWED_UPDATES)
            except RateLimited as error:
                if error.retry_after_s > LONGEST_QUIET_S:
                    raise  # so that the wait is seen: the channel is not up while it lasts
                await self._clock.sleep(max(error.retry_after_s, AGAIN_S))
                continue
            numbers = [number for one in updates if (number := update_id(one)) is not None]
            failed = await self._show(updates)
            if numbers:
                offset = min(failed, default=max(numbers) + 1)
            if failed or len(numbers) < len(updates):
                await self._clock.sleep(AGAIN_S)

    async def _show(self, updates: Sequence[object]) -> list[int]:
        """Show updates to the door; return the numbers of those that must come again."""
        chats: dict[str, list[object]] = {}
        for one in updates:
            chats.setdefault(chat_of(one), []).append(one)
        failed: list[int] = []
        async with asyncio.TaskGroup() as group:
            for lane in chats.values():
                group.create_task(self._show_lane(lane, failed))
        return failed

    async def _show_lane(self, lane: Sequence[object], failed: list[int]) -> None:
        """Show updates in their order; after one that could not be stored none is shown."""
        for one in lane:
            if not await self._take(one):
                number = update_id(one)
                if number is not None:
                    failed.append(number)
                return
