"""The loopback platform as a channel: events in order and at least once, one connection a call.

A call that could not connect did not arrive; one whose connection ended before its answer may
have arrived. The adapter has no state but the connection for events.
"""

import asyncio
import base64
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

from zeroclaw import (
    Address,
    Admit,
    Answered,
    Attachment,
    Capabilities,
    Card,
    Channel,
    ChannelContext,
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    DeliveryUnknown,
    LookupResult,
    MessageRef,
    NotSupported,
    Outcome,
    Outgoing,
    OutgoingFile,
    Postable,
    RateLimited,
    Rendered,
    ToolProgress,
    ZeroclawError,
)
from zeroclaw_test_platform import LoopbackSettings, decode, render
from zeroclaw_test_platform.wire import (
    LONGEST_LINE,
    Json,
    Op,
    card_to_json,
    ending_to_json,
    line,
    read,
    text_of,
)

HOST = "127.0.0.1"
MAX_CONCURRENT = 64


def open_channel(context: ChannelContext) -> Channel:
    """Make the adapter; it connects when it is used."""
    settings = context.settings
    if not isinstance(settings, LoopbackSettings):
        raise TypeError("the settings of a loopback channel must be `LoopbackSettings`")
    return LoopbackChannel(context, settings)


class LoopbackChannel:
    """One account of the loopback platform."""

    def __init__(self, context: ChannelContext, settings: LoopbackSettings) -> None:
        """Connect to nothing yet."""
        self._context = context
        self._settings = settings
        self._capabilities = settings.capabilities()

    @property
    def name(self) -> str:
        """The name in the configuration."""
        return self._context.name

    @property
    def capabilities(self) -> Capabilities:
        """As configured."""
        return self._capabilities

    # --- inward --------------------------------------------------------------------------------

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Receive events until cancelled; those of one chat are admitted in order."""
        async with self._connection() as (reader, writer):
            writer.write(line({"open": "events", "account": self._settings.account}))
            first = await _next(reader)
            if first is None or first.get("ready") is not True:
                raise self._failure(first or {"error": "unavailable"})
            ready()
            lanes = _Lanes(MAX_CONCURRENT)
            async with asyncio.TaskGroup() as group:
                while (event := await _next(reader)) is not None:
                    await lanes.room()
                    admit_event = partial(self._admit, event, admit, writer)
                    # The group ends with the connection, so nothing outlives `receive`.
                    group.create_task(lanes.run(text_of(event, "chat"), admit_event))
        raise ChannelUnavailable(f"`{self.name}` lost its connection")

    async def _admit(self, event: Json, admit: Admit, writer: asyncio.StreamWriter) -> None:
        """Admit an event, then confirm it."""
        envelope = decode.envelope(self.name, self._settings.account, event)
        toast = ""
        if envelope is not None:
            try:
                admission = await admit(envelope)
            except ZeroclawError as error:
                self._context.log("event_not_admitted", reason=str(error))
                writer.write(line({"again": text_of(event, "id")}))
                return
            toast = admission.text if isinstance(admission, Answered) else ""
        writer.write(line({"confirm": text_of(event, "id"), "toast": toast}))

    # --- outward -------------------------------------------------------------------------------

    def render(self, markdown: str) -> Rendered:
        """Return both forms of a text."""
        return render.markdown(markdown)

    def measure(self, rendered: Rendered) -> int:
        """Return the length in code points."""
        return render.measure(rendered)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Post a message."""
        answer = await self._call("send", to, _outgoing(outgoing))
        return MessageRef(address=to, message=text_of(answer, "message"))

    def mark(self, to: Address) -> str:
        """Refuse: the platform knows repeats by their keys, or not at all."""
        raise NotSupported(f"`{self.name}` looks for no messages in `{to.chat}`")

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        """Refuse; see `mark`."""
        del content, since, apart, before
        raise NotSupported(f"`{self.name}` looks for no messages in `{to.chat}`")

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Post a file with its caption."""
        self._needs(self._capabilities.max_file_bytes > 0, "takes no files")
        fields = {
            "text": file.caption,
            "name": file.name,
            "media_type": file.media_type,
            "base64": base64.b64encode(file.content).decode(),
            "key": file.key,
            "reply_to": file.reply_to or "",
        }
        answer = await self._call("send_file", to, fields)
        return MessageRef(address=to, message=text_of(answer, "message"))

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        """Replace a message's text."""
        self._needs(self._capabilities.can_edit, "edits no messages")
        await self._call("edit", ref.address, _outgoing(outgoing), ref.message)

    async def delete(self, ref: MessageRef) -> None:
        """Remove a message; the platform says nothing about one that is gone."""
        self._needs(self._capabilities.can_delete, "deletes no messages")
        await self._call("delete", ref.address, {}, ref.message)

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Post a card: with buttons, or as text that says what to type."""
        buttons = self._capabilities.has_buttons
        fields = {
            "text": render.card(card, numbered=not buttons),
            "card": card_to_json(card),
            "buttons": [call.approval for call in card.calls] if buttons else [],
            "key": card.key,
        }
        answer = await self._call("ask", to, fields)
        return MessageRef(address=to, message=text_of(answer, "message"))

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show how a card ended: on it, or in a message after it where nothing can be edited."""
        ended = {ending.approval for ending in outcome.endings}
        still_open = [call.approval for call in outcome.card.calls if call.approval not in ended]
        buttons = self._capabilities.has_buttons
        if self._capabilities.can_edit:
            text = render.card(outcome.card, outcome.endings, numbered=not buttons)
        else:
            text = render.endings(outcome.card, outcome.endings)
        fields = {
            "text": text,
            "endings": [ending_to_json(ending) for ending in outcome.endings],
            "buttons": still_open if buttons else [],
            "in_place": self._capabilities.can_edit,
            # The same endings on the same card are one message, however often they are sent.
            "key": f"{outcome.card.key}/{ref.message}/{len(outcome.endings)}",
        }
        await self._call("settle", ref.address, fields, ref.message)

    async def typing(self, to: Address, doing: tuple[ToolProgress, ...] = ()) -> None:
        """Show that the bot is at work."""
        self._needs(self._capabilities.has_typing, "shows no typing")
        await self._call("typing", to, {})

    async def preview(self, to: Address, outgoing: Outgoing) -> None:
        """Refuse: here a message is edited as it grows."""
        self._needs(self._capabilities.native_draft, "shows nothing that is not sent")

    def direct_address(self, sender: str) -> Address | None:
        """Return the chat named like the person, where the bot may begin one."""
        if not self._settings.opens_direct_chats:
            return None
        account = self._settings.account
        return Address(channel=self.name, account=account, chat=sender, direct=True)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """Return an attachment's bytes; the platform refuses to send more than `max_bytes`."""
        nowhere = Address(channel=self.name, account=self._settings.account, chat="")
        fields = {"reference": attachment.reference, "max_bytes": max_bytes}
        answer = await self._call("fetch", nowhere, fields)
        return base64.b64decode(text_of(answer, "base64"))

    async def aclose(self) -> None:
        """Do nothing: each connection ends with its call."""

    # --- one call ------------------------------------------------------------------------------

    def _needs(self, capability: bool, refusal: str) -> None:
        if not capability:
            raise NotSupported(f"`{self.name}` {refusal}")

    async def _call(
        self, op: Op, to: Address, fields: Mapping[str, object], message: str = ""
    ) -> Json:
        if to.thread is not None:
            self._needs(self._capabilities.has_threads, "has no threads")
        request = {
            "call": op,
            "account": self._settings.account,
            "chat": to.chat,
            "thread": to.thread or "",
            "message": message,
            **fields,
        }
        async with self._connection() as (reader, writer):
            writer.write(line(request))
            answer = await _next(reader)
        if answer is None:
            raise DeliveryUnknown(f"`{self.name}` gave no answer to `{op}`")
        if "error" in answer:
            raise self._failure(answer)
        return answer

    @asynccontextmanager
    async def _connection(
        self,
    ) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        try:
            reader, writer = await asyncio.open_connection(
                HOST, self._settings.port, limit=LONGEST_LINE
            )
        except OSError as error:
            raise ChannelUnavailable(f"`{self.name}` can't reach its platform") from error
        try:
            yield reader, writer
        finally:
            # Not awaited: a peer that hangs must not delay a cancelled task.
            writer.close()

    def _failure(self, answer: Json) -> ZeroclawError:
        message = f"`{self.name}`: {text_of(answer, 'message') or text_of(answer, 'error')}"
        match answer.get("error"):
            case "rate_limited":
                retry_after_s = answer.get("retry_after_s")
                seconds = float(retry_after_s) if isinstance(retry_after_s, int | float) else 1.0
                return RateLimited(message, retry_after_s=seconds)
            case "gone":
                return ChannelRejected(message, gone=True)
            case "markup":
                return ChannelRejected(message, markup=True)
            case "unauthorized":
                return ChannelUnauthorized(message)
            case "unavailable":
                return ChannelUnavailable(message)
            case _:
                return ChannelRejected(message)


class _Lanes:
    """Runs work in order within a lane, and at most `limit` pieces at once over all lanes."""

    def __init__(self, limit: int) -> None:
        self._room = asyncio.Semaphore(limit)
        self._locks: dict[str, asyncio.Lock] = {}

    async def room(self) -> None:
        """Wait until one more may begin; `run` frees its place."""
        await self._room.acquire()

    async def run(self, lane: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work in its turn."""
        try:
            # A lock is fair: tasks get it in the order in which they wait.
            async with self._locks.setdefault(lane, asyncio.Lock()):
                await work()
        finally:
            self._room.release()


async def _next(reader: asyncio.StreamReader) -> dict[str, object] | None:
    """Read one object; a connection that was reset counts as ended."""
    try:
        return await read(reader)
    except ConnectionError:
        return None


def _outgoing(outgoing: Outgoing) -> Json:
    rendered = outgoing.rendered
    return {
        "text": rendered.plain if outgoing.plain else rendered.body,
        "plain": outgoing.plain,
        "key": outgoing.key,
        "draft": outgoing.draft,
        "reply_to": outgoing.reply_to or "",
        "receipts": "\n".join(receipt.line() for receipt in outgoing.receipts),
    }
