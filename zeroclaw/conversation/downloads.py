"""Fetches the files attached to messages, before their turn starts.

    item ──► claimed size ──► fetch, with retries ──► actual size ──► FETCHED: blob and row

The outcome of each file is committed once, on its own, so that a kill at any instant repeats at
most one fetch, and a recorded file is never fetched again. A failure is recorded too: the turn
starts without the file, and the model is told why. Only the file's own conversation waits. The wait
ends early on a stop, when the daemon shuts down, and when the message is withdrawn or erased; its
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
from zeroclaw.conversation.inbox import INBOX, Item, PersonMessage, Stop
from zeroclaw.conversation.message_text import messages, origins, own_text, run_of, whole_text
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
"""The wait before the second try; it doubles with each try, or is what the platform asks for."""


UnheardAudio = Literal["nothing", "some", "all"]


class MessagesForModel(Value):
    """What the model reads of the messages.

    Attributes:
        texts: One text per message, in order.
        unheard: How much of the messages needs a transcriber; `all` if they have no words or other
            files.
        own: The part of each message that its sender wrote themselves.
        untrusted: The sources of untrusted text in them.
        files: The attached files that a model may be sent.
    """

    texts: tuple[str, ...]
    unheard: UnheardAudio = "nothing"
    own: tuple[str, ...] = ()
    untrusted: tuple[Source, ...] = ()
    files: tuple[FilePart, ...] = ()


class FetchFailed(Value):
    """A file that could not be fetched; `why` completes a sentence."""

    why: str


STOPPED = FetchFailed(why="the answer was stopped before it came")
NO_ROOM = FetchFailed(
    why="there is no room for files now: what is kept has reached its bound on the disk"
)


class Downloads(Value):
    """Fetches files and lists them for the model; one for the whole daemon.

    Attributes:
        store: Where files are stored.
        accounts: The accounts of the channels connected so far, by channel name.
        clock: For waits between tries.
        settings: The limits.
        has_room: Whether storage is below its limit; asked before each file.
        reader: The tool that reads files, empty if there is none.
        takes: What the model accepts besides text.
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
        news: asyncio.Event,
        is_wanted: Callable[[], bool],
    ) -> None:
        """Record the outcome of every file of these items.

        Returns early, with files left unrecorded, if one of the items no longer waits or the turn
        is no longer wanted. In that case no turn of these items may start.

        Args:
            fence: The fence of their conversation.
            items: The oldest first.
            news: Set when something new arrives; a stop ends the fetching.
            is_wanted: Whether a turn should still start; `news` is set when that changes.
        """
        of_messages: dict[str, int] = {}
        for item in items:
            if not isinstance(item.content, PersonMessage) or not item.content.attachments:
                continue
            known = {one.place: one for one in await self._stored(item)}
            left_bytes = of_messages.get(run_of(item), self.settings.max_message_bytes)
            left_bytes -= sum(one.size_bytes for one in known.values())
            for place, attachment in enumerate(item.content.attachments):
                if place in known:
                    continue
                got = await self._unless_over(item, attachment, left_bytes, news, is_wanted)
                if got is None:
                    return
                kept = await self._keep(fence, item, place, attachment, got)
                if kept is None:
                    return
                left_bytes -= kept.size_bytes
            of_messages[run_of(item)] = left_bytes

    async def for_model(self, items: tuple[Item, ...]) -> MessagesForModel:
        """Return what the model reads of each message, with its files listed."""
        found = [await self._for_model(message) for message in messages(items)]
        alike = all(one.unheard == found[0].unheard for one in found)
        return MessagesForModel(
            texts=tuple(text for one in found for text in one.texts),
            unheard=found[0].unheard if alike else "some",
            own=tuple(text for one in found for text in one.own),
            untrusted=merge_sources((), (source for one in found for source in one.untrusted)),
            files=tuple(file for one in found for file in one.files),
        )

    async def bytes_of(self, files: Iterable[FilePart]) -> dict[str, bytes]:
        """Return the bytes of files in base64, by digest; leaves out files no longer stored.

        Metadata in an image, such as the camera's, is removed.
        """
        found: dict[str, bytes] = {}
        for file in files:
            body = await self.store.blob(file.digest)
            if body is not None and (sent := await asyncio.to_thread(_sent, file, body)):
                found[file.digest] = sent
        return found

    async def _for_model(self, message: tuple[Item, ...]) -> MessagesForModel:
        asks = [one.content for one in message if isinstance(one.content, PersonMessage)]
        if not asks:
            return MessagesForModel(texts=("",))  # a command that starts a turn, not a message
        files = [
            file
            for one, ask in zip(message, asks, strict=True)
            if ask.attachments
            for file in await self._stored(one)
        ]
        words, not_taken = whole_text(asks), sum(ask.not_taken for ask in asks)
        for_ears = [is_unheard(one, self.takes) for one in files]
        unheard: UnheardAudio = "some" if any(for_ears) else "nothing"
        if files and all(for_ears) and not words.strip() and not not_taken:
            unheard = "all"
        text = with_files(words, files, not_taken=not_taken, reader=self.reader, takes=self.takes)
        brought = (named("attachment", one.attachment.name) for one in files)
        return MessagesForModel(
            texts=(text,),
            unheard=unheard,
            own=(own_text(asks),),
            untrusted=merge_sources(origins(asks), brought),
            files=parts(files),
        )

    async def _stored(self, item: Item) -> tuple[AttachmentRow, ...]:
        return tuple([one async for one in ATTACHMENTS.all(self.store, place=item.id)])

    async def _keep(
        self, fence: Fence, item: Item, place: int, attachment: Attachment, got: bytes | FetchFailed
    ) -> AttachmentRow | None:
        """Commit the outcome of a file; return None if its message no longer waits."""
        made = AttachmentRow(
            number=0,
            item=item.id,
            place=place,
            principal=item.principal.id,
            attachment=attachment,
            at=self.clock.now(),
        )
        blob: tuple[PutBlob, ...] = ()
        if isinstance(got, FetchFailed):
            made = replace(made, failed=got.why)
        else:
            made = await asyncio.to_thread(self._with_facts, made, got)
            blob = (PutBlob(digest=made.digest, body=got),)
        here = fence.conversation

        async def plan(reads: Reads) -> tuple[Commit | None, AttachmentRow | None]:
            if not await is_waiting(reads, item):
                return None, None
            numbered = replace(made, number=await next_number(reads, here))
            writes = (*blob, attachment_put(here, numbered))
            point = DurablePoint.FETCHED
            return Commit(point=point, conversation=here, fence=fence, writes=writes), numbered

        kept = await transact(self.store, plan)
        if kept is not None:
            self._log_end(item, kept)
        return kept

    def _with_facts(self, made: AttachmentRow, body: bytes) -> AttachmentRow:
        """Return the row with what the file's bytes tell: type, size and digest."""
        name = made.attachment.name
        return replace(
            made,
            label=recognise(body, name).label,
            size_bytes=len(body),
            digest=hashlib.sha256(body).hexdigest(),
            media_type=model_media_type(body, name, most_pixels=self.settings.shown_pixels),
        )

    def _log_end(self, item: Item, made: AttachmentRow) -> None:
        whose = {"channel": item.address.channel, "conversation": item.conversation}
        if made.failed:
            self.log("attachment_missed", **whose, why=made.failed, level="warning")
        else:
            self.log("attachment_fetched", **whose, size_bytes=made.size_bytes)

    # --- one file ------------------------------------------------------------------------------

    async def _unless_over(
        self,
        item: Item,
        attachment: Attachment,
        left_bytes: int,
        news: asyncio.Event,
        is_wanted: Callable[[], bool],
    ) -> bytes | FetchFailed | None:
        """Fetch a file; `STOPPED` if its turn is stopped first, None if no turn should start."""
        channel = item.address.channel
        async with asyncio.TaskGroup() as group:
            ending = group.create_task(self._wait_until_over(item, news, is_wanted))
            fetching = group.create_task(self._fetch(channel, attachment, left_bytes))
            first, late = await asyncio.wait((ending, fetching), return_when="FIRST_COMPLETED")
            for one in late:
                one.cancel()
        # Leave whatever set it to the mailbox.
        news.set()
        return (fetching if fetching in first else ending).result()

    async def _wait_until_over(
        self, item: Item, news: asyncio.Event, is_wanted: Callable[[], bool]
    ) -> FetchFailed | None:
        """Wait until the turn of this item is stopped by someone who may, or no longer wanted."""
        while True:
            news.clear()
            if not is_wanted() or not await is_waiting(self.store, item):
                return None
            if await self._is_stopped(item):
                return STOPPED
            await news.wait()

    async def _is_stopped(self, item: Item) -> bool:
        controls = INBOX.all(self.store, conversation=item.conversation, state="control")
        return any([_stops(one, item) async for one in controls])

    async def _fetch(
        self, channel: str, attachment: Attachment, left_bytes: int
    ) -> bytes | FetchFailed:
        most = min(self.settings.max_bytes, left_bytes)
        if attachment.size_bytes is not None and attachment.size_bytes > most:
            return self._too_large(attachment.size_bytes, left_bytes)
        if not await self.has_room():
            return NO_ROOM
        ends_at = self.clock.monotonic() + self.settings.timeout_s
        for tried in range(1, TRIES + 1):
            left_s = ends_at - self.clock.monotonic()
            outcome = await self._try(channel, attachment, most, left_s)
            match outcome:
                case Delivered(value=body):
                    return body if len(body) <= most else self._too_large(len(body), left_bytes)
                case Rejected(why=why):
                    return FetchFailed(why=why)
                case Unknown(why=why, broken=True):
                    return FetchFailed(why=f"a fault in the channel's own code, it {why}")
                case Unreachable(why=why, retry_after_s=asked_s):
                    pause_s = max(BACK_OFF.wait_s(tried), asked_s or 0.0)
                case Unknown(why=why):
                    pause_s = BACK_OFF.wait_s(tried)
            if tried == TRIES or self.clock.monotonic() + pause_s > ends_at:
                return FetchFailed(why=f"{why} (tried {counted(tried, 'time')})")
            await self.clock.sleep(pause_s)
        message = "the last try returns"
        raise AssertionError(message)

    async def _try(
        self, channel: str, attachment: Attachment, most: int, left_s: float
    ) -> CallOutcome[bytes]:
        account = self.accounts.get(channel)
        if account is None:
            return Unreachable(why=f"`{channel}` is not connected")
        return await account.fetch(attachment, max_bytes=most, timeout_s=left_s)

    def _too_large(self, size_bytes: int, left_bytes: int) -> FetchFailed:
        most = self.settings.max_bytes
        if size_bytes > most:
            return FetchFailed(
                why=f"it is larger than {counted(most, 'byte')}, the most for one file"
            )
        of_all = counted(self.settings.max_message_bytes, "byte")
        return FetchFailed(
            why=f"all files of one message may have {of_all}, and {left_bytes:,} are left"
        )


def _sent(file: FilePart, body: bytes) -> bytes:
    return b64encode(without_metadata(body, file.media_type))


def _stops(control: Item, item: Item) -> bool:
    """Whether a control item stops the turn that an item is about to start."""
    match control.content:
        case Stop(cause="stop"):
            is_operator = "operator" in control.principal.roles
            return control.principal.id == item.principal.id or is_operator
        case Stop(cause="interrupt", before=before):
            is_theirs = control.principal.id == item.principal.id
            return is_theirs and (before is None or item.id < before)
        case _:
            return False


async def is_waiting(rows: Rows, item: Item) -> bool:
    """Whether an item still waits for its turn."""
    row = await rows.get(RowKind.INBOX, item.id)
    return row is not None and row.state == "queued"


async def next_number(reads: Reads, conversation: ConversationId) -> int:
    """Return the number for a conversation's next file, and guard that it stays free."""
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

        A file is left out if its message was withdrawn before it was answered.
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
