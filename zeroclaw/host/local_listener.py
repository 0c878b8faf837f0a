"""The local listener: one socket on this machine, behind login, CSRF and host checks.

    request ── secret path ── guard (host, origin, size) ── link ── session ── mounted application
        └── /health, else always the same 404

The constructor binds, so that a port in use is reported before anything else starts. Requests are
answered once `serve` runs; earlier connections wait. Applications are mounted at run time, all
below a random path that is created once and kept: browsers send a cookie to every port of this
machine, and only its path keeps it from other programs.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import cast

from zeroclaw.channel import Log
from zeroclaw.clock import Clock, Ids
from zeroclaw.config.model import ListenerSettings
from zeroclaw.errors import Refused, StoreUnusable, system_words
from zeroclaw.host import guard, login
from zeroclaw.host.atomic_file import replace_private
from zeroclaw.host.connections import PROVE, ASGIApp, Bounds, Message, Receive, Scope, Send, bind
from zeroclaw.host.http import headers_of
from zeroclaw.value import replace

SESSIONS = "sessions.json"
"""File in the data directory: the secret path, and the hashes of sessions."""
MAX_BODY_BYTES = 16 * 1024 * 1024
"""Room for a file in a message; applications with smaller limits check them themselves."""
BOUNDS = Bounds(
    connections=256,
    head_bytes=64 * 1024,
    body_s=120.0,
    linger_bytes=4 * MAX_BODY_BYTES,
    linger_s=10.0,
    mount_s=10.0,
)
"""A head holds the console's longest form, which is sent in the URL. The listener waits for a body
only if its head has a session, and then as long as pieces of it arrive. A browser reads the refusal
of a body only after it has sent all of it."""
MAX_STREAMS = 4
"""Streams of one browser, which opens six connections to a server (HTTP/1.1) and needs some for
other requests."""
PATH_CHARS = 22
"""Characters of a base64 token: 132 bits, and a link still fits on a line or two."""
LOG_OUT = "/logout"
NOTHING = b"nothing is here"
"""The whole answer outside the secret path, whatever the request."""
PREFIX = re.compile(r"/[A-Za-z0-9_-]+")


Header = tuple[bytes, bytes]


class Listener:
    """The local listener; bound on creation.

    Attributes:
        port: The actual port, also if 0 was requested.
        close: Frees the port if `serve` was never called; safe twice.
    """

    def __init__(
        self,
        settings: ListenerSettings,
        *,
        sessions_at: Path,
        clock: Clock,
        ids: Ids,
        log: Log,
        bounds: Bounds = BOUNDS,
    ) -> None:
        """Bind; blocks on files, so call this in a thread.

        Args:
            settings: The address and port.
            sessions_at: The file (0600) with the secret path and the sessions; its directory exists.
            clock: For the expiry of links and sessions.
            ids: Makes links and sessions.
            log: For events.
            bounds: Bounds the resources that other programs of this machine can use.

        Raises:
            PortInUse: Another program has the port, or binding is not permitted.
        """
        from zeroclaw.host.web_server import web_server

        self._sessions_at = sessions_at
        self._clock = clock
        self._ids = ids
        self._log = log
        self._bounds = bounds
        self._logins = login.Logins()
        try:
            with suppress(FileNotFoundError):
                self._logins = login.read_sessions(sessions_at.read_bytes())
        except (OSError, StoreUnusable) as error:  # then bookmarks lead nowhere any more
            log("sessions_not_read", reason=str(error), level="warning")
        self._writing = asyncio.Lock()
        self._streams: dict[asyncio.Timeout, tuple[str, ...]] = {}  # by the sessions of the browser
        self._mounted: dict[str, ASGIApp] = {}
        self._front = ""  # where the bare address leads
        self._mounts = asyncio.Event()  # set by each mount, and then replaced
        self._mounted_by = 0.0
        host = "127.0.0.1" if settings.host == "localhost" else settings.host
        bound = bind(host, settings.port, key="listener.port")
        self.port: int = bound.getsockname()[1]
        self._host = f"[{host}]" if ":" in (host := bound.getsockname()[0]) else host
        self._server = web_server(bound, self._answer, bounds=bounds, log=log)
        self.close = self._server.close
        if not self._logins.path:
            self._logins = login.Logins(path=ids.token()[:PATH_CHARS])
            self._write(login.write_sessions(self._logins))

    async def serve(self) -> None:
        """Answer requests until cancelled, which frees the port; call once."""
        self._mounted_by = asyncio.get_running_loop().time() + self._bounds.mount_s
        await self._server.serve()

    @property
    def root(self) -> str:
        """The secret path above every application, `/…`."""
        return f"/{self._logins.path}"

    @property
    def url(self) -> str:
        """The address of this listener, with the secret path."""
        return f"http://{self._host}:{self.port}{self.root}"

    def new_login_url(self, path: str = "/") -> str:
        """Return an address that opens `path` and logs a browser in; it works once."""
        link = self._ids.token()
        self._logins = login.with_link(self._logins, link, self._clock.now())
        return f"{self.url}{guard.local_url(path)}?login={link}"

    def web(self, prefix: str, application: object) -> str:
        """Mount an application below `/prefix/`, or replace the one there; see `Mount.web`."""
        if PREFIX.fullmatch(prefix) is None or not callable(application):
            message = f"`{prefix}` must be a slash and one name, and have an ASGI application"
            raise ValueError(message)
        # It is called with ASGI's three arguments; a callable that takes others fails at its first
        # request.
        self.mount_beside(prefix, application)
        self._front = self._front or prefix
        return self.new_login_url(f"{prefix}/")

    def mount_beside(self, prefix: str, application: object) -> None:
        """Mount an application that other pages link to; the bare address never redirects to it."""
        self._mounted[prefix] = cast("ASGIApp", application)
        self._mounts.set()
        self._mounts = asyncio.Event()

    async def log_out(self) -> int:
        """End every session and every unused link; return the number of sessions.

        Raises:
            Refused: They ended, but could not be stored, so they would be valid after a restart.
        """
        now = self._clock.now()
        count = sum(now < ends_at for ends_at in self._logins.sessions.values())
        if not await self._apply(replace(self._logins, links={}, sessions={})):
            message = (
                f"every browser is logged out until the daemon starts again: `{self._sessions_at}` "
                "can't be written"
            )
            raise Refused(message)
        return count

    # --- one request -----------------------------------------------------------------------------

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = guard.RequestHead(
            method=str(scope["method"]),
            path=str(scope["path"]),
            query=cast("bytes", scope["query_string"]).decode("latin-1"),
            headers=headers_of(cast("Iterable[Header]", scope["headers"])),
        )
        refusal = guard.refusal(request, self.port, MAX_BODY_BYTES)
        path = guard.below(request.path, self.root)
        if request.path == "/health" and refusal is None:
            await _reply(send, 200, "application/json", b'{"status":"ok"}')
        elif path is None:
            await _reply(send, 404, "text/plain", NOTHING)
        elif refusal is not None:
            await _reply(send, refusal.status, "text/plain", refusal.text.encode())
        elif path == guard.ICON:
            await _reply(send, 204, "image/x-icon", b"")
        elif link := guard.link_of(request):
            await self._log_in(request, link, send)
        elif not self._is_open(request):
            await _reply(send, 401, "text/html", guard.login_page(self.root))
        else:
            cast("Callable[[], None]", scope[PROVE])()
            await self._route(request, path, scope, receive, send)

    def _is_open(self, request: guard.RequestHead) -> bool:
        sessions = guard.sessions_of(request, self.port)
        return login.is_open(self._logins, sessions, self._clock.now())

    async def _log_in(self, request: guard.RequestHead, link: str, send: Send) -> None:
        session = self._ids.token()
        logins = login.redeem(self._logins, link, session, self._clock.now())
        old_sessions = guard.sessions_of(request, self.port)
        target = guard.local_url(request.path)
        if logins is None:
            if self._is_open(request):
                await _reply(send, 303, "text/plain", b"", ("location", target))
            else:
                self._log("login_refused")
                await _reply(send, 401, "text/html", guard.login_page(self.root))
            return
        self._log("logged_in")
        await self._apply(login.without(logins, old_sessions))
        body = guard.page(self.root, "Welcome", f'<a href="{target}">Go on</a>', go_to=target)
        max_age_s = int(login.SESSION_LIFETIME.total_seconds())
        await _reply(send, 200, "text/html", body, self._cookie(request, session, max_age_s))

    async def _log_out_one(self, request: guard.RequestHead, send: Send) -> None:
        """End the sessions in a request's cookies."""
        self._log("logged_out")
        ended = login.without(self._logins, guard.sessions_of(request, self.port))
        body = guard.logged_out_page(self.root, is_stored=await self._apply(ended))
        await _reply(send, 200, "text/html", body, self._cookie(request, "", 0))

    def _cookie(self, request: guard.RequestHead, session: str, max_age_s: int) -> tuple[str, str]:
        path = f"{self.root}/"
        cookie = guard.cookie(request, session, self.port, path=path, max_age_s=max_age_s)
        return "set-cookie", cookie

    async def _apply(self, logins: login.Logins) -> bool:
        """Switch to these logins, end the streams of ended sessions, and store the logins.

        Returns False if they could not be stored, and so last only until the daemon ends.
        """
        self._logins = logins
        for stream, sessions in [*self._streams.items()]:
            if not login.is_open(logins, sessions, self._clock.now()):
                self._end(stream)
        async with self._writing:
            return await asyncio.to_thread(self._write, login.write_sessions(self._logins))

    def _write(self, body: bytes) -> bool:
        try:
            replace_private(self._sessions_at, body)
        except OSError as error:
            self._log("sessions_not_saved", reason=system_words(error), level="warning")
            return False
        return True

    async def _route(
        self, request: guard.RequestHead, path: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        prefix, slash, _ = path[1:].partition("/")
        is_ours = not prefix or path == LOG_OUT
        application = None if is_ours else await self._application(f"/{prefix}")
        if application is not None and slash:
            inner = {**scope, "root_path": f"{self.root}/{prefix}"}
            await self._serve_application(application, request, inner, receive, send)
        elif application is not None:
            target = guard.local_url(f"{self.root}/{prefix}/")
            await _reply(send, 307, "text/plain", b"", ("location", target))
        elif path == LOG_OUT and request.method == "POST":
            await self._log_out_one(request, send)
        elif path in ("", "/") and self._front:
            target = guard.local_url(f"{self.root}{self._front}/")
            await _reply(send, 303, "text/plain", b"", ("location", target))
        else:
            await _reply(send, 404, "text/plain", NOTHING)

    async def _application(self, prefix: str) -> ASGIApp | None:
        """Return the application mounted there; just after the start, wait for it to be mounted."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._mounted_by):
                while prefix not in self._mounted:
                    await self._mounts.wait()
        return self._mounted.get(prefix)

    async def _serve_application(
        self,
        application: ASGIApp,
        request: guard.RequestHead,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Let an application answer; its stream ends when its session does."""
        stream = asyncio.timeout(None)
        try:
            async with stream:
                await application(scope, receive, self._guarded(send, request, stream))
        except TimeoutError:
            if stream.when() is None:
                raise
        finally:
            self._streams.pop(stream, None)
        if stream.when() is not None:
            await send({"type": "http.response.body", "body": b""})

    def _add_stream(self, stream: asyncio.Timeout, request: guard.RequestHead) -> None:
        """Note a stream, and end the oldest ones of a browser that would run out of connections."""
        # Other programs of this machine change the rest of the cookies at any time.
        self._streams[stream] = browser = guard.sessions_of(request, self.port)
        same = [key for key, other in self._streams.items() if other == browser]
        for oldest in same[:-MAX_STREAMS]:
            self._end(oldest)

    def _end(self, stream: asyncio.Timeout) -> None:
        """End a stream, once: a timeout that has expired can't be rescheduled."""
        del self._streams[stream]
        stream.reschedule(0)

    def _guarded(self, send: Send, request: guard.RequestHead, stream: asyncio.Timeout) -> Send:
        """Set the guard's headers on an answer, and end its stream when its session has ended."""
        guarded = frozenset(name for name, _ in guard.HEADERS)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*cast("Iterable[Header]", message.get("headers", ()))]
                if b"content-length" not in {name.lower() for name, _ in headers}:
                    self._add_stream(stream, request)
                others = [header for header in headers if header[0].lower() not in guarded]
                message = {**message, "headers": [*guard.HEADERS, *others]}
            elif stream in self._streams and not self._is_open(request):  # its session has ended
                self._end(stream)
                return
            elif stream.when() is not None:
                return
            elif not message.get("more_body"):
                self._streams.pop(stream, None)
            await send(message)

        return send_guarded


def log_out_stored(path: Path) -> int:
    """End every session while no daemon runs; return how many were stored. Blocks.

    Raises:
        OSError: The file can't be read or written.
    """
    logins = login.Logins()
    with suppress(FileNotFoundError, StoreUnusable):  # a daemon would find no session either
        logins = login.read_sessions(path.read_bytes())
    if logins.sessions:
        replace_private(path, login.write_sessions(replace(logins, sessions={})))
    return len(logins.sessions)


# --- responses -----------------------------------------------------------------------------------


async def _reply(send: Send, status: int, kind: str, body: bytes, *extra: tuple[str, str]) -> None:
    """Send a whole answer, with `extra` headers."""
    headers = [
        *guard.HEADERS,
        (b"content-type", f"{kind}; charset=utf-8".encode()),
        (b"content-length", str(len(body)).encode()),
        *((name.encode(), value.encode()) for name, value in extra),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
