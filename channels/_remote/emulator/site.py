"""The emulator's page, on which one person acts as all people in the chats, and its routes.

    GET state, events, files/…    the state now, the state at each change, and sent files
    POST do                       an action of a person, {"do": "say", "person": …, "text": …}

Everything is below an unguessable path, because every user of this machine can reach a loopback port,
and the page can act as the bot's operator. Requests must have this machine as their host, which keeps
out other sites that use DNS rebinding.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Protocol, cast

from channels._remote.emulator.http import NOTHING_HERE, Answer, Request, Response, Streamed
from zeroclaw import page_files

Json = Mapping[str, object]
_HOSTS = ("127.0.0.1", "localhost")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
)


class Unusable(Exception):
    """Raised when a request of the page can't be carried out; the text says why."""


class Platform(Protocol):
    """A platform that the page shows and acts on."""

    def state(self) -> Json:
        """Return everything that the page shows; `page/app.js` draws it."""
        ...

    def do(self, body: Json) -> None:
        """Carry out a person's action.

        Raises:
            Unusable: It names something that does not exist.
        """
        ...

    def file(self, path: str) -> bytes | None:
        """Return a sent file by its path in the state; None if there is none."""
        ...

    def next_change(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        ...


def load_page() -> Mapping[str, tuple[bytes, str]]:
    """Return content and media type of each of the page's files, by name; blocks."""
    return page_files("channels._remote.emulator")


class Site:
    """Answers the page's requests."""

    def __init__(
        self, platform: Platform, *, key: str, page: Mapping[str, tuple[bytes, str]]
    ) -> None:
        """Serve nothing yet.

        Args:
            platform: The platform to show.
            key: The unguessable first part of every path.
            page: As `load_page` returns it.
        """
        self._platform = platform
        self._key = key
        self._page = page

    async def answer(self, request: Request) -> Answer:
        """Answer a request."""
        _, key, *rest = request.path.split("/")
        host, _, _ = request.headers.get("host", "").partition(":")
        if key != self._key or not rest or host not in _HOSTS:
            return NOTHING_HERE
        return self._at("/".join(rest), request)

    def _at(self, name: str, request: Request) -> Answer:
        if request.method == "POST" and name == "do":
            return self._do(request)
        if request.method != "GET":
            return NOTHING_HERE
        if name == "events":
            return Streamed(
                content_type="text/event-stream", pieces=self._events(), headers=HEADERS
            )
        if name == "state":
            return _json(200, self._platform.state())
        if name.startswith("files/"):
            return self._file(name.removeprefix("files/"))
        name = name or "index.html"
        if name not in self._page:
            return NOTHING_HERE
        body, kind = self._page[name]
        return Response(content_type=f"{kind}; charset=utf-8", body=body, headers=HEADERS)

    def _do(self, request: Request) -> Answer:
        # Another site could post a form here, but can't send this type without permission (CORS).
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _json(415, {"error": "send application/json"})
        try:
            body: object = json.loads(request.body)
            if not isinstance(body, dict):
                return _json(422, {"error": "send one object"})
            self._platform.do(cast("Json", body))  # a JSON object's keys are strings
        except (Unusable, ValueError) as error:
            return _json(422, {"error": str(error)})
        return _json(200, {"done": True})

    def _file(self, path: str) -> Answer:
        content = self._platform.file(path)
        if content is None:
            return NOTHING_HERE
        # Always a download, because a file of the bot's could be a web page.
        disposition = ("content-disposition", "attachment")
        kind = "application/octet-stream"
        return Response(content_type=kind, body=content, headers=(*HEADERS, disposition))

    async def _events(self) -> AsyncIterator[bytes]:
        """Yield the whole state at each change; changes made meanwhile are in the next one."""
        while True:
            changed = self._platform.next_change()
            yield f"data: {json.dumps(self._platform.state())}\n\n".encode()
            await changed.wait()


def _json(status: int, body: Json) -> Response:
    return Response(status=status, body=json.dumps(body).encode(), headers=HEADERS)
