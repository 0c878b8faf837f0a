"""Takes updates, and polls for them; each is delivered at least once.

Each update is decoded and admitted, and only then answered. Updates of one chat are taken in order,
those of different chats concurrently. The webhook uses the same intake (`webhook.py`).

Telegram forgets an update when a poll asks for later ones. So a poll only moves past updates that were
stored, refused or ignored.

A poll has a total time limit. Without it, a dead connection, or one that delivers a byte now and then,
would look like a quiet night. A poll that returns empty too early, as through some proxies, is repeated
only after a wait.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Never

from channels._remote.intake import try_admit
from channels._remote.limits import LONGEST_QUIET_S
from channels.telegram import decode
from channels.telegram.account import LONGEST_POLL_S
from channels.telegram.decode import Bot, Decoded, Skipped, update_id
from channels.telegram.lookup import MessageIds
from zeroclaw import Admission, Admit, ChannelUnavailable, Clock, Log, RateLimited, Struct, field

AGAIN_S = 1.0
"""Seconds before refetching an update that could not be stored, and after an empty early poll."""

Fetch = Callable[[int | None], Awaitable[list[object]]]
Take = Callable[[object], Coroutine[None, None, bool]]
Respond = Callable[[Decoded | Skipped, Admission | None], None]


class _Lane(Struct, kw_only=True):
    """The updates of one chat that are in progress; `failed` counts those that were not stored."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    active: int = 0
    failed: int = 0


class Intake(Struct, frozen=True, kw_only=True):
    """Takes the updates of one account.

    Attributes:
        admit: Admits an event.
        respond: Called for each stored or ignored update to start the answer; must not wait. Its
            admission is None for an ignored update.
        bot: The receiving account.
        ids: Learns the message ids of updates.
        log: The channel's log.
    """

    admit: Admit
    respond: Respond
    bot: Bot
    ids: MessageIds
    log: Log
    _lanes: dict[str, _Lane] = field(default_factory=dict[str, _Lane])
    _decoding: asyncio.Lock = field(default_factory=asyncio.Lock)

    def take(self, update: object) -> Coroutine[None, None, bool]:
        """Admit an update after those of its chat that were taken before, in the order of the calls.

        Returns:
            False if it, or one of those, was not stored and must be delivered again.
        """
        chat = decode.chat_of(update)
        lane = self._lanes.setdefault(chat, _Lane())
        lane.active += 1
        return self._in_turn(update, chat, lane, lane.failed)

    async def _in_turn(self, update: object, chat: str, lane: _Lane, failed: int) -> bool:
        try:
            async with lane.lock:
                if lane.failed != failed:
                    return False
                stored = False
                try:
                    stored = await self._admit(update)
                finally:  # also if cancelled or failed, so that later updates don't overtake it
                    lane.failed += not stored
                return stored
        finally:
            lane.active -= 1
            if not lane.active:
                del self._lanes[chat]

    async def _admit(self, update: object) -> bool:
        if (newest := decode.new_message(update)) is not None:
            self.ids.add(*newest)
        event = await self._decode(update)
        admission: Admission | None = None
        if isinstance(event, Decoded):
            admission = await try_admit(self.admit, event.envelope, self.log, event.as_new)
            if admission is None:
                return False
        else:
            self.log("update_skipped", reason=event.reason, level="debug")
        self.respond(event, admission)
        return True

    async def _decode(self, update: object) -> Decoded | Skipped:
        """Decode an update; long ones in a thread, one at a time, because anybody can send them."""
        if not decode.is_long(update):
            return decode.decode(update, self.bot)
        async with self._decoding:
            return await asyncio.to_thread(decode.decode, update, self.bot)


async def poll(fetch: Fetch, take: Take, clock: Clock) -> Never:
    """Receive until cancelled.

    Args:
        fetch: Polls for updates from an update id on.
        take: Takes one update, in the order of the calls; returns False if it must be delivered
            again.
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
        ids = [number for update in updates if (number := update_id(update)) is not None]
        async with asyncio.TaskGroup() as group:
            tasks = [(update_id(update), group.create_task(take(update))) for update in updates]
        failed = [number for number, task in tasks if number is not None and not task.result()]
        if ids:
            offset = min(failed, default=max(ids) + 1)
        is_early = not updates and clock.monotonic() - began < AGAIN_S
        if failed or len(ids) < len(updates) or is_early:
            await clock.sleep(AGAIN_S)
