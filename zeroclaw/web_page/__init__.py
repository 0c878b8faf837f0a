"""The common parts of all web pages: their files, and the event stream that each of them follows."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

# Not `mimetypes`: it reads the machine's own tables, which differ from machine to machine.
_KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}

PING = b"event: ping\ndata: {}\n\n"
"""Proves to both sides that the connection is alive; a page sees no comments."""


def page_files(package: str) -> Mapping[str, tuple[bytes, str]]:
    """Return content and media type of each file that a package's page needs, by name; blocks."""
    from importlib.resources import files

    return {
        file.name: (file.read_bytes(), kind)
        for folder in (files(__name__), files(package) / "page")
        for file in folder.iterdir()
        if (kind := _KINDS.get(file.name.rpartition(".")[2]))
    }


def event_stream(frames: AsyncGenerator[bytes]) -> Callable[..., Awaitable[None]]:
    """Return the ASGI response that streams these events; it closes their generator in every case."""
    from starlette.responses import StreamingResponse
    from starlette.types import Receive, Scope, Send

    response = StreamingResponse(frames, media_type="text/event-stream")

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(frames):
            await response(scope, receive, send)

    return respond
