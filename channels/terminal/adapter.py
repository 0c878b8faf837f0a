"""The terminal as a channel: what goes out is fanned out to clients, what comes in is admitted.

Nothing is kept here. A message's id is its key, so that sending twice shows one message; a client
that attaches later reads the store's transcript, so that sending to nobody succeeds.
"""

import asyncio
from collections.abc import Callable

from channels.terminal import CAPABILITIES, TerminalSettings, decode, render
from channels.terminal.feed import Feed, Numbered, Subscription
from channels.terminal.render import Received, Refused
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
    Command,
    Ignored,
    LineStream,
    MessageRef,
    NotSupported,
    Outcome,
    Outgoing,
    OutgoingFile,
    Rendered,
    Said,
    Sighting,
    Sought,
    ZeroclawError,
    replace,
)

STREAM = "chat"
"""What a connection of the control socket opens with."""


def open_channel(context: ChannelContext) -> Channel:
    """Make the adapter; it opens nothing before `receive`."""
    settings = context.settings
    if not isinstance(settings, TerminalSettings):
        message = "the settings of a terminal channel must be `TerminalSettings`"
        raise TypeError(message)
    return TerminalChannel(context, settings)


class TerminalChannel:
    """The chat of whoever runs as the daemon's own user, on the control socket."""

    def __init__(self, context: ChannelContext, settings: TerminalSettings) -> None:
        """Hold what is needed."""
        self._context = context
        self._settings = settings
        self._feed = Feed()
        self._here = decode.address(context.name)

    @property
    def name(self) -> str:
        """The name in the configuration."""
        return self._context.name

    @property
    def capabilities(self) -> Capabilities:
        """What a terminal can show."""
        return replace(CAPABILITIES, min_edit_interval_s=self._settings.draft_interval_s)

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Serve clients until cancelled; see `Channel.receive`."""

        async def serve(stream: LineStream) -> None:
            await self._attend(stream, admit)

        self._feed.open()
        try:
            self._context.mount.stream(STREAM, serve)
            ready()
            await asyncio.Event().wait()
        finally:
            self._feed.close()

    def render(self, markdown: str) -> Rendered:
        """Return the text, with nothing in it that a terminal would obey."""
        return render.markdown(markdown)

    def measure(self, rendered: Rendered) -> int:
        """Return the length in code points."""
        return len(rendered.body)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Show a message; its id is its key."""
        ref = MessageRef(address=self._known(to), message=outgoing.key)
        self._show(ref, outgoing)
        return ref

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Refuse: a terminal shows text."""
        self._known(to)
        message = f"`{self.name}` takes no files, so `{file.name}` can't be sent there"
        raise NotSupported(message)

    def mark(self, to: Address) -> str:
        """Refuse: a terminal shows a message once, however often it is sent."""
        self._known(to)
        message = f"`{self.name}` looks for no messages"
        raise NotSupported(message)

    async def look(
        self, to: Address, sought: Sought, *, since: str, apart: frozenset[str], before: str = ""
    ) -> Sighting:
        """Refuse; see `mark`."""
        del sought, since, apart, before
        self._known(to)
        message = f"`{self.name}` looks for no messages"
        raise NotSupported(message)

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        """Show the whole new text in place."""
        self._known(ref.address)
        self._show(ref, outgoing)

    async def delete(self, ref: MessageRef) -> None:
        """Tell every client that the message no longer stands."""
        self._known(ref.address)
        self._feed.publish(render.Gone(id=ref.message))

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Show an approval card; its id is its key."""
        ref = MessageRef(address=self._known(to), message=card.key)
        outcome = Outcome(card=card, endings=())
        self._feed.publish(render.card(ref.message, outcome, self._context.clock.now()))
        return ref

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show how the calls of a card ended."""
        self._known(ref.address)
        self._feed.publish(render.card(ref.message, outcome, self._context.clock.now()))

    async def typing(self, to: Address) -> None:
        """Show that the bot is at work, until a message comes."""
        self._known(to)
        self._feed.publish(render.Typing())

    async def preview(self, to: Address, outgoing: Outgoing) -> None:  # noqa: ARG002  the contract's
        """Refuse: here a message is edited as it grows."""
        message = f"`{self.name}` shows nothing that is not sent"
        raise NotSupported(message)

    def direct_address(self, sender: str) -> Address | None:
        """Return the one chat, for the one person."""
        return self._here if sender == decode.CHAT else None

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:  # noqa: ARG002  the contract's
        """Refuse: a terminal sends no files."""
        message = f"`{self.name}` carries no attachments, so `{attachment.name}` is not one of its"
        raise NotSupported(message)

    async def aclose(self) -> None:
        """Cut every client."""
        self._feed.close()

    # --- one client ------------------------------------------------------------------------------

    async def _attend(self, stream: LineStream, admit: Admit) -> None:
        """Serve one client until it goes or is cut; reading and writing never wait for each other."""
        if not self._feed.has_room():
            await stream.send(render.trouble("too many clients are attached, or it is closing"))
            return
        with self._feed.subscribe() as subscription:
            async with asyncio.TaskGroup() as group:
                sides = (
                    group.create_task(self._read(stream, admit, subscription)),
                    group.create_task(self._write(stream, subscription)),
                )
                await subscription.over()
                for side in sides:
                    side.cancel()

    async def _read(self, stream: LineStream, admit: Admit, subscription: Subscription) -> None:
        while (written := await stream.receive()) is not None:
            match decode.line(self.name, written):
                case decode.Hello(after=after):
                    subscription.begin(after)
                case decode.Unreadable(id=key, why=why):
                    self._answer(subscription, Refused(id=key, why=why))
                case decode.Event() as event:
                    self._answer(subscription, await self._take(event, admit))
        subscription.end()

    async def _take(self, event: decode.Event, admit: Admit) -> Received | Refused:
        """Admit an event; only when that returned is it told to be received (P1)."""
        try:
            admission = await admit(event.envelope)
        except ZeroclawError as error:
            self._context.log("event_not_stored", why=str(error), level="warning")
            return Refused(id=event.id, why="it could not be stored yet", again=True)
        if isinstance(admission, Ignored):
            return Refused(id=event.id, why="it was ignored")
        if isinstance(event.envelope.body, Said | Command):
            # Other clients of the same person; the one that wrote it knows it by its id.
            now = self._context.clock.now()
            self._feed.publish(render.person(event.id, event.text, now))
        toast = admission.text if isinstance(admission, Answered) else ""
        return Received(id=event.id, toast=toast)

    def _answer(self, subscription: Subscription, answer: Received | Refused) -> None:
        subscription.put(Numbered(event=answer, number=self._feed.number))

    async def _write(self, stream: LineStream, subscription: Subscription) -> None:
        """Write the snapshot, then what it lacks of what came meanwhile, then what comes."""
        try:
            after = await subscription.begun()
            try:
                items = await self._context.transcript(self._here, after)
            except ZeroclawError as error:
                self._context.log("transcript_not_read", why=str(error), level="warning")
                await stream.send(render.trouble("the conversation can't be read right now"))
                return
            read_at = self._feed.number
            known = {item.id: item for item in map(render.stored, items)}
            await stream.send(render.snapshot_begins(read_at))
            for item in known.values():
                await stream.send(render.line(item, read_at))
            await stream.send(render.snapshot_is_whole(read_at))
            while True:
                for one in await subscription.take():
                    if one.number > read_at or render.is_news(one.event, known):
                        await stream.send(render.line(one.event, one.number))
        except ConnectionError:
            return
        finally:
            subscription.end()

    def _show(self, ref: MessageRef, outgoing: Outgoing) -> None:
        item = render.bot(ref.message, outgoing, self._context.clock.now())
        if len(item.text) > CAPABILITIES.max_length:
            message = f"{len(item.text)} characters are more than {CAPABILITIES.max_length}"
            raise ChannelRejected(message)
        self._feed.publish(item)

    def _known(self, place: Address) -> Address:
        if place.thread is not None:
            message = f"`{self.name}` has no threads"
            raise NotSupported(message)
        if place.key() != self._here.key():
            message = f"`{self.name}` has no chat `{place.chat}`"
            raise ChannelRejected(message)
        return self._here
