"""Fetches the files that came with messages, before their turn starts.

    item ──► size said ──► fetch, again while it may help ──► size found ──► FETCHED: blob and row

What became of each file is committed once, by itself, so that a kill at any instant repeats at most
one fetch, and a file that is on record is never asked for again. One that did not come is on record
too: the turn starts without it, and the model is told why. Only the conversation whose file it is
waits, and a stop ends that wait.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from zeroclaw.channel import ChannelLog
from zeroclaw.clock import Clock
from zeroclaw.config import AttachmentSettings
from zeroclaw.delivery.account import Account, Arrived, Ending, Lost, NotArrived, TurnedDown
from zeroclaw.envelope import Attachment
from zeroclaw.readers.formats import recognise
from zeroclaw.store import DurablePoint, PutBlob, RowKind, Store, find_all
from zeroclaw.tools import counted
from zeroclaw.turn.attached import Attached, attached_of, attached_put
from zeroclaw.turn.attached_files import next_number
from zeroclaw.turn.bell import Bell
from zeroclaw.turn.desk import Desk
from zeroclaw.turn.inbox import Ask, Item, Stop, item_of
from zeroclaw.turn.listing import with_files

TRIES = 5
FIRST_WAIT_S = 1.0
"""Before the second try; each wait is twice the one before, or what the platform asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A file that does not come; `why` completes a sentence."""

    why: str


STOPPED = Missed(why="the answer was stopped before it came")


class Arrivals:
    """Has files at hand; one for the whole daemon."""

    def __init__(
        self,
        *,
        store: Store,
        account_of: Callable[[str], Account | None],
        clock: Clock,
        settings: AttachmentSettings,
        reader: str,
        log: ChannelLog,
    ) -> None:
        """Hold what is needed.

        Args:
            store: Where they are kept.
            account_of: The account of a channel, None while it has none.
            clock: For waits between tries.
            settings: The bounds.
            reader: The tool that reads them, empty when there is none.
            log: For facts.
        """
        self._store = store
        self._account_of = account_of
        self._clock = clock
        self._settings = settings
        self._reader = reader
        self._log = log

    async def fetch(self, desk: Desk, items: tuple[Item, ...], bell: Bell) -> None:
        """Put on record what becomes of every file of these items.

        Args:
            desk: Of their conversation.
            items: The oldest first.
            bell: Rings when the control lane has something new; a stop ends the fetching.
        """
        for item in items:
            if not isinstance(item.content, Ask) or not item.content.attachments:
                continue
            known = {one.place: one for one in await self._known(item)}
            left_bytes = self._settings.max_message_bytes
            left_bytes -= sum(one.size_bytes for one in known.values())
            for place, attachment in enumerate(item.content.attachments):
                if place not in known:
                    got = await self._unless_stopped(item, attachment, left_bytes, bell)
                    left_bytes -= await self._keep(desk, item, place, attachment, got)

    async def texts(self, items: tuple[Item, ...]) -> tuple[str, ...]:
        """Return what the model reads of each message of a person, its files listed."""
        return tuple(
            [
                with_files(
                    item.content.text,
                    await self._known(item) if item.content.attachments else (),
                    not_taken=item.content.not_taken,
                    reader=self._reader,
                )
                for item in items
                if isinstance(item.content, Ask)
            ]
        )

    async def _known(self, item: Item) -> tuple[Attached, ...]:
        rows = find_all(self._store, RowKind.ATTACHMENT, place=item.id)
        return tuple([attached_of(row) async for row in rows])

    async def _keep(
        self, desk: Desk, item: Item, place: int, attachment: Attachment, got: bytes | Missed
    ) -> int:
        """Commit what became of a file; returns how much of the message's bytes it takes."""
        made = Attached(
            number=await next_number(self._store, desk.conversation),
            item=item.id,
            place=place,
            principal=item.principal.id,
            attachment=attachment,
            at=self._clock.now(),
            failed=got.why if isinstance(got, Missed) else "",
            label="" if isinstance(got, Missed) else recognise(got, attachment.name).label,
            size_bytes=0 if isinstance(got, Missed) else len(got),
            digest="" if isinstance(got, Missed) else await asyncio.to_thread(_digest, got),
        )
        blob = () if isinstance(got, Missed) else (PutBlob(digest=made.digest, body=got),)
        put = attached_put(desk.conversation, made)
        await desk.commit(DurablePoint.FETCHED, writes=(*blob, put))
        channel = item.address.channel
        if made.failed:
            self._log("attachment_missed", channel=channel, why=made.failed, level="warning")
        else:
            self._log("attachment_fetched", channel=channel, size_bytes=made.size_bytes)
        return made.size_bytes

    # --- one file ------------------------------------------------------------------------------

    async def _unless_stopped(
        self, item: Item, attachment: Attachment, left_bytes: int, bell: Bell
    ) -> bytes | Missed:
        """Fetch a file; a stop of its turn, which begins only then, ends that."""
        got: bytes | Missed = STOPPED

        async def fetch() -> None:
            nonlocal got
            got = await self._fetch(item.address.channel, attachment, left_bytes)

        async with asyncio.TaskGroup() as group:
            stopped = group.create_task(self._stopped(item, bell), name=f"stop of {item.id}")
            fetching = group.create_task(fetch(), name=f"file of {item.id}")
            stopped.add_done_callback(lambda _: fetching.cancel())
            fetching.add_done_callback(lambda _: stopped.cancel())
        # What rang meanwhile is for the mailbox to look at.
        bell.ring()
        return got

    async def _stopped(self, item: Item, bell: Bell) -> None:
        """Wait until somebody who may has ended what this item begins."""
        while True:
            bell.silence()
            if await self._is_stopped(item):
                return
            await bell.wait()

    async def _is_stopped(self, item: Item) -> bool:
        rows = find_all(self._store, RowKind.INBOX, conversation=item.conversation, state="control")
        return any([_ends(item_of(row), item) async for row in rows])

    async def _fetch(self, channel: str, attachment: Attachment, left_bytes: int) -> bytes | Missed:
        most = min(self._settings.max_bytes, left_bytes)
        if attachment.size_bytes is not None and attachment.size_bytes > most:
            return self._too_large(attachment.size_bytes, left_bytes)
        ends_at = self._clock.monotonic() + self._settings.timeout_s
        wait_s = FIRST_WAIT_S
        for tried in range(1, TRIES + 1):
            left_s = ends_at - self._clock.monotonic()
            ending = await self._try(channel, attachment, most, left_s)
            match ending:
                case Arrived(value=body):
                    return body if len(body) <= most else self._too_large(len(body), left_bytes)
                case TurnedDown(why=why):
                    return Missed(why=why)
                case Lost(why=why, broken=True):
                    return Missed(why=f"a fault in the channel's own code, it {why}")
                case NotArrived(why=why, retry_after_s=asked_s):
                    pause_s = max(wait_s, asked_s or 0.0)
                case Lost(why=why):
                    pause_s = wait_s
            if tried == TRIES or self._clock.monotonic() + pause_s > ends_at:
                return Missed(why=f"{why} (tried {counted(tried, 'time')})")
            await self._clock.sleep(pause_s)
            wait_s *= 2
        message = "the last try returns"
        raise AssertionError(message)

    async def _try(
        self, channel: str, attachment: Attachment, most: int, left_s: float
    ) -> Ending[bytes]:
        account = self._account_of(channel)
        if account is None:
            return NotArrived(why=f"`{channel}` is not connected")
        return await account.fetch(attachment, max_bytes=most, timeout_s=left_s)

    def _too_large(self, size_bytes: int, left_bytes: int) -> Missed:
        most = self._settings.max_bytes
        if size_bytes > most:
            return Missed(why=f"it is larger than {counted(most, 'byte')}, the most for one file")
        of_all = counted(self._settings.max_message_bytes, "byte")
        return Missed(
            why=f"all files of one message may have {of_all}, and {left_bytes:,} are left"
        )


def _ends(control: Item, item: Item) -> bool:
    """Tell whether a control item ends the turn that an item is about to begin."""
    match control.content:
        case Stop(cause="stop" | "revoked"):
            is_operator = "operator" in control.principal.roles
            return control.principal.id == item.principal.id or is_operator
        case Stop(cause="interrupt", before=before):
            is_theirs = control.principal.id == item.principal.id
            return is_theirs and (before is None or item.id < before)
        case _:
            return False


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
