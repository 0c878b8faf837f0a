"""The web chat as a channel: one page on the local listener, and the files that go with it."""

import asyncio
import itertools
from collections.abc import Callable

from channels._local import render as items
from channels._local.adapter import LocalChannel
from channels.web import CAPABILITIES, WebSettings, render
from channels.web.site import Site, load_page
from channels.web.uploads import Uploads
from zeroclaw import (
    Address,
    Admit,
    Attachment,
    Channel,
    ChannelContext,
    ChannelRejected,
    MessageRef,
    OutgoingFile,
    Rendered,
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


class WebChannel(LocalChannel):
    """One page on the local listener, mounted under the channel's name."""

    def __init__(self, context: ChannelContext, settings: WebSettings) -> None:
        """Hold what is needed."""
        super().__init__(
            context, replace(CAPABILITIES, min_edit_interval_s=settings.draft_interval_s)
        )
        self._title = settings.title
        self._uploads = Uploads(context.directory, context.clock, settings.max_file_bytes)

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Serve the page until cancelled; see `Channel.receive`."""
        page = await asyncio.to_thread(load_page)
        with self.serving(admit):
            site = Site(self, page=page, title=self._title, uploads=self._uploads)
            self.context.mount.web(f"/{self.name}", site.application())
            ready()
            for number in itertools.count():
                if number % PINGS_A_SWEEP == 0:
                    await self._uploads.sweep()
                await self.context.clock.sleep(PING_S)
                self.feed.ping()

    def render(self, markdown: str) -> Rendered:
        """Return the text as it is: the page shows Markdown."""
        return render.markdown(markdown)

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Show a link to a file; its id is its key, and the store keeps its bytes."""
        ref = MessageRef(address=self.known(to), message=file.key)
        if len(file.content) > CAPABILITIES.max_file_bytes:
            message = f"{len(file.content):,} bytes are more than {CAPABILITIES.max_file_bytes:,}"
            raise ChannelRejected(message)
        self.feed.publish(items.file(ref.message, file, self.context.clock.now()))
        return ref

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
