"""The pages and doors of the web chat: an ASGI application over a feed and a door for events."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from importlib.resources import files
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from channels._local.adapter import LocalChannel
from channels._local.decode import Unreadable
from channels._local.feed import Subscription
from channels.web import decode, uploads
from channels.web.render import PING, frame, snapshot_frame, trouble_frame
from zeroclaw import Answered, Envelope, Ignored

# The machine's own table of kinds is read from files, and differs from machine to machine.
KINDS = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
}
MAX_MESSAGE_BYTES = 4 * 1024 * 1024
"""A pasted log of a million characters fits, escaped as JSON in the worst way but one."""
NOT_NOW = 503
TOO_LARGE = 413
UNHEARD = 499  # as other servers call it in their logs; it is sent to nobody
UNREADABLE = 422


def load_page() -> Mapping[str, bytes]:
    """Read the page's files, by name; blocks."""
    folder = files("channels.web") / "page"
    return {file.name: file.read_bytes() for file in folder.iterdir() if _kind(file.name)}


def _kind(name: str) -> str | None:
    return KINDS.get(name.rpartition(".")[2])


class Site:
    """Answers the requests of one channel's pages."""

    def __init__(
        self,
        channel: LocalChannel,
        *,
        page: Mapping[str, bytes],
        title: str,
        uploads: uploads.Uploads,
    ) -> None:
        """Hold what is needed.

        Args:
            channel: Whose pages they are.
            page: The files, by name.
            title: Stands over the page.
            uploads: Keeps files until they are fetched.
        """
        self._channel = channel
        self._page = page
        self._title = title
        self._uploads = uploads

    def application(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(
            routes=[
                Route("/", self._show),
                Route("/events", self._follow),
                Route("/messages", self._take_message, methods=["POST"]),
                Route("/answers", self._take_answer, methods=["POST"]),
                Route("/files/{id}", self._take_file, methods=["POST"]),
                Route("/sent/{key}", self._give_file),
                Route("/{name}", self._show),
            ],
            exception_handlers={ClientDisconnect: _gone},
        )

    async def _show(self, request: Request) -> Response:
        name = str(request.path_params.get("name", "index.html"))
        if name not in self._page:
            return Response(status_code=404)
        return Response(self._page[name], media_type=_kind(name))

    async def _follow(self, _request: Request) -> Response:
        if not self._channel.feed.has_room():
            return JSONResponse({"error": "too many pages are open"}, status_code=NOT_NOW)
        return _Events(self._channel, self._title)

    async def _take_message(self, request: Request) -> Response:
        return await self._take(request, decode.message)

    async def _take_answer(self, request: Request) -> Response:
        return await self._take(request, decode.answer)

    async def _take_file(self, request: Request) -> Response:
        """Keep a file under the id that its page made, before the message that names it."""
        try:
            size = await self._uploads.take(str(request.path_params["id"]), request.stream())
        except uploads.Refused as refused:
            return JSONResponse({"error": str(refused)}, status_code=refused.status)
        return JSONResponse({"status": "accepted", "size": size})

    async def _give_file(self, request: Request) -> Response:
        """Hand out a file of the bot's: to be kept, never to be shown as a page of ours."""
        channel, key = self._channel, str(request.path_params["key"])
        file = await channel.context.sent_file(channel.here, key)
        if file is None:
            return PlainTextResponse("this file is no longer kept\n", status_code=404)
        # The listener forbids browsers to guess what it is.
        named = f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"
        return Response(
            file.content,
            media_type="application/octet-stream",
            headers={"content-disposition": named},
        )

    async def _take(
        self, request: Request, read: Callable[[str, bytes], Envelope | Unreadable]
    ) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_MESSAGE_BYTES:
                return JSONResponse({"error": "it is too long"}, status_code=TOO_LARGE)
        event = read(self._channel.name, bytes(body))
        if isinstance(event, Unreadable):
            return JSONResponse({"error": event.why}, status_code=UNREADABLE)
        admission = await self._channel.take(event)
        if admission is None:
            return JSONResponse({"error": "it could not be stored yet"}, status_code=NOT_NOW)
        if isinstance(admission, Ignored):
            return JSONResponse({"status": "ignored"})
        toast = admission.text if isinstance(admission, Answered) else ""
        return JSONResponse({"status": "accepted", "toast": toast})


async def _gone(_request: Request, _error: Exception) -> Response:
    """Answer a page that was closed while it sent; nobody hears it, and nothing has failed."""
    return Response(status_code=UNHEARD)


class _Events(StreamingResponse):
    """One page's stream; its subscription ends with it, however it ends."""

    def __init__(self, channel: LocalChannel, title: str) -> None:
        super().__init__((), media_type="text/event-stream")
        self._channel = channel
        self._title = title

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._channel.feed.subscribe() as subscription:
            async with aclosing(self._frames(subscription)) as frames:
                self.body_iterator = frames
                await super().__call__(scope, receive, send)

    async def _frames(self, subscription: Subscription) -> AsyncGenerator[bytes]:
        """Yield the snapshot, then what it lacks of what came meanwhile, then what comes."""
        stood = await self._channel.snapshot()
        if stood is None:
            yield trouble_frame("the conversation can't be read right now")
            return
        yield snapshot_frame(self._title, stood.items.values(), stood.number)
        while (taken := await subscription.take()) is not None:
            if not taken:
                yield PING
            for one in taken:
                if stood.lacks(one):
                    yield frame(one.event, one.number)
