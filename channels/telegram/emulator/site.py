"""The page where a person types as everybody who talks to the bot, and the doors behind it.

All of it stands below a path that nobody guesses, for on a machine with several users anyone can
reach a loopback port, and whoever acts here may act as the bot's operator. Requests must name this
machine as their host, which keeps out pages that rebind a name of their own.
"""

import json
from collections.abc import AsyncIterator, Mapping
from importlib.resources import files

from channels.telegram.emulator.control import Control, Unusable
from channels.telegram.emulator.emulator import NOTHING_HERE, Emulator
from channels.telegram.emulator.http import Answer, Request, Response, Streamed
from channels.telegram.emulator.view import snapshot
from channels.telegram.emulator.wire import Json, is_object

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


def load_page() -> Mapping[str, bytes]:
    """Read the page's files, by name; blocks."""
    folder = files("channels.telegram.emulator") / "page"
    return {file.name: file.read_bytes() for file in folder.iterdir() if _kind(file.name)}


def _kind(name: str) -> str:
    return KINDS.get(name.rpartition(".")[2], "")


class Site:
    """Answers what is not the Bot API's."""

    def __init__(
        self,
        telegram: Emulator,
        control: Control,
        *,
        key: str,
        page: Mapping[str, bytes],
        cast: Json,
    ) -> None:
        """Hold what is needed.

        Args:
            telegram: What is shown.
            control: Who acts.
            key: The path below which all of it stands.
            page: The files, by name.
            cast: Who is who, for the page.
        """
        self._telegram = telegram
        self._control = control
        self._key = key
        self._page = page
        self._cast = cast

    async def answer(self, request: Request) -> Answer:
        """Answer a request."""
        _, key, *rest = request.path.split("/")
        port = self._telegram.url.rpartition(":")[2]
        is_ours = request.headers.get("host") in (f"127.0.0.1:{port}", f"localhost:{port}")
        if key != self._key or not rest or not is_ours:
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
            return _json(200, self._state())
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
            if not is_object(asked):
                return _json(422, {"error": "send one object"})
            self._control.do(asked)
        except (Unusable, ValueError) as error:
            return _json(422, {"error": str(error)})
        return _json(200, {"done": True})

    def _file(self, path: str) -> Answer:
        found = self._telegram.account.files.at(path)
        if found is None:
            return NOTHING_HERE
        # Never shown by the browser: what a bot sends could be a page of its own.
        saved = ("content-disposition", "attachment")
        kind = "application/octet-stream"
        return Response(content_type=kind, body=found.content, headers=(*HEADERS, saved))

    def _state(self) -> Json:
        telegram = self._telegram
        has_bot = telegram.is_polled or telegram.account.webhook is not None
        seen = snapshot(
            telegram.account, telegram.now(), is_polled=has_bot, calls=len(telegram.calls)
        )
        return {**self._cast, **seen}

    async def _events(self) -> AsyncIterator[bytes]:
        """Yield everything at each change; what changes meanwhile is in the next one."""
        while True:
            changed = self._telegram.next_change()
            yield f"data: {json.dumps(self._state())}\n\n".encode()
            await changed.wait()


def _json(status: int, body: Json) -> Response:
    return Response(status=status, body=json.dumps(body).encode(), headers=HEADERS)
