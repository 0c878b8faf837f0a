"""The adapter of the web chat: its page on the local listener, and the routes that the page calls."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from channels._local import render as items
from channels._local.adapter import LocalChannel
from channels._local.decode import Press, RefusedPost, read
from channels.web import CAPABILITIES, WebSettings, decode, render, uploads
from zeroclaw import (
    PING,
    Address,
    Admit,
    Attachment,
    ChannelContext,
    ChannelRejected,
    ChannelUnavailable,
    MessageRef,
    OutgoingFile,
    Rendered,
    ZeroclawError,
    event_stream,
    page_files,
    refused_as,
)

PING_S = 15.0
PINGS_A_SWEEP = 40
"""Old uploads are removed every ten minutes."""
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
"""Fits a pasted log of a million characters at four bytes each, as JSON."""
UNAVAILABLE = 503
TOO_LARGE = 413
CLIENT_CLOSED = 499  # "client closed request" in nginx's logs; never sent
UNREADABLE = 422


class WebChannel(LocalChannel):
    """One page on the local listener, mounted under the channel's name."""

    def __init__(self, context: ChannelContext) -> None:
        """Open nothing before `receive`."""
        settings = context.settings_as(WebSettings)
        super().__init__(context, CAPABILITIES)
        self._page: Mapping[str, Response] = {}
        self._title = settings.title
        self._uploads = uploads.Uploads(
            context.directory, context.clock, settings.max_file_bytes, self._is_off_the_record
        )

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Serve the page until cancelled; see `Channel.receive`."""
        files = await asyncio.to_thread(page_files, "channels.web")
        self._page = {name: Response(body, media_type=kind) for name, (body, kind) in files.items()}
        with self.serving(admit):
            self.context.mount.web(f"/{self.name}", self.application())
            ready()
            for number in itertools.count():
                if number % PINGS_A_SWEEP == 0:
                    await self._sweep()
                await self.context.clock.sleep(PING_S)
                self.feed.ping()

    def render(self, markdown: str) -> Rendered:
        """Return the text as it is, because the page renders Markdown itself."""
        return render.markdown(markdown)

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Show a link to a file; its message id is its key, and the store has its bytes."""
        ref = MessageRef(address=self.valid(to), message=file.key)
        if len(file.content) > CAPABILITIES.max_file_bytes:
            message = f"{len(file.content):,} bytes are more than {CAPABILITIES.max_file_bytes:,}"
            raise ChannelRejected(message)
        self.feed.publish(items.file(ref.message, file, self.context.clock.now()))
        return ref

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """Return a file that a page uploaded."""
        with refused_as(ChannelUnavailable, "the page's upload can't be read now"):
            body = await self._uploads.content(attachment.reference, max_bytes)
        if body is None:
            message = "the page's upload is not here any more, so it has to be sent again"
            raise ChannelRejected(message)
        if len(body) > max_bytes:
            message = f"it is larger than {max_bytes:,} bytes"
            raise ChannelRejected(message)
        return body

    # --- the routes ------------------------------------------------------------------------------

    def application(self) -> Starlette:
        """Return the ASGI application that serves the pages."""
        return Starlette(
            routes=[
                Route("/", self._give_page),
                Route("/events", self._follow),
                Route("/messages", self._take_message, methods=["POST"]),
                Route("/answers", self._take_answer, methods=["POST"]),
                Route("/files/{id}", self._take_file, methods=["POST"]),
                Route("/sent/{key}", self._give_file),
                Route("/{name}", self._give_page),
            ],
            exception_handlers={ClientDisconnect: _client_closed},
        )

    async def _give_page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        return self._page.get(name) or Response(status_code=404)

    async def _follow(self, _request: Request) -> Callable[..., Awaitable[None]]:
        if not self.feed.has_room():
            return JSONResponse({"error": "too many pages are open"}, status_code=UNAVAILABLE)
        return event_stream(self._frames())

    async def _frames(self) -> AsyncGenerator[bytes]:
        """Yield the snapshot, then the events that it lacks, then live events."""
        with self.feed.subscribe() as subscription:
            transcript = await self.snapshot(subscription)
            if transcript is None:
                yield render.trouble_frame("the conversation can't be read right now")
                return
            yield render.snapshot_frame(self._title, transcript)
            while (events := await subscription.take()) is not None:
                if not events:
                    yield PING
                for event in events:
                    yield render.frame(event)

    async def _take_message(self, request: Request) -> Response:
        return await self._take_event(request, "message", decode.Message)

    async def _take_answer(self, request: Request) -> Response:
        return await self._take_event(request, "answer", Press)

    async def _take_file(self, request: Request) -> Response:
        """Store a file under the id made by its page; the message that names it comes later."""
        try:
            size = await self._uploads.take(str(request.path_params["id"]), request.stream())
        except uploads.UploadRefused as error:
            return JSONResponse({"error": str(error)}, status_code=error.status)
        return JSONResponse({"status": "accepted", "size": size})

    async def _give_file(self, request: Request) -> Response:
        """Serve one of the bot's files as a download, so that no browser shows it as our page."""
        file = await self.context.sent_file(self.address, str(request.path_params["key"]))
        if file is None:
            return PlainTextResponse("this file is no longer kept\n", status_code=404)
        # The listener sends `nosniff`, so browsers don't guess the type.
        disposition = f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"
        return Response(
            file.content,
            media_type="application/octet-stream",
            headers={"content-disposition": disposition},
        )

    async def _is_off_the_record(self) -> bool:
        """Whether nothing may reach the disk; True also if the store can't be read."""
        try:
            return await self.context.is_off_the_record(self.address)
        except ZeroclawError as error:
            self.context.log("off_the_record_unknown", reason=str(error), level="warning")
            return True

    async def _take_event(
        self, request: Request, kind: str, model: type[decode.Message | Press]
    ) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_MESSAGE_BYTES:
                return JSONResponse({"error": "it is too long"}, status_code=TOO_LARGE)
        posted = read(model, bytes(body))
        result = await self.take(kind, posted)
        if isinstance(result, RefusedPost):
            status = UNAVAILABLE if result.again else UNREADABLE
            return JSONResponse({"error": result.reason}, status_code=status)
        if isinstance(posted, decode.Message):
            # The message may have gone off the record, and with it the files uploaded before it.
            await self._sweep(file.id for file in posted.files)
        return JSONResponse({"status": "accepted", "toast": result.toast})

    async def _sweep(self, names: Iterable[str] = ()) -> None:
        """Sweep the uploads; if the disk fails, the next sweep makes up for it."""
        try:
            await self._uploads.sweep(names)
        except OSError as error:
            self.context.log("uploads_not_swept", reason=error.strerror, level="warning")


async def _client_closed(_request: Request, _error: Exception) -> Response:
    """Handle a page that was closed while it sent a request: no error, and no reply."""
    return Response(status_code=CLIENT_CLOSED)
