"""The web chat as a channel: what goes out is fanned out to open pages, what comes in is admitted.

Nothing is kept here. A message's id is its key, so that sending twice shows one message; a page
that opens later reads the store's transcript, so that sending to nobody succeeds.
"""

import asyncio
import itertools
from collections.abc import Callable

from channels.web import CAPABILITIES, WebSettings, decode, render
from channels.web.feed import Feed
from channels.web.site import Site, load_page
from channels.web.uploads import Uploads
from zeroclaw import (
    Address,
    Admission,
    Admit,
    Attachment,
    Capabilities,
    Card,
    Channel,
    ChannelContext,
    ChannelRejected,
    ChannelUnavailable,
    Envelope,
    MessageRef,
    NotSupported,
    Outcome,
    Outgoing,
    OutgoingFile,
    Rendered,
    Sighting,
    Sought,
    replace,
)

PING_S = 15.0
PINGS_A_SWEEP = 40
"""Old files are looked for every ten minutes."""


def open_channel(context: ChannelContext) -> Channel:
    """Make the adapter; it opens nothing before `receive`."""
    settings = context.settings
    if not isinstance(settings, WebSettings):
        message = "the settings of a web channel must be a `WebSettings`"
        raise TypeError(message)
    return WebChannel(context, settings)


class WebChannel:
    """One page on the local listener, mounted under the channel's name."""

    def __init__(self, context: ChannelContext, settings: WebSettings) -> None:
        """Hold what is needed."""
        self._context = context
        self._settings = settings
        self._feed = Feed()
        self._here = decode.address(context.name)
        self._admit: Admit | None = None
        self._uploads = Uploads(context.directory, context.clock, settings.max_file_bytes)

    @property
    def name(self) -> str:
        """The name in the configuration."""
        return self._context.name

    @property
    def capabilities(self) -> Capabilities:
        """What a page can show."""
        return replace(CAPABILITIES, min_edit_interval_s=self._settings.draft_interval_s)

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Serve the page until cancelled; see `Channel.receive`."""
        page = await asyncio.to_thread(load_page)
        self._admit = admit
        try:
            site = Site(
                context=self._context,
                feed=self._feed,
                admit=self._take,
                page=page,
                title=self._settings.title,
                uploads=self._uploads,
            )
            self._context.mount.web(f"/{self.name}", site.application())
            ready()
            for number in itertools.count():
                if number % PINGS_A_SWEEP == 0:
                    await self._uploads.sweep()
                await self._context.clock.sleep(PING_S)
                self._feed.ping()
        finally:
            self._admit = None
            self._feed.close()

    async def _take(self, envelope: Envelope) -> Admission:
        if self._admit is None:
            message = f"`{self.name}` is closing"
            raise ChannelUnavailable(message)
        return await self._admit(envelope)

    def render(self, markdown: str) -> Rendered:
        """Return the text as it is: the page shows Markdown."""
        return render.markdown(markdown)

    def measure(self, rendered: Rendered) -> int:
        """Return the length in code points."""
        return len(rendered.body)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Show a message; its id is its key."""
        ref = MessageRef(address=self._known(to), message=outgoing.key)
        self._show(ref, outgoing)
        return ref

    def mark(self, to: Address) -> str:
        """Refuse: the page shows a message once, however often it is sent."""
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

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Show a link to a file; its id is its key, and the store keeps its bytes."""
        ref = MessageRef(address=self._known(to), message=file.key)
        if len(file.content) > CAPABILITIES.max_file_bytes:
            message = f"{len(file.content):,} bytes are more than {CAPABILITIES.max_file_bytes:,}"
            raise ChannelRejected(message)
        self._feed.publish(render.file(ref.message, file, self._context.clock.now()))
        return ref

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        """Show the whole new text in place."""
        self._known(ref.address)
        self._show(ref, outgoing)

    async def delete(self, ref: MessageRef) -> None:
        """Take a message off every page."""
        self._known(ref.address)
        self._feed.publish(render.Gone(id=ref.message))

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Show an approval card; its id is its key."""
        ref = MessageRef(address=self._known(to), message=card.key)
        outcome = Outcome(card=card, endings=())
        self._feed.publish(render.card(ref.message, outcome, self._context.clock.now()))
        return ref

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show on the card how its calls ended."""
        self._known(ref.address)
        self._feed.publish(render.card(ref.message, outcome, self._context.clock.now()))

    async def typing(self, to: Address) -> None:
        """Show that the bot is at work, for some seconds or until a message comes."""
        self._known(to)
        self._feed.publish(render.Typing())

    async def preview(self, to: Address, outgoing: Outgoing) -> None:  # noqa: ARG002  the contract's
        """Refuse: here a message is edited as it grows."""
        message = f"`{self.name}` shows nothing that is not sent"
        raise NotSupported(message)

    def direct_address(self, sender: str) -> Address | None:
        """Return the one chat, for the one person."""
        return self._here if sender == decode.CHAT else None

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """Return what a page uploaded."""
        body = await self._uploads.content(attachment.reference, max_bytes)
        if body is None:
            message = "the page's upload is not here any more, so it has to be sent again"
            raise ChannelRejected(message)
        if len(body) > max_bytes:
            message = f"it is larger than {max_bytes:,} bytes"
            raise ChannelRejected(message)
        return body

    async def aclose(self) -> None:
        """End every stream."""
        self._feed.close()

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
