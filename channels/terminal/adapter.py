"""The adapter of the terminal chat, for the user that the daemon runs as."""

import asyncio
from collections.abc import Callable

from channels._local.adapter import LocalChannel
from channels._local.feed import Subscription
from channels.terminal import decode, render
from zeroclaw import Address, Admit, Attachment, LineStream, MessageRef, OutgoingFile, Rendered

STREAM = "chat"
"""The name with which a client opens its control-socket connection."""


class TerminalChannel(LocalChannel):
    """Serves clients on the control socket, one connection each."""

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Serve clients until cancelled; see `Channel.receive`."""
        with self.serving(admit):
            self.context.mount.stream(STREAM, self._attend)
            ready()
            await asyncio.Event().wait()

    def render(self, markdown: str) -> Rendered:
        """Return the text with terminal control characters made visible."""
        return render.markdown(markdown)

    def displayed(self, text: str) -> str:
        """Return a stored text with terminal control characters made visible."""
        return render.visible(text)

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Refuse: a terminal only shows text."""
        self.valid(to)
        self.refuse(f"takes no files, so `{file.name}` can't be sent there")

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:  # noqa: ARG002  the contract's
        """Refuse: a terminal sends no files."""
        self.refuse(f"carries no attachments, so `{attachment.name}` is not one of its")

    # --- one client ------------------------------------------------------------------------------

    async def _attend(self, stream: LineStream) -> None:
        """Serve one client until either side ends it; reading and writing run independently."""
        if not self.feed.has_room():
            reason = "too many clients are attached, or it is closing"
            await stream.send({"type": "trouble", "why": reason})
            return
        hello: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        with self.feed.subscribe() as subscription:
            async with asyncio.TaskGroup() as group:
                sides = (
                    group.create_task(self._read(stream, subscription, hello)),
                    group.create_task(self._write(stream, subscription, hello)),
                )
                await subscription.over()
                for side in sides:
                    side.cancel()

    async def _read(
        self, stream: LineStream, subscription: Subscription, hello: asyncio.Future[str]
    ) -> None:
        while (line := await stream.receive()) is not None:
            match decode.line(line):
                case decode.Hello(after=after):
                    if not hello.done():  # a second hello changes nothing
                        hello.set_result(after)
                case posted:
                    # Confirm the event only after it was admitted (P1).
                    subscription.put(await self.take(str(line.get("type")), posted))
        subscription.end()

    async def _write(
        self, stream: LineStream, subscription: Subscription, hello: asyncio.Future[str]
    ) -> None:
        """Write the snapshot, then the events that it lacks, then live events."""
        try:
            items = await self.snapshot(subscription, await hello)
            if items is None:
                reason = "the conversation can't be read right now"
                await stream.send({"type": "trouble", "why": reason})
                return
            await stream.send({"type": "snapshot"})
            for item in items:
                await stream.send(render.line(item))
            await stream.send({"type": "live"})
            while (events := await subscription.take()) is not None:
                for event in events:
                    await stream.send(render.line(event))
        except ConnectionError:
            return
        finally:
            subscription.end()
