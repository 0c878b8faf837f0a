"""Takes updates, and polls for them; each is delivered at least once.

Each update is decoded and admitted, and only then answered. The webhook uses the same intake
(`webhook.py`).

Telegram forgets an update when a poll asks for later ones. So a poll only moves past updates that were
stored, refused or ignored. Updates of one chat are taken in order, those of different chats
concurrently.

A poll has a total time limit. Without it, a dead connection, or one that delivers a byte now and then,
would look like a quiet night. A poll that returns empty too early, as through some proxies, is repeated
only after a wait.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Never

from channels._remote.intake import admitted
from channels._remote.limits import LONGEST_QUIET_S
from channels.telegram.account import LONGEST_POLL_S
from channels.telegram.decode import Me, Passed, Taken, chat_of, decoded, newest_message, update_id
from channels.telegram.lookup import Numbers
from zeroclaw import Admission, Admit, ChannelUnavailable, Clock, Log, RateLimited, Struct

AGAIN_S = 1.0
"""Seconds before refetching an update that could not be stored, and after an empty early poll."""

Fetch = Callable[[int | None], Awaitable[list[object]]]
Take = Callable[[object], Awaitable[bool]]
Then = Callable[[Taken | Passed, Admission | None], None]


class Intake(Struct, frozen=True, kw_only=True):
    """Takes the updates of one account.

    Attributes:
        admit: Admits an event.
        then: Called for each stored or ignored update to start the answer; must not wait. Its
            admission is None for an ignored update.
        me: The receiving account.
        numbers: Learns the message ids of updates.
        log: The channel's log.
    """

    admit: Admit
    then: Then
    me: Me
    numbers: Numbers
    log: Log

    async def take(self, update: object) -> bool:
        """Admit an update; return False if it was not stored and must be delivered again."""
        if (newest := newest_message(update)) is not None:
            self.numbers.saw(*newest)
        event = decoded(update, self.me)
        admission: Admission | None = None
        if isinstance(event, Taken):
            admission = await admitted(self.admit, event.envelope, self.log, event.anew)
            if admission is None:
                return False
        else:
            self.log("update_passed_over", why=event.why, level="debug")
        self.then(event, admission)
        return True


async def poll(fetch: Fetch, take: Take, clock: Clock) -> Never:
    """Receive until cancelled.

    Args:
        fetch: Polls for updates from an update id on.
        take: Takes one update; returns False if it must be delivered again.
        clock: For waits.

    Raises:
        ChannelUnavailable: Telegram can't be reached, or a poll exceeded its time limit.
        RateLimited: Telegram asks for a long wait.
    """
    # The offset is not stored: without one the server begins with the oldest unconfirmed update.
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
                raise  # a long wait must be visible: the channel is not up meanwhile
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
    """Take updates; return the ids of those that must be delivered again.

    Those of one chat are taken in order, up to the first that was not stored.
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

    if len(chats) == 1:  # the usual case
        await show(updates)
        return failed
    async with asyncio.TaskGroup() as group:
        for lane in chats.values():
            group.create_task(show(lane))
    return failed
