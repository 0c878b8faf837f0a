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
from typing import Never

from channels._remote.intake import admitted
from channels.telegram.account import LONGEST_POLL_S
from channels.telegram.decode import Me, Passed, Taken, chat_of, decoded, newest_message, update_id
from channels.telegram.lookup import Numbers
from zeroclaw import Admission, Admit, ChannelLog, ChannelUnavailable, Clock, RateLimited, Struct

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
            admission = await admitted(self.admit, event.envelope, self.log)
            if admission is None:
                return False
        else:
            self.log("update_passed_over", why=event.why, level="debug")
        self.then(event, admission)
        return True


async def poll(fetch: Fetch, take: Take, clock: Clock) -> Never:
    """Receive until cancelled.

    Args:
        fetch: Polls, from an update's number on.
        take: Takes one update; False when it must come again.
        clock: For waits.

    Raises:
        ChannelUnavailable: Telegram can't be reached, or a poll has died.
        RateLimited: Telegram asks for a long wait.
    """
    # No offset is kept: without one the server begins with what it was not told to forget.
    offset: int | None = None
    while True:
        began = clock.monotonic()
        try:
            async with asyncio.timeout(LONGEST_POLL_S):
                updates = await fetch(offset)
        except TimeoutError:
            message = f"a poll for updates had no end within {LONGEST_POLL_S:g} s"
            raise ChannelUnavailable(message) from None
        except RateLimited as error:
            if error.retry_after_s > LONGEST_QUIET_S:
                raise  # so that the wait is seen: the channel is not up while it lasts
            await clock.sleep(max(error.retry_after_s, AGAIN_S))
            continue
        numbers = [number for one in updates if (number := update_id(one)) is not None]
        failed = await _not_taken(take, updates)
        if numbers:
            offset = min(failed, default=max(numbers) + 1)
        is_early = not updates and clock.monotonic() - began < AGAIN_S
        if failed or len(numbers) < len(updates) or is_early:
            await clock.sleep(AGAIN_S)


async def _not_taken(take: Take, updates: Sequence[object]) -> list[int]:
    """Show updates to the door; return the numbers of those that must come again.

    Those of a chat are shown in their order, and none after one that was not stored.
    """
    chats: dict[str, list[object]] = {}
    for one in updates:
        chats.setdefault(chat_of(one), []).append(one)
    failed: list[int] = []

    async def show(lane: Sequence[object]) -> None:
        for one in lane:
            if not await take(one):
                if (number := update_id(one)) is not None:
                    failed.append(number)
                return

    if len(chats) == 1:  # most often
        await show(updates)
        return failed
    async with asyncio.TaskGroup() as group:
        for lane in chats.values():
            group.create_task(show(lane))
    return failed
