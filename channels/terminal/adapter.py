"""The terminal as a channel: the chat of whoever runs as the daemon's own user."""

import asyncio
from collections.abc import Callable

from channels._local.adapter import LocalChannel
from channels._local.decode import Unreadable
from channels._local.feed import Numbered, Subscription
from channels._local.render import Received, Refused
from channels.terminal import CAPABILITIES, TerminalSettings, decode, render
from zeroclaw import (
    Address,
    Admit,
    Answered,
    Attachment,
    Channel,
    ChannelContext,
    Ignored,
    LineStream,
    MessageRef,
    NotSupported,
    OutgoingFile,
    Rendered,
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


class TerminalChannel(LocalChannel):
    """Clients on the control socket, each with a connection of its own."""

    def __init__(self, context: ChannelContext, settings: TerminalSettings) -> None:
        """Hold what is needed."""
        capabilities = replace(CAPABILITIES, min_edit_interval_s=settings.draft_interval_s)
        super().__init__(context, capabilities, render.stored)

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Serve clients until cancelled; see `Channel.receive`."""
        with self.serving(admit):
            self.context.mount.stream(STREAM, self._attend)
            ready()
            await asyncio.Event().wait()

    def render(self, markdown: str) -> Rendered:
        """Return the text, with nothing in it that a terminal would obey."""
        return render.markdown(markdown)

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Refuse: a terminal shows text."""
        self.known(to)
        message = f"`{self.name}` takes no files, so `{file.name}` can't be sent there"
        raise NotSupported(message)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:  # noqa: ARG002  the contract's
        """Refuse: a terminal sends no files."""
        message = f"`{self.name}` carries no attachments, so `{attachment.name}` is not one of its"
        raise NotSupported(message)

    # --- one client ------------------------------------------------------------------------------

    async def _attend(self, stream: LineStream) -> None:
        """Serve one client until it goes or is cut; reading and writing never wait for each other."""
        if not self.feed.has_room():
            await stream.send(render.trouble("too many clients are attached, or it is closing"))
            return
        greeted: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        with self.feed.subscribe() as subscription:
            async with asyncio.TaskGroup() as group:
                sides = (
                    group.create_task(self._read(stream, subscription, greeted)),
                    group.create_task(self._write(stream, subscription, greeted)),
                )
                await subscription.over()
                for side in sides:
                    side.cancel()

    async def _read(
        self, stream: LineStream, subscription: Subscription, greeted: asyncio.Future[str]
    ) -> None:
        while (written := await stream.receive()) is not None:
            match decode.line(self.name, written):
                case decode.Hello(after=after):
                    if not greeted.done():  # a second hello changes nothing
                        greeted.set_result(after)
                case Unreadable(id=key, why=why):
                    self._answer(subscription, Refused(id=key, why=why))
                case decode.Event() as event:
                    self._answer(subscription, await self._taken(event))
        subscription.end()

    async def _taken(self, event: decode.Event) -> Received | Refused:
        """Admit an event; only when that returned is it told to be received (P1)."""
        admission = await self.take(event.envelope)
        if admission is None:
            return Refused(id=event.id, why="it could not be stored yet", again=True)
        if isinstance(admission, Ignored):
            return Refused(id=event.id, why="it was ignored")
        toast = admission.text if isinstance(admission, Answered) else ""
        return Received(id=event.id, toast=toast)

    def _answer(self, subscription: Subscription, answer: Received | Refused) -> None:
        subscription.put(Numbered(event=answer, number=self.feed.number))

    async def _write(
        self, stream: LineStream, subscription: Subscription, greeted: asyncio.Future[str]
    ) -> None:
        """Write the snapshot, then what it lacks of what came meanwhile, then what comes."""
        try:
            stood = await self.snapshot(await greeted)
            if stood is None:
                await stream.send(render.trouble("the conversation can't be read right now"))
                return
            await stream.send(render.snapshot_begins(stood.number))
            for item in stood.items.values():
                await stream.send(render.line(item, stood.number))
            await stream.send(render.snapshot_is_whole(stood.number))
            while (taken := await subscription.take()) is not None:
                for one in taken:
                    if stood.lacks(one):
                        await stream.send(render.line(one.event, one.number))
        except ConnectionError:
            return
        finally:
            subscription.end()
