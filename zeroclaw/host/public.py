"""The public listener: one socket that anybody may reach, which serves webhooks and nothing else.

    connection ── TLS ── head ── POST to a mounted path ── hook ── a status without a body

It is bound when a channel of the configuration needs it, and not before. Everything that a stranger
can make grow has a bound: connections, the head, the body, and the time for each; `crowd.py` keeps
whoever holds connections open from keeping a platform out. What is refused is counted; of a flood
the first, the second, the fourth and so on are logged, and never what was sent.
"""

import asyncio
import re
import socket
import ssl
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import h11

from zeroclaw.channel import ChannelLog
from zeroclaw.errors import ConfigError, ZeroclawError
from zeroclaw.foreign import Raised, call
from zeroclaw.host.binding import bind
from zeroclaw.host.crowd import Bounds, Crowd
from zeroclaw.host.public_line import SUCCESS, Line, NotRead, Request
from zeroclaw.mount import Hook, HookAnswer

DEFAULT_BOUNDS = Bounds()
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")


class PublicListener:
    """The public listener, bound; `open_public` makes one.

    Attributes:
        refused: How many requests and connections came to nothing, by the reason.
    """

    def __init__(
        self, *, bound: socket.socket, tls: ssl.SSLContext | None, bounds: Bounds, log: ChannelLog
    ) -> None:
        """Hold what is needed; `bound` listens, and is closed by `aclose`."""
        self._socket = bound
        self._port: int = bound.getsockname()[1]
        self._tls = tls
        self._bounds = bounds
        self._log = log
        self._hooks: dict[str, Hook] = {}
        self._crowd = Crowd[Line](bounds.connections, self._refuse)
        self.refused: Counter[str] = Counter()

    @property
    def port(self) -> int:
        """The port that it has, also when it was opened with 0."""
        return self._port

    @contextmanager
    def mount(self, path: str, hook: Hook) -> Generator[None]:
        """Answer POST requests to a path while the context is open; see `Mount.public`.

        Raises:
            ConfigError: Somebody else has the path, or it can be none.
        """
        if _PATH.fullmatch(path) is None:
            fault = f"`{path}` can't be the path of a webhook; use one such as `/telegram`"
            raise ConfigError((fault,))
        if path in self._hooks:
            fault = f"two channels are to be called at `{path}`; give each a path of its own"
            raise ConfigError((fault,))
        self._hooks[path] = hook
        try:
            yield
        finally:
            del self._hooks[path]

    async def serve(self) -> None:
        """Answer requests until cancelled; once."""
        async with asyncio.TaskGroup() as group:
            # Not `start_server`, which shakes hands with any number before it tells of one.
            try:
                while True:
                    accepted = await self._accepted()
                    group.create_task(self._connection(Line(accepted, self._bounds)))
                    await asyncio.sleep(0)  # in a flood accepting alone never lets go
            finally:
                self._socket.close()

    async def aclose(self) -> None:
        """Free the port; safe twice."""
        self._socket.close()

    async def _accepted(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._socket)
            except ConnectionError:
                self._refuse("cut")  # gone before it was its turn
            except OSError as error:  # no descriptor is left, or no memory
                self._log("not_accepted", why=str(error.strerror).lower(), level="error")
                await asyncio.sleep(self._bounds.full_s)
            else:
                return accepted

    # --- one connection --------------------------------------------------------------------------

    async def _connection(self, line: Line) -> None:
        if not self._crowd.enter(line):
            await line.aclose()
            return
        try:
            ended = await call(lambda: self._talk(line))
            if isinstance(ended, Raised):
                self._broke(line, ended)
        finally:
            self._crowd.leave(line)
            await line.aclose()

    async def _talk(self, line: Line) -> None:
        await line.open(self._tls)
        while await self._request(line):
            self._crowd.prove(line)

    def _broke(self, line: Line, ended: Raised) -> None:
        line.cut()
        if not isinstance(ended.error, OSError | h11.RemoteProtocolError):
            # A fault in here ends this connection, never the daemon.
            self._log("connection_failed", why=ended.line, level="error")
        elif not self._crowd.is_proven(line):
            self._refuse("garbled or slow")

    async def _request(self, line: Line) -> bool:
        """Answer one request; False when the connection ends with it."""
        bounds = self._bounds
        async with asyncio.timeout(bounds.keep_s if self._crowd.is_proven(line) else bounds.head_s):
            head = await line.next()
        if not isinstance(head, h11.Request):
            return False
        path, _, _ = head.target.decode("ascii", "replace").partition("?")
        hook = self._hooks.get(path) if head.method == b"POST" else None
        if hook is None:
            self._refuse("elsewhere")
            await line.answer(HookAnswer(status=404))
            return False
        answer = await self._asked(hook, Request(line, head))
        if answer is None:
            line.cut()
            return False
        await line.answer(answer)
        return answer.status < SUCCESS and line.goes_on()

    async def _asked(self, hook: Hook, request: Request) -> HookAnswer | None:
        """Let a hook answer; None when nobody listens any more."""
        try:
            async with asyncio.timeout(self._bounds.answer_s):
                answer = await call(lambda: hook(request))
        except TimeoutError:
            self._log("hook_took_too_long", level="error")
            return HookAnswer(status=503)
        if not isinstance(answer, Raised):
            return answer
        match answer.error:
            case NotRead() as error:
                self._refuse(str(error))
                return HookAnswer(status=error.status) if error.status else None
            case ZeroclawError():
                return HookAnswer(status=503)
            case _:
                self._log("hook_failed", why=answer.line, level="error")
                return HookAnswer(status=500)

    def _refuse(self, why: str) -> None:
        self.refused[why] += 1
        count = self.refused[why]
        if count & (count - 1) == 0:  # a power of two, so that a flood fills no log
            self._log("public_refused", why=why, count=count)


# --- opening -------------------------------------------------------------------------------------


async def open_public(
    *,
    host: str,
    port: int,
    cert_file: str,
    key_file: str,
    log: ChannelLog,
    bounds: Bounds = DEFAULT_BOUNDS,
) -> PublicListener:
    """Bind the public listener.

    Args:
        host: An address of this machine.
        port: 0 for any free one.
        cert_file: The certificate with its chain, PEM; empty to speak plain HTTP to a proxy.
        key_file: Its key, PEM, without a password.
        log: For facts.
        bounds: What strangers can make grow, and how far.

    Raises:
        ConfigError: The certificate or its key can't be used.
        PortInUse: Somebody else has the port, or it may not be had.
    """
    tls = await asyncio.to_thread(_tls, cert_file, key_file) if cert_file else None
    bound = bind(host, port, key="public.port")
    return PublicListener(bound=bound, tls=tls, bounds=bounds, log=log)


def _tls(cert_file: str, key_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        cert, key = Path(cert_file).expanduser(), Path(key_file).expanduser()
        for name, path in (("cert_file", cert), ("key_file", key)):
            _check_readable(name, path)
        # With a password in hand it never asks a terminal for one.
        context.load_cert_chain(cert, key, password="")
    except ssl.SSLError as error:
        fault = (
            f"public.cert_file: `{cert_file}` and `{key_file}` are no certificate and its key, in "
            "PEM and without a password"
        )
        raise ConfigError((fault,)) from error
    return context


def _check_readable(name: str, path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        fault = f"public.{name}: `{path}` can't be read: {str(error.strerror).lower()}"
        raise ConfigError((fault,)) from error
