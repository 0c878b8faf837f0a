"""Take updates, however they come, and fetch them: at least once, for what was not stored comes again.

Each update is decoded, shown to the ingress, and then begins what its sender is to see, who hears
nothing before. A webhook takes them the same way (`webhook.py`).

Telegram forgets an update when a later poll asks for what comes after it. So a poll is only made
once everything before it is stored, refused or passed over; updates of one chat are shown one after
another, those of different chats at once.

A poll has an end, whatever the connection does: one that stays open, or brings a byte now and then,
would look like a quiet night for ever. And one that is answered too early with nothing, as a proxy
may do, is not made again at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from channels.telegram.account import LONGEST_POLL_S
from channels.telegram.decode import (
    Me,
    Passed,
    Taken,
    chat_of,
    decoded,
    newest_message,
    update_id,
)
from channels.telegram.lookup import Numbers
from zeroclaw import (
    Admission,
    Admit,
    ChannelLog,
    ChannelUnavailable,
    Clock,
    RateLimited,
    Struct,
    ZeroclawError,
)

AGAIN_S = 1.0
"""Seconds until what could not be stored is fetched again, and until a poll after an early one."""

LONGEST_QUIET_S = 30.0
"""A wait that Telegram asks for is no failure up to here."""

Fetch = Callable[[int | None], Awaitable[list[object]]]
Take = Callable[[object], Awaitable[bool]]
Then = Callable[[Taken | Passed, Admission | None], None]


class Intake(Struct, frozen=True, kw_only=True):
    """Takes the updates of one account.

    Attributes:
        admit: Stores an event.
        then: Begins what a sender is to see of an event, and never waits; told of each, what was
            passed over with no admission.
        me: Who decodes.
        numbers: Of messages, which each update brings.
        log: For facts.
    """

    admit: Admit
    then: Then
    me: Me
    numbers: Numbers
    log: ChannelLog

    async def take(self, update: object) -> bool:
        """Admit an update; False when it could not be stored, and must come again."""
        if (newest := newest_message(update)) is not None:
            self.numbers.saw(*newest)
        event = decoded(update, self.me)
        admission: Admission | None = None
        if isinstance(event, Taken):
            try:
                admission = await self.admit(event.envelope)
            except ZeroclawError as error:
                self.log("event_not_admitted", why=str(error), level="warning")
                return False
        else:
            self.log("update_passed_over", why=event.why, level="debug")
        self.then(event, admission)
        return True


class Poller:
    """Receives for one account."""

    def __init__(self, fetch: Fetch, take: Take, clock: Clock) -> None:
        """Hold what is needed.

        Args:
            fetch: Polls, from an update's number on.
            take: Takes one update; False when it must come again.
            clock: For waits.
        """
        self._fetch = fetch
        self._take = take
        self._clock = clock

    async def run(self) -> None:
        """Receive until cancelled.

        Raises:
            ChannelUnavailable: Telegram can't be reached, or a poll has died.
            RateLimited: Telegram asks for a long wait.
        """
        # No offset is kept: without one the server begins with what it was not told to forget.
        offset: int | None = None
        while True:
            began = self._clock.monotonic()
            try:
                updates = await self._poll(offset)
            except RateLimited as error:
                if error.retry_after_s > LONGEST_QUIET_S:
                    raise  # so that the wait is seen: the channel is not up while it lasts
                await self._clock.sleep(max(error.retry_after_s, AGAIN_S))
                continue
            numbers = [number for one in updates if (number := update_id(one)) is not None]
            failed = await self._show(updates)
            if numbers:
                offset = min(failed, default=max(numbers) + 1)
            is_early = not updates and self._clock.monotonic() - began < AGAIN_S
            if failed or len(numbers) < len(updates) or is_early:
                await self._clock.sleep(AGAIN_S)

    async def _poll(self, offset: int | None) -> list[object]:
        try:
            async with asyncio.timeout(LONGEST_POLL_S):
                return await self._fetch(offset)
        except TimeoutError:
            message = f"a poll for updates had no end within {LONGEST_POLL_S:g} s"
            raise ChannelUnavailable(message) from None

    async def _show(self, updates: Sequence[object]) -> list[int]:
        """Show updates to the door; return the numbers of those that must come again."""
        chats: dict[str, list[object]] = {}
        for one in updates:
            chats.setdefault(chat_of(one), []).append(one)
        if len(chats) == 1:  # most often
            failed = [await self._show_lane(updates)]
        else:
            async with asyncio.TaskGroup() as group:
                lanes = [group.create_task(self._show_lane(lane)) for lane in chats.values()]
            failed = [one.result() for one in lanes]
        return [number for number in failed if number is not None]

    async def _show_lane(self, lane: Sequence[object]) -> int | None:
        """Show updates in their order, and return the number of the first that was not stored.

        None is shown after it.
        """
        for one in lane:
            if not await self._take(one):
                return update_id(one)
        return None
