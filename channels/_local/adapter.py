"""The half of an adapter that is the same for every local chat.

What goes out is fanned out to all open views, what comes in is admitted. Nothing is kept here. A
message's id is its key, so that sending twice shows one message; a reader that comes later reads
the store's transcript, so that sending while no view is open succeeds.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import NoReturn

from channels._local import CAPABILITIES, LocalSettings, decode, render
from channels._local.decode import Received, Refused
from channels._local.feed import Feed, Numbered
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
    Value,
    ZeroclawError,
    replace,
)


class Snapshot(Value):
    """All that stood in the chat when it was read.

    Attributes:
        items: By id, in order.
        number: Of the newest event then.
    """

    items: Mapping[str, TranscriptItem]
    number: int

    def lacks(self, one: Numbered) -> bool:
        """Tell whether an event came later, or came meanwhile and is not in it yet."""
        return one.number > self.number or render.is_news(one.event, self.items)


class LocalChannel:
    """One person's chat on this machine, for a channel that says how it is served and shown.

    Attributes:
        context: All that the channel was handed.
        name: The name in the configuration.
        capabilities: What its readers can show.
        feed: Where live events go.
        here: The one chat.
    """

    def __init__(self, context: ChannelContext, capabilities: Capabilities = CAPABILITIES) -> None:
        """Open nothing before `receive`; the interval of edits is the settings'."""
        interval = context.settings_as(LocalSettings).draft_interval_s
        self.context = context
        self.name = context.name
        self.capabilities = replace(capabilities, min_edit_interval_s=interval)
        self.feed = Feed()
        self.here = decode.address(context.name)
        self._admit: Admit | None = None

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

    async def take(
        self, kind: str, posted: decode.Message | decode.Press | Refused
    ) -> Received | Refused:
        """Admit an event, tell all readers of it, and return what its sender is told (P1).

        Args:
            kind: As in `decode.envelope`.
            posted: What was sent; what could not be read is refused as it is.
        """
        if isinstance(posted, Refused):
            return posted
        event = decode.envelope(self.name, kind, posted)
        if isinstance(event, Refused):
            return event
        try:
            if self._admit is None:
                message = f"`{self.name}` is closing"
                raise ChannelUnavailable(message)
            admission = await self._admit(event)
        except ZeroclawError as error:
            self.context.log("event_not_stored", why=str(error), level="warning")
            return Refused(id=posted.id, why="it could not be stored yet", again=True)
        if isinstance(admission, Ignored):
            return Refused(id=posted.id, why="it was ignored")
        if isinstance(posted, decode.Message):
            files, now = tuple(one.name for one in event.attachments), self.context.clock.now()
            self.feed.publish(render.person(posted.id, posted.text, now, files))
        toast = admission.text if isinstance(admission, Answered) else ""
        return Received(id=posted.id, toast=toast)

    async def snapshot(self, after: str = "") -> Snapshot | None:
        """Read what stands after a cursor; None where it can't be read."""
        try:
            items = await self.context.transcript(self.here, after)
        except ZeroclawError as error:
            self.context.log("transcript_not_read", why=str(error), level="warning")
            return None
        shown = (replace(item, text=self.shown(item.text)) for item in items)
        return Snapshot(items=render.standing(shown), number=self.feed.number)

    def shown(self, text: str) -> str:
        """Return a text of the store as a live event shows it."""
        return text

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
        self.known(to)
        self.refuse("looks for no messages")

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        """Refuse; see `mark`."""
        del content, since, apart, before
        self.known(to)
        self.refuse("looks for no messages")

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

    async def typing(self, to: Address, doing: tuple[ToolProgress, ...] = ()) -> None:  # noqa: ARG002
        """Show that the bot is at work, until a message comes."""
        self.known(to)
        self.feed.publish(render.Typing())

    async def preview(self, to: Address, outgoing: Outgoing) -> None:  # noqa: ARG002  the contract's
        """Refuse: here a message is edited as it grows."""
        self.refuse("shows nothing that is not sent")

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
            self.refuse("has no threads")
        if place.key() != self.here.key():
            message = f"`{self.name}` has no chat `{place.chat}`"
            raise ChannelRejected(message)
        return self.here

    def refuse(self, why: str) -> NoReturn:
        """Raise for what the capabilities do not say."""
        message = f"`{self.name}` {why}"
        raise NotSupported(message)

    def _show(self, ref: MessageRef, outgoing: Outgoing) -> None:
        item = render.bot(ref.message, outgoing, self.context.clock.now())
        most = self.capabilities.max_length
        if len(item.text) > most:
            message = f"{len(item.text)} characters are more than {most}"
            raise ChannelRejected(message)
        self.feed.publish(item)
