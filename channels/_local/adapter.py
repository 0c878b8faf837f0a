"""The half of an adapter that is the same for every local chat.

What goes out is fanned out to whoever is open, what comes in is admitted. Nothing is kept here. A
message's id is its key, so that sending twice shows one message; a reader that comes later reads
the store's transcript, so that sending to nobody succeeds.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from channels._local import decode, render
from channels._local.feed import Feed, Numbered
from channels._local.render import Item
from zeroclaw import (
    Address,
    Admission,
    Admit,
    Capabilities,
    Card,
    ChannelContext,
    ChannelRejected,
    ChannelUnavailable,
    Command,
    Envelope,
    Ignored,
    LookupResult,
    MessageRef,
    NotSupported,
    Outcome,
    Outgoing,
    Postable,
    Rendered,
    Said,
    TranscriptItem,
    Value,
    ZeroclawError,
)


class Snapshot(Value):
    """All that stood in the chat when it was read.

    Attributes:
        items: By id, in order.
        number: Of the newest event then.
    """

    items: Mapping[str, Item]
    number: int

    def lacks(self, one: Numbered) -> bool:
        """Tell whether an event came later, or came meanwhile and is not in it yet."""
        return one.number > self.number or render.is_news(one.event, self.items)


class LocalChannel:
    """One person's chat on this machine, for a channel that says how it is served and shown.

    Attributes:
        context: All that the channel was handed.
        feed: Where live events go.
        here: The one chat.
    """

    def __init__(
        self,
        context: ChannelContext,
        capabilities: Capabilities,
        stored: Callable[[TranscriptItem], Item] = render.stored,
    ) -> None:
        """Hold what is needed.

        Args:
            context: As handed to `open_channel`.
            capabilities: What the channel can show.
            stored: Makes an item of what the store says of it.
        """
        self.context = context
        self.feed = Feed()
        self.here = decode.address(context.name)
        self._capabilities = capabilities
        self._stored = stored
        self._admit: Admit | None = None

    @property
    def name(self) -> str:
        """The name in the configuration."""
        return self.context.name

    @property
    def capabilities(self) -> Capabilities:
        """What its readers can show."""
        return self._capabilities

    @contextmanager
    def serving(self, admit: Admit) -> Generator[None]:
        """Let events in, and readers follow, while the block runs."""
        self._admit = admit
        self.feed.open()
        try:
            yield
        finally:
            self._admit = None
            self.feed.close()

    async def take(self, event: Envelope) -> Admission | None:
        """Admit an event and tell all readers of it (P1); None where it could not be stored.

        Whoever sent it knows it by its id.
        """
        try:
            if self._admit is None:
                message = f"`{self.name}` is closing"
                raise ChannelUnavailable(message)
            admission = await self._admit(event)
        except ZeroclawError as error:
            self.context.log("event_not_stored", why=str(error), level="warning")
            return None
        if not isinstance(admission, Ignored) and isinstance(event.body, Said | Command):
            text, files = decode.typed(event.body), tuple(one.name for one in event.attachments)
            now = self.context.clock.now()
            self.feed.publish(render.person(event.message, text, now, files))
        return admission

    async def snapshot(self, after: str = "") -> Snapshot | None:
        """Read what stands after a cursor; None where it can't be read."""
        try:
            items = await self.context.transcript(self.here, after)
        except ZeroclawError as error:
            self.context.log("transcript_not_read", why=str(error), level="warning")
            return None
        return Snapshot(items=render.standing(map(self._stored, items)), number=self.feed.number)

    def measure(self, rendered: Rendered) -> int:
        """Return the length in code points."""
        return len(rendered.body)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Show a message; its id is its key."""
        ref = MessageRef(address=self.known(to), message=outgoing.key)
        self._show(ref, outgoing)
        return ref

    def mark(self, to: Address) -> str:
        """Refuse: a reader shows a message once, however often it is sent."""
        raise self._looks_for_nothing(to)

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        """Refuse; see `mark`."""
        del content, since, apart, before
        raise self._looks_for_nothing(to)

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        """Show the whole new text in place."""
        self.known(ref.address)
        self._show(ref, outgoing)

    async def delete(self, ref: MessageRef) -> None:
        """Tell every reader that the message no longer stands."""
        self.known(ref.address)
        self.feed.publish(render.Gone(id=ref.message))

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Show an approval card; its id is its key."""
        ref = MessageRef(address=self.known(to), message=card.key)
        await self.settle(ref, Outcome(card=card, endings=()))
        return ref

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show on the card how its calls ended."""
        self.known(ref.address)
        self.feed.publish(render.card(ref.message, outcome, self.context.clock.now()))

    async def typing(self, to: Address) -> None:
        """Show that the bot is at work, until a message comes."""
        self.known(to)
        self.feed.publish(render.Typing())

    async def preview(self, to: Address, outgoing: Outgoing) -> None:  # noqa: ARG002  the contract's
        """Refuse: here a message is edited as it grows."""
        message = f"`{self.name}` shows nothing that is not sent"
        raise NotSupported(message)

    def direct_address(self, sender: str) -> Address | None:
        """Return the one chat, for the one person."""
        return self.here if sender == decode.CHAT else None

    async def aclose(self) -> None:
        """End what every reader follows."""
        self.feed.close()

    def known(self, place: Address) -> Address:
        """Return the one chat.

        Raises:
            NotSupported: It is a thread.
            ChannelRejected: It is another chat.
        """
        if place.thread is not None:
            message = f"`{self.name}` has no threads"
            raise NotSupported(message)
        if place.key() != self.here.key():
            message = f"`{self.name}` has no chat `{place.chat}`"
            raise ChannelRejected(message)
        return self.here

    def _looks_for_nothing(self, to: Address) -> NotSupported:
        self.known(to)
        return NotSupported(f"`{self.name}` looks for no messages")

    def _show(self, ref: MessageRef, outgoing: Outgoing) -> None:
        item = render.bot(ref.message, outgoing, self.context.clock.now())
        most = self._capabilities.max_length
        if len(item.text) > most:
            message = f"{len(item.text)} characters are more than {most}"
            raise ChannelRejected(message)
        self.feed.publish(item)
