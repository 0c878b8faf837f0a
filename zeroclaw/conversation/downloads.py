"""Fetches the files attached to messages, before their turn starts.

    item ──► claimed size ──► fetch, with retries ──► actual size ──► FETCHED: blob and row

The outcome of each file is committed once, on its own, so that a kill at any instant repeats at
most one fetch, and a recorded file is never fetched again. A failure is recorded too: the turn
starts without the file, and the model reads the reason. Only the file's own conversation waits. The
wait ends early on a stop, when the daemon shuts down, and when the message is deleted or erased; its
file is then not stored.
"""

import asyncio
import hashlib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Literal

from zeroclaw.backoff import BackOff
from zeroclaw.channel import Log
from zeroclaw.clock import Clock
from zeroclaw.config.model import AttachmentSettings
from zeroclaw.conversation.attachments import (
    ATTACHMENTS,
    AttachmentRow,
    attachment_key,
    attachment_put,
    is_unheard,
    parts,
    with_files,
)
from zeroclaw.conversation.inbox import INBOX, Item, PersonMessage, Stop, came_after
from zeroclaw.conversation.message_text import first_id, messages, origins, own_text, whole_text
from zeroclaw.delivery.account import Account
from zeroclaw.delivery.outcomes import CallOutcome, Delivered, Rejected, Unknown, Unreachable
from zeroclaw.envelope import Attachment, ConversationId
from zeroclaw.gate.taint import Source, merge_sources, named
from zeroclaw.message import FileKind, FilePart
from zeroclaw.readers.formats import recognise
from zeroclaw.readers.pictures import model_media_type, without_metadata
from zeroclaw.store import (
    Commit,
    DurablePoint,
    Fence,
    PutBlob,
    Reads,
    RowKind,
    Rows,
    Store,
    transact,
)
from zeroclaw.tools import counted
from zeroclaw.tools.attachments import File
from zeroclaw.value import Struct, Value, replace

TRIES = 5
BACK_OFF = BackOff(first_s=1.0, longest_s=60.0)
"""The wait before the second try; it doubles with each try. A platform may ask for a longer one."""


UnheardAudio = Literal["nothing", "some", "all"]


class MessagesForModel(Value):
    """The messages of a turn as the model reads them.

    Attributes:
        texts: One text per message, in order.
        unheard: How much of the messages needs a transcriber; `all` if they have no text and no
            other files.
        own: The part of each message that its sender wrote themselves.
        untrusted: The sources of untrusted text in them.
        files: The attached files that a model may be sent.
    """

    texts: tuple[str, ...]
    unheard: UnheardAudio = "nothing"
    own: tuple[str, ...] = ()
    untrusted: tuple[Source, ...] = ()
    files: tuple[FilePart, ...] = ()


STOPPED = Rejected(reason="the answer was stopped before it came")
STORE_FULL = Rejected(
    reason="there is no room for files now: what is kept has reached its bound on the disk"
)


class Downloads(Value):
    """Fetches files and lists them for the model; one for the whole daemon.

    Attributes:
        store: Where files are stored.
        accounts: The accounts of the channels connected so far, by channel name.
        clock: For waits between tries.
        settings: The limits.
        has_room: Whether storage is below its limit; called before each file.
        reader: The tool that reads files, empty if there is none.
        takes: The kinds of files that the model accepts.
        log: Logs events.
    """

    store: Store
    accounts: Mapping[str, Account]
    clock: Clock
    settings: AttachmentSettings
    has_room: Callable[[], Awaitable[bool]]
    reader: str
    takes: frozenset[FileKind]
    log: Log

    async def fetch(
        self,
        fence: Fence,
        items: tuple[Item, ...],
        wakeup: asyncio.Event,
        is_wanted: Callable[[], bool],
    ) -> None:
        """Record the outcome of every file of these items.

        Returns early, with files left unrecorded, if one of the items no longer waits or the turn
        is no longer wanted. In that case no turn of these items may start.

        Args:
            fence: The fence of their conversation.
            items: The oldest first.
            wakeup: Set when the inbox changes; a stop ends the fetching.
            is_wanted: Whether a turn should still start; `wakeup` is set when that changes.
        """
        remaining_bytes: dict[str, int] = {}
        for item in items:
            if not isinstance(item.content, PersonMessage) or not item.content.attachments:
                continue
            recorded = {row.place: row for row in await self._stored(item)}
            free_bytes = remaining_bytes.get(first_id(item), self.settings.max_message_bytes)
            free_bytes -= sum(row.size_bytes for row in recorded.values())
            for place, attachment in enumerate(item.content.attachments):
                if place in recorded:
                    continue
                result = await self._fetch_or_stop(item, attachment, free_bytes, wakeup, is_wanted)
                if result is None:
                    return
                row = await self._record(fence, item, place, attachment, result)
                if row is None:
                    return
                free_bytes -= row.size_bytes
            remaining_bytes[first_id(item)] = free_bytes

    async def for_model(self, items: tuple[Item, ...]) -> MessagesForModel:
        """Return each message as the model reads it, with its files listed."""
        found = [await self._for_model(message) for message in messages(items)]
        sources = (source for message in found for source in message.untrusted)
        is_uniform = all(message.unheard == found[0].unheard for message in found)
        return MessagesForModel(
            texts=tuple(text for message in found for text in message.texts),
            unheard=found[0].unheard if is_uniform else "some",
            own=tuple(text for message in found for text in message.own),
            untrusted=merge_sources((), sources),
            files=tuple(file for message in found for file in message.files),
        )

    async def bytes_of(self, files: Iterable[FilePart]) -> dict[str, bytes]:
        """Return the bytes of files in base64, by digest; leaves out files no longer stored.

        Metadata in an image, such as the camera's, is removed.
        """
        found: dict[str, bytes] = {}
        for file in files:
            body = await self.store.blob(file.digest)
            if body is not None and (encoded := await asyncio.to_thread(_encoded, file, body)):
                found[file.digest] = encoded
        return found

    async def _for_model(self, message: tuple[Item, ...]) -> MessagesForModel:
        contents = [item.content for item in message if isinstance(item.content, PersonMessage)]
        if not contents:
            return MessagesForModel(texts=("",))  # a command that starts a turn, not a message
        files = [
            file
            for item, part in zip(message, contents, strict=True)
            if part.attachments
            for file in await self._stored(item)
        ]
        joined, not_taken = whole_text(contents), sum(part.not_taken for part in contents)
        need_ears = [is_unheard(file, self.takes) for file in files]
        unheard: UnheardAudio = "some" if any(need_ears) else "nothing"
        if files and all(need_ears) and not joined.strip() and not not_taken:
            unheard = "all"
        text = with_files(joined, files, not_taken=not_taken, reader=self.reader, takes=self.takes)
        sources = (named("attachment", file.attachment.name) for file in files)
        return MessagesForModel(
            texts=(text,),
            unheard=unheard,
            own=(own_text(contents),),
            untrusted=merge_sources(origins(contents), sources),
            files=parts(files),
        )

    async def _stored(self, item: Item) -> tuple[AttachmentRow, ...]:
        return tuple([row async for row in ATTACHMENTS.all(self.store, place=item.id)])

    async def _record(
        self, fence: Fence, item: Item, place: int, file: Attachment, result: bytes | Rejected
    ) -> AttachmentRow | None:
        """Commit the outcome of a file; return None if its message no longer waits."""
        row = AttachmentRow(
            number=0,
            item=item.id,
            place=place,
            principal=item.principal.id,
            attachment=file,
            at=self.clock.now(),
        )
        blob: tuple[PutBlob, ...] = ()
        if isinstance(result, Rejected):
            row = replace(row, failed=result.reason)
        else:
            row = await asyncio.to_thread(self._with_facts, row, result)
            blob = (PutBlob(digest=row.digest, body=result),)
        conversation = fence.conversation

        async def plan(reads: Reads) -> tuple[Commit | None, AttachmentRow | None]:
            if not await is_waiting(reads, item):
                return None, None
            numbered = replace(row, number=await next_number(reads, conversation))
            writes = (*blob, attachment_put(conversation, numbered))
            point, scope = DurablePoint.FETCHED, fence.conversation
            return Commit(point=point, conversation=scope, fence=fence, writes=writes), numbered

        recorded = await transact(self.store, plan)
        if recorded is not None:
            self._log_outcome(item, recorded)
        return recorded

    def _with_facts(self, row: AttachmentRow, body: bytes) -> AttachmentRow:
        """Return the row with the type, size and digest of the file's bytes."""
        name = row.attachment.name
        return replace(
            row,
            label=recognise(body, name).label,
            size_bytes=len(body),
            digest=hashlib.sha256(body).hexdigest(),
            media_type=model_media_type(body, name, max_pixels=self.settings.shown_pixels),
        )

    def _log_outcome(self, item: Item, row: AttachmentRow) -> None:
        fields = {"channel": item.address.channel, "conversation": item.conversation}
        if row.failed:
            self.log("attachment_missed", **fields, reason=row.failed, level="warning")
        else:
            self.log("attachment_fetched", **fields, size_bytes=row.size_bytes)

    # --- one file ------------------------------------------------------------------------------

    async def _fetch_or_stop(
        self,
        item: Item,
        attachment: Attachment,
        free_bytes: int,
        wakeup: asyncio.Event,
        is_wanted: Callable[[], bool],
    ) -> bytes | Rejected | None:
        """Fetch a file; `STOPPED` if its turn is stopped first, None if no turn should start."""
        channel = item.address.channel
        async with asyncio.TaskGroup() as group:
            ending = group.create_task(self._wait_until_ended(item, wakeup, is_wanted))
            fetching = group.create_task(self._fetch(channel, attachment, free_bytes))
            first, late = await asyncio.wait((ending, fetching), return_when="FIRST_COMPLETED")
            for task in late:
                task.cancel()
        # The mailbox handles whatever set it.
        wakeup.set()
        return (fetching if fetching in first else ending).result()

    async def _wait_until_ended(
        self, item: Item, wakeup: asyncio.Event, is_wanted: Callable[[], bool]
    ) -> Rejected | None:
        """Wait until the turn of this item is stopped, or no longer wanted."""
        while True:
            wakeup.clear()
            if not is_wanted() or not await is_waiting(self.store, item):
                return None
            controls = INBOX.all(self.store, conversation=item.conversation, state="control")
            if any([_stops(control, item) async for control in controls]):
                return STOPPED
            await wakeup.wait()

    async def _fetch(
        self, channel: str, attachment: Attachment, free_bytes: int
    ) -> bytes | Rejected:
        max_bytes = min(self.settings.max_bytes, free_bytes)
        if attachment.size_bytes is not None and attachment.size_bytes > max_bytes:
            return self._too_large(attachment.size_bytes, free_bytes)
        if not await self.has_room():
            return STORE_FULL
        ends_at = self.clock.monotonic() + self.settings.timeout_s
        tried = 0
        while True:
            tried += 1
            remaining_s = ends_at - self.clock.monotonic()
            outcome = await self._try(channel, attachment, max_bytes, remaining_s)
            match outcome:
                case Delivered(value=body):
                    is_small = len(body) <= max_bytes
                    return body if is_small else self._too_large(len(body), free_bytes)
                case Rejected():
                    return outcome
                case Unknown(reason=reason, broken=True):
                    return Rejected(reason=f"a fault in the channel's own code, it {reason}")
                case Unreachable(reason=reason, retry_after_s=minimum_s):
                    pause_s = max(BACK_OFF.wait_s(tried), minimum_s or 0.0)
                case Unknown(reason=reason):
                    pause_s = BACK_OFF.wait_s(tried)
            if tried == TRIES or self.clock.monotonic() + pause_s > ends_at:
                return Rejected(reason=f"{reason} (tried {counted(tried, 'time')})")
            await self.clock.sleep(pause_s)

    async def _try(
        self, channel: str, attachment: Attachment, max_bytes: int, remaining_s: float
    ) -> CallOutcome[bytes]:
        account = self.accounts.get(channel)
        if account is None:
            return Unreachable(reason=f"`{channel}` is not connected")
        return await account.fetch(attachment, max_bytes=max_bytes, timeout_s=remaining_s)

    def _too_large(self, size_bytes: int, free_bytes: int) -> Rejected:
        most, of_all = self.settings.max_bytes, self.settings.max_message_bytes
        if size_bytes > most:
            why = f"it is larger than {counted(most, 'byte')}, the most for one file"
            return Rejected(reason=why)
        bound = counted(of_all, "byte")
        why = f"all files of one message may have {bound}, and {free_bytes:,} are left"
        return Rejected(reason=why)


def _encoded(file: FilePart, body: bytes) -> bytes:
    return b64encode(without_metadata(body, file.media_type))


def _stops(control: Item, item: Item) -> bool:
    """Whether a control item stops the turn that an item is about to start."""
    is_theirs = control.principal.id == item.principal.id
    match control.content:
        case Stop(cause="stop"):
            is_after = came_after(control.id, first_id(item))
            return is_after and (is_theirs or "operator" in control.principal.roles)
        case Stop(cause="interrupt", before=before):
            return is_theirs and (before is None or item.id < before)
        case _:
            return False


async def is_waiting(rows: Rows, item: Item) -> bool:
    """Whether an item still waits for its turn."""
    row = await rows.get(RowKind.INBOX, item.id)
    return row is not None and row.state == "queued"


async def next_number(reads: Reads, conversation: ConversationId) -> int:
    """Return the number for a conversation's next file, and guard its row."""
    rows = await reads.select(
        ATTACHMENTS.where(conversation=conversation, newest_first=True, limit=1)
    )
    number = ATTACHMENTS.of(rows[0]).number + 1 if rows else 1
    await reads.get(ATTACHMENTS.kind, attachment_key(conversation, number))
    return number


class AttachedFiles(Struct, eq=False):
    """Reads the files of conversations; implements `AttachmentsStore`."""

    store: Store

    async def find(self, conversation: ConversationId, number: int) -> File | None:
        """Return a file, None if this conversation has no file with that number.

        A file whose message was deleted before it was answered counts as missing.
        """
        found = await self._find(conversation, number)
        if found is None:
            return None
        name = found.attachment.name
        return File(name=name, size_bytes=found.size_bytes, failed=found.failed)

    async def content(self, conversation: ConversationId, number: int) -> bytes | None:
        """Return a file's bytes, None if it was never fetched or is no longer stored."""
        found = await self._find(conversation, number)
        return None if found is None or found.failed else await self.store.blob(found.digest)

    async def _find(self, conversation: ConversationId, number: int) -> AttachmentRow | None:
        row = await self.store.get(RowKind.ATTACHMENT, attachment_key(conversation, number))
        if row is None:
            return None
        item = await self.store.get(RowKind.INBOX, row.place)
        return None if item is not None and item.state == "superseded" else ATTACHMENTS.of(row)
