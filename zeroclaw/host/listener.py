"""The local listener: one socket on this machine, behind login, CSRF and host check.

    request ── guard (host, origin, size) ── /health ── link ── session ── mounted application

It binds when it is opened, so that a taken port is told before anything else starts, and answers
from `serve` on; connections made in between wait. Applications are mounted while it runs. The web
stack (uvicorn) is loaded when serving begins, in a thread, because that takes a moment.
"""

import asyncio
import os
import re
import socket
from collections.abc import Awaitable, Callable, Generator, Iterable, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, cast

from zeroclaw.channel import ChannelLog
from zeroclaw.clock import Clock, Ids
from zeroclaw.errors import StoreUnusable
from zeroclaw.host import guard
from zeroclaw.host.binding import bind
from zeroclaw.host.login import (
    SESSION_KEPT,
    Logins,
    is_open,
    read_sessions,
    redeem,
    with_link,
    write_sessions,
)

MAX_BODY_BYTES = 16 * 1024 * 1024
"""A file fits that somebody sends with a message; what takes less says so itself."""
GRACE_S = 1
"""Whole seconds that requests get to end by themselves when the listener closes."""
CLOSE_S = 5.0
PREFIX = re.compile(r"/[A-Za-z0-9_-]+")

Scope = MutableMapping[str, object]
Message = MutableMapping[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]


class Listener:
    """The local listener, bound; `open_listener` makes one."""

    def __init__(
        self,
        *,
        bound: socket.socket,
        logins: Logins,
        sessions_at: Path,
        clock: Clock,
        ids: Ids,
        log: ChannelLog,
    ) -> None:
        """Hold what is needed; `bound` listens, and is closed by `aclose`."""
        self._socket = bound
        self._port: int = bound.getsockname()[1]
        self._host = f"[{host}]" if ":" in (host := bound.getsockname()[0]) else host
        self._logins = logins
        self._sessions_at = sessions_at
        self._writing = asyncio.Lock()
        self._clock = clock
        self._ids = ids
        self._log = log
        self._mounted: dict[str, Application] = {}
        self._front: dict[str, None] = {}
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._stopped.set()

    @property
    def port(self) -> int:
        """The port that it has, also when it was opened with 0."""
        return self._port

    @property
    def url(self) -> str:
        """Where it answers, without a path."""
        return f"http://{self._host}:{self._port}"

    @property
    def mounted(self) -> tuple[str, ...]:
        """The prefixes of the mounted applications, in the order of mounting."""
        return tuple(self._mounted)

    def fresh_login_url(self, path: str = "/") -> str:
        """Return an address that opens `path` and logs a browser in, once."""
        link = self._ids.token()
        self._logins = with_link(self._logins, link, self._clock.now())
        return f"{self.url}{guard.here(path)}?login={link}"

    def web(self, prefix: str, application: object) -> str:
        """Mount an application below `/prefix/`, or replace the one there; see `Mount.web`."""
        if PREFIX.fullmatch(prefix) is None or not callable(application):
            message = f"`{prefix}` must be a slash and one name, and carry an ASGI application"
            raise ValueError(message)
        # What is mounted is called with ASGI's three arguments; a callable that takes others fails
        # at its first request.
        self._mounted[prefix] = cast("Application", application)
        self._front[prefix] = None
        return self.fresh_login_url(f"{prefix}/")

    def beside(self, prefix: str, application: object) -> None:
        """Mount an application that is reached from others: the bare address never leads to it."""
        self._mounted[prefix] = cast("Application", application)

    async def serve(self) -> None:
        """Answer requests until `aclose` or cancelled; once."""
        self._stopped.clear()
        try:
            server = await asyncio.to_thread(_open_uvicorn, self._answer, self._stopping)
            await server.run(self._socket)
        finally:
            self._socket.close()
            self._stopped.set()

    async def aclose(self) -> None:
        """Stop answering and free the port; safe twice."""
        self._stopping.set()
        await self._stopped.wait()
        self._socket.close()

    # --- one request -----------------------------------------------------------------------------

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = guard.asked(
            str(scope["method"]),
            str(scope["path"]),
            cast("bytes", scope["query_string"]).decode("latin-1"),
            cast("Iterable[Header]", scope["headers"]),
        )
        refused = guard.refusal(request, self._port, MAX_BODY_BYTES)
        if refused is not None:
            await _say(send, refused.status, "text/plain", refused.text.encode())
        elif request.path == "/health":
            await _say(send, 200, "application/json", b'{"status":"ok"}')
        elif request.path == "/favicon.ico":
            # Browsers ask for one before there is a page that names its own.
            await _say(send, 204, "image/x-icon", b"")
        elif link := guard.link_of(request):
            await self._log_in(request, link, send)
        elif not self._is_open(request):
            await _say(send, 401, "text/html", guard.LOGIN_PAGE)
        else:
            await self._hand_over(request, scope, receive, send)

    def _is_open(self, request: guard.Asked) -> bool:
        return is_open(self._logins, guard.session_of(request, self._port), self._clock.now())

    async def _log_in(self, request: guard.Asked, link: str, send: Send) -> None:
        session = self._ids.token()
        logins = redeem(self._logins, link, session, self._clock.now())
        target = guard.here(request.path)
        if logins is None:
            if self._is_open(request):
                await _say(send, 303, "text/plain", b"", ("location", target))
            else:
                self._log("login_refused")
                await _say(send, 401, "text/html", guard.LOGIN_PAGE)
            return
        self._logins = logins
        self._log("logged_in")
        await self._keep_sessions()
        body = guard.page("Welcome", f'<a href="{target}">Go on</a>', go_to=target)
        kept_s = int(SESSION_KEPT.total_seconds())
        handed = ("set-cookie", guard.cookie(session, self._port, kept_s))
        await _say(send, 200, "text/html", body, handed)

    async def _keep_sessions(self) -> None:
        """Store the sessions; without it they hold until the daemon ends."""
        async with self._writing:
            body = write_sessions(self._logins)
            try:
                await asyncio.to_thread(_write_private, self._sessions_at, body)
            except OSError as error:
                self._log("sessions_not_kept", why=error.strerror, level="warning")

    async def _hand_over(
        self, request: guard.Asked, scope: Scope, receive: Receive, send: Send
    ) -> None:
        prefix, slash, _ = request.path[1:].partition("/")
        application = self._mounted.get(f"/{prefix}")
        if application is not None and slash:
            inner = {**scope, "root_path": f"/{prefix}"}
            await application(inner, receive, _with_headers(send))
        elif application is not None:
            await _say(send, 307, "text/plain", b"", ("location", guard.here(f"{prefix}/")))
        elif request.path == "/" and self._front:
            first = guard.here(f"{next(iter(self._front))}/")
            await _say(send, 303, "text/plain", b"", ("location", first))
        else:
            await _say(send, 404, "text/plain", b"nothing is here")


async def open_listener(
    *, host: str, port: int, sessions_at: Path, clock: Clock, ids: Ids, log: ChannelLog
) -> Listener:
    """Bind the listener.

    Args:
        host: A loopback address, or `localhost`.
        port: 0 for any free one.
        sessions_at: The file that keeps sessions over a restart, 0600; its directory exists.
        clock: For the ends of links and sessions.
        ids: For links and sessions.
        log: For facts.

    Raises:
        PortInUse: Somebody else has the port, or it may not be had.
    """
    logins = await asyncio.to_thread(_stored_logins, sessions_at)
    bound = bind("127.0.0.1" if host == "localhost" else host, port, key="listener.port")
    return Listener(
        bound=bound, logins=logins, sessions_at=sessions_at, clock=clock, ids=ids, log=log
    )


# --- responses -----------------------------------------------------------------------------------


async def _say(send: Send, status: int, kind: str, body: bytes, *more: tuple[str, str]) -> None:
    """Send a whole answer."""
    headers = [
        *guard.HEADERS,
        (b"content-type", f"{kind}; charset=utf-8".encode()),
        (b"content-length", str(len(body)).encode()),
        *((name.encode(), value.encode()) for name, value in more),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    """Put our headers on an application's answer, in place of its own of the same names."""
    ours = frozenset(name for name, _ in guard.HEADERS)

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            theirs = cast("Iterable[Header]", message.get("headers", ()))
            kept = [header for header in theirs if header[0].lower() not in ours]
            message = {**message, "headers": [*guard.HEADERS, *kept]}
        await send(message)

    return sending


# --- this machine --------------------------------------------------------------------------------


def _stored_logins(path: Path) -> Logins:
    """Read the sessions; where none can be read, everybody logs in anew."""
    with suppress(OSError, StoreUnusable):
        return read_sessions(path.read_bytes())
    return Logins()


def _write_private(path: Path, body: bytes) -> None:
    """Replace a file whole, readable by its owner alone."""
    new = path.with_name(f"{path.name}.new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123  pathlib sets no mode
        file.write(body)
    new.replace(path)


class _Http(Protocol):
    """What is used of the web server."""

    async def run(self, bound: socket.socket) -> None:
        """Answer until told to stop, then end every request and connection."""
        ...


def _open_uvicorn(application: Application, stopping: asyncio.Event) -> _Http:
    """Load the library and make a server that leaves signals, time and logs alone."""
    import uvicorn

    class Server(uvicorn.Server):
        """Stops when told, without polling; uvicorn's own loop wakes ten times a second."""

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

        async def main_loop(self) -> None:
            await self.on_tick(0)
            await stopping.wait()

        async def run_bound(self, bound: socket.socket) -> None:
            try:
                await self.serve(sockets=[bound])
            except asyncio.CancelledError:
                if self.started:  # cancelled in its main loop, so it has not shut down
                    async with asyncio.timeout(CLOSE_S):
                        await self.shutdown(sockets=[bound])
                raise
            finally:
                requests = set(self.server_state.tasks)
                if requests:
                    await asyncio.wait(requests, timeout=CLOSE_S)

    config = uvicorn.Config(
        application,
        interface="asgi3",
        lifespan="off",
        http="h11",
        ws="none",
        loop="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=256,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = Server(config)

    class Http:
        """uvicorn behind our name."""

        async def run(self, bound: socket.socket) -> None:
            await server.run_bound(bound)

    return Http()
