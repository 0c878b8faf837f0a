"""The part of the adapter that is the same for every local chat.

Outgoing messages are published to all open views; incoming events are admitted. The adapter stores
nothing. A message's id is its key, so sending it twice shows one message. Sending succeeds while no
view is open, because a view that opens later reads the transcript from the store.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

from channels._local import CAPABILITIES, LocalSettings, decode, render
from channels._local.decode import Received, RefusedPost
from channels._local.feed import Feed, Subscription
from zeroclaw import (
    Address,
    Admit,
    Answered,
    Capabilities,
    Card,
    ChannelContext,
    ChannelRejected,
    ChannelUnavailable,
    Ignored,
    LookupResult,
    MessageRef,
    NotSupported,
    Outcome,
    Outgoing,
    Postable,
    Rendered,
    ToolProgress,
    TranscriptItem,
    ZeroclawError,
    replace,
)


class LocalChannel:
    """One person's chat on this machine; a subclass serves and displays it.

    Attributes:
        context: The channel's context.
        name: The name in the configuration.
        capabilities: What its views can show.
        feed: Delivers live events to the views.
        address: The address of the one chat.
    """

    def __init__(self, context: ChannelContext, capabilities: Capabilities = CAPABILITIES) -> None:
        """Open nothing before `receive`; the edit interval comes from the settings."""
        interval = context.settings_as(LocalSettings).draft_interval_s
        self.context = context
        self.name = context.name
        self.capabilities = replace(capabilities, min_edit_interval_s=interval)
        self.feed = Feed()
        self.address = decode.address(context.name)
        self._admit: Admit | None = None
        # The outbox sends the reply to a command before `admit` returns; views show it below.
        self._storing = asyncio.Lock()

    @contextmanager
    def serving(self, admit: Admit) -> Generator[None]:
        """Admit events and accept readers while the block runs."""
        self._admit = admit
        self.feed.open()
        try:
            yield
        finally:
            self._admit = None
            self.feed.close()

    async def take(
        self, kind: str, posted: decode.Message | decode.Press | RefusedPost
    ) -> Received | RefusedPost:
        """Admit an event, publish it to all readers, and return the reply to its sender (P1).

        Args:
            kind: As in `decode.envelope`.
            posted: The event; one that could not be parsed is a `RefusedPost` and returned as it is.
        """
        if isinstance(posted, RefusedPost):
            return posted
        event = decode.envelope(self.name, kind, posted)
        if isinstance(event, RefusedPost):
            return event
        try:
            async with self._storing:
                if self._admit is None:
                    message = f"`{self.name}` is closing"
                    raise ChannelUnavailable(message)
                admission = await self._admit(event)
        except ZeroclawError as error:
            self.context.log("event_not_stored", reason=str(error), level="warning")
            return RefusedPost(id=posted.id, reason="it could not be stored yet", again=True)
        if isinstance(admission, Ignored):
            return RefusedPost(id=posted.id, reason="it was ignored")
        if isinstance(posted, decode.Message):
            files, now = tuple(file.name for file in event.attachments), self.context.clock.now()
            self.feed.publish(render.person(posted.id, posted.text, now, files))
        toast = admission.text if isinstance(admission, Answered) else ""
        return Received(id=posted.id, toast=toast)

    async def snapshot(
        self, reader: Subscription, after: str = ""
    ) -> tuple[TranscriptItem, ...] | None:
        """Read the items after a cursor, in order; None if the store can't be read.

        Of the events that the reader got meanwhile, only those that the items lack stay queued.
        """
        try:
            items = await self.context.transcript(self.address, after)
        except ZeroclawError as error:
            self.context.log("transcript_not_read", reason=str(error), level="warning")
            return None
        displayed = (replace(item, text=self.displayed(item.text)) for item in items)
        items_by_id = render.by_id(displayed)
        reader.keep(lambda event: render.adds_to(event, items_by_id))
        return tuple(items_by_id.values())

    def displayed(self, text: str) -> str:
        """Return a stored text in the form that live events use."""
        return text

    def measure(self, rendered: Rendered) -> int:
        """Return the length in code points."""
        return len(rendered.body)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Show a message; its id is its key."""
        ref = MessageRef(address=self.valid(to), message=outgoing.key)
        async with self._storing:
            self._show(ref, outgoing)
        return ref

    def mark(self, to: Address) -> str:
        """Refuse: sends are idempotent, so a lookup is never needed."""
        self.valid(to)
        self.refuse("looks for no messages")

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        """Refuse; see `mark`."""
        del content, since, apart, before
        self.valid(to)
        self.refuse("looks for no messages")

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        """Replace the message's text."""
        self.valid(ref.address)
        self._show(ref, outgoing)

    async def delete(self, ref: MessageRef) -> None:
        """Remove the message from every view."""
        self.valid(ref.address)
        self.feed.publish(render.Gone(id=ref.message))

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Show an approval card; its id is its key."""
        ref = MessageRef(address=self.valid(to), message=card.key)
        await self.settle(ref, Outcome(card=card, endings=()))
        return ref

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show on the card how its approval requests ended."""
        self.valid(ref.address)
        self.feed.publish(render.card(ref.message, outcome, self.context.clock.now()))

    async def typing(self, to: Address, doing: tuple[ToolProgress, ...] = ()) -> None:  # noqa: ARG002
        """Show that the bot is working, until it sends a message."""
        self.valid(to)
        self.feed.publish(render.Typing())

    async def preview(self, to: Address, outgoing: Outgoing) -> None:  # noqa: ARG002  the contract's
        """Refuse: a growing answer is shown by editing its message."""
        self.refuse("shows nothing that is not sent")

    def direct_address(self, sender: str) -> Address | None:
        """Return the one chat, for the one person."""
        return self.address if sender == decode.CHAT else None

    async def aclose(self) -> None:
        """End every reader's subscription."""
        self.feed.close()

    def valid(self, to: Address) -> Address:
        """Return the address of the one chat, after checking that `to` is that chat.

        Raises:
            NotSupported: It is a thread.
            ChannelRejected: It is another chat.
        """
        if to.thread is not None:
            self.refuse("has no threads")
        if to.key() != self.address.key():
            message = f"`{self.name}` has no chat `{to.chat}`"
            raise ChannelRejected(message)
        return self.address

    def refuse(self, reason: str) -> NoReturn:
        """Raise `NotSupported` for a call that the capabilities rule out."""
        message = f"`{self.name}` {reason}"
        raise NotSupported(message)

    def _show(self, ref: MessageRef, outgoing: Outgoing) -> None:
        item = render.bot(ref.message, outgoing, self.context.clock.now())
        limit = self.capabilities.max_length
        if len(item.text) > limit:
            message = f"{len(item.text)} characters are more than {limit}"
            raise ChannelRejected(message)
        self.feed.publish(item)
