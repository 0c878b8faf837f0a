"""The page where a person types as everybody who talks to the bot, and the doors behind it.

    GET state, events, files/…    what stands: now, at each change, and what somebody sent
    POST do                       what somebody does, {"do": "say", "person": …, "text": …}

All of it stands below a path that nobody guesses, for on a machine with several users anyone can
reach a loopback port, and whoever acts here may act as the bot's operator. Requests must name this
machine as their host, which keeps out pages that rebind a name of their own.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from importlib.resources import files
from typing import Protocol, cast

from channels._remote.emulator.http import NOTHING_HERE, Answer, Request, Response, Streamed

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
# The machine's own table of kinds is read from files, and differs from machine to machine.
KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


class Unusable(Exception):
    """What was asked for can't be done; the text says why."""


class Platform(Protocol):
    """What the page shows, and what people do there."""

    def state(self) -> Json:
        """Return all that the page shows; `page/app.js` draws it."""
        ...

    def do(self, asked: Json) -> None:
        """Carry out what somebody does.

        Raises:
            Unusable: It names something that is not there.
        """
        ...

    def file(self, path: str) -> bytes | None:
        """Return what somebody sent, by the path that the state tells; None where there is none."""
        ...

    def next_change(self) -> asyncio.Event:
        """Return what is set when anything changes."""
        ...


def load_page() -> Mapping[str, bytes]:
    """Read the page's files, by name; blocks."""
    folder = files("channels._remote.emulator") / "page"
    return {file.name: file.read_bytes() for file in folder.iterdir() if _kind(file.name)}


def _kind(name: str) -> str:
    return KINDS.get(name.rpartition(".")[2], "")


class Site:
    """Answers the page's requests."""

    def __init__(self, platform: Platform, *, key: str, page: Mapping[str, bytes]) -> None:
        """Hold what is needed.

        Args:
            platform: What is shown.
            key: The path below which all of it stands.
            page: The files, by name.
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
        return Response(content_type=_kind(name), body=self._page[name], headers=HEADERS)

    def _do(self, request: Request) -> Answer:
        # A page elsewhere could send a form, but not this type without being allowed to.
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _json(415, {"error": "send application/json"})
        try:
            asked: object = json.loads(request.body)
            if not isinstance(asked, dict):
                return _json(422, {"error": "send one object"})
            self._platform.do(cast("Json", asked))  # a JSON object's keys are texts
        except (Unusable, ValueError) as error:
            return _json(422, {"error": str(error)})
        return _json(200, {"done": True})

    def _file(self, path: str) -> Answer:
        found = self._platform.file(path)
        if found is None:
            return NOTHING_HERE
        # Never shown by the browser: what a bot sends could be a page of its own.
        saved = ("content-disposition", "attachment")
        kind = "application/octet-stream"
        return Response(content_type=kind, body=found, headers=(*HEADERS, saved))

    async def _events(self) -> AsyncIterator[bytes]:
        """Yield everything at each change; what changes meanwhile is in the next one."""
        while True:
            changed = self._platform.next_change()
            yield f"data: {json.dumps(self._platform.state())}\n\n".encode()
            await changed.wait()


def _json(status: int, body: Json) -> Response:
    return Response(status=status, body=json.dumps(body).encode(), headers=HEADERS)
