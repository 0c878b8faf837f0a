"""The public listener: one socket that anybody may reach, which serves webhooks and nothing else.

    connection ── TLS ── head ── POST to a mounted path ── hook ── a status without a body

It is bound when a channel of the configuration needs it, and not before. Everything that a stranger
can make grow has a bound: connections, the head, the body, and the time for each; `connections.py`
keeps a client that holds connections open from keeping a platform out. What is refused is counted; of a flood
the first, the second, the fourth and so on are logged, and never what was sent.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from http.client import responses
from pathlib import Path

import h11

from zeroclaw.channel import ChannelLog
from zeroclaw.errors import ConfigError, ZeroclawError
from zeroclaw.foreign import Raised, call
from zeroclaw.host.connections import Bounds, ConnectionPool, Refusals, bind
from zeroclaw.mount import Hook, HookAnswer

DEFAULT_BOUNDS = Bounds()
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")
CLOSE_S = 1.0
LINGER_BYTES = 64 * 1024
"""Read and thrown away behind an early answer; else the system might cut the answer off."""
READ_BYTES = 16 * 1024
SUCCESS = 300


# --- one connection, as HTTP ---


class NotRead(ZeroclawError):
    """Raised when a body does not come as it must; its text is what is counted."""

    def __init__(self, status: int) -> None:
        """Take what is answered, 0 where nobody listens any more."""
        super().__init__({413: "too large", 408: "slow"}.get(status, "cut"))
        self.status = status


class HttpConnection:
    """One connection, as HTTP; `open` comes first."""

    def __init__(self, accepted: socket.socket, bounds: Bounds) -> None:
        """Take over a connection that was accepted, and nothing more."""
        self._accepted = accepted
        self._reader = asyncio.StreamReader(limit=READ_BYTES, loop=asyncio.get_running_loop())
        self._writer: asyncio.StreamWriter | None = None
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=bounds.head_bytes)
        self.bounds = bounds

    @property
    def is_heard(self) -> bool:
        """A request is here to its last byte, and waits for its answer."""
        return self._http.their_state is h11.DONE

    async def open(self, tls: ssl.SSLContext | None) -> None:
        """Shake hands, where TLS is spoken; before, nothing can be read or written.

        Raises:
            OSError: They could not be shaken, or not in time.
        """
        loop = asyncio.get_running_loop()
        protocol = asyncio.StreamReaderProtocol(self._reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            self._accepted,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else self.bounds.head_s,
        )
        self._writer = asyncio.StreamWriter(transport, protocol, self._reader, loop)

    async def next(self) -> h11.Event:
        """Return what came next.

        Raises:
            OSError: The connection broke.
            h11.RemoteProtocolError: It is no HTTP, or larger than a head may be.
        """
        while True:
            event = self._http.next_event()
            if not isinstance(event, type):
                return event
            if event is h11.PAUSED:  # somebody sends on before they were answered
                message = "no answer was waited for"
                raise h11.RemoteProtocolError(message)
            if self._http.they_are_waiting_for_100_continue:
                self._write(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._reader.read(READ_BYTES))

    async def answer(self, answer: HookAnswer) -> None:
        """Write a status; where there is no next request, say so, and let it arrive."""
        self._throw_away_what_is_here()
        headers = [("content-length", "0")]
        if answer.retry_after_s:
            headers.append(("retry-after", str(answer.retry_after_s)))
        if not self.is_heard or answer.status >= SUCCESS:
            headers.append(("connection", "close"))
        phrase = responses.get(answer.status, "")  # what Telegram tells of a failed call
        self._write(h11.Response(status_code=answer.status, headers=headers, reason=phrase))
        self._write(h11.EndOfMessage())
        if not self.is_heard:
            await self._linger()

    def goes_on(self) -> bool:
        """Make ready for the next request; False when this was the last."""
        if self._http.our_state is not h11.DONE or not self.is_heard:
            return False
        self._http.start_next_cycle()
        return True

    def cut(self) -> None:
        """End the connection at once, whatever is under way."""
        if self._writer is not None:
            self._writer.transport.abort()
            return
        with suppress(OSError):  # gone by itself
            self._accepted.shutdown(socket.SHUT_RDWR)  # whoever waits for the handshake hears it

    async def aclose(self) -> None:
        """Close the connection; what a peer doesn't read within a second is lost. Safe twice."""
        if self._writer is None:
            self._accepted.close()
            return
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._writer.wait_closed()
        except TimeoutError:
            self.cut()
        except OSError:
            return

    def _throw_away_what_is_here(self) -> None:
        """Read on in what has come already, for mostly that is all."""
        with suppress(h11.RemoteProtocolError):
            while not self.is_heard and isinstance(self._http.next_event(), h11.Data):
                pass

    async def _linger(self) -> None:
        left = LINGER_BYTES
        with suppress(TimeoutError, OSError):
            if self._out.can_write_eof():  # not over TLS
                self._out.write_eof()
            async with asyncio.timeout(CLOSE_S):
                while left > 0 and (thrown := await self._reader.read(READ_BYTES)):
                    left -= len(thrown)

    def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._out.write(data)  # a few hundred bytes, for which no buffer is too full

    @property
    def _out(self) -> asyncio.StreamWriter:
        if self._writer is None:
            message = "the connection is not open"
            raise ConnectionError(message)
        return self._writer


class Request:
    """One request, of which the head is read."""

    def __init__(self, connection: HttpConnection, head: h11.Request) -> None:
        self._connection = connection
        self._bounds = connection.bounds
        self._headers = {
            name.decode("ascii", "replace"): value.decode("latin-1") for name, value in head.headers
        }

    @property
    def headers(self) -> Mapping[str, str]:
        """By name in lower case."""
        return self._headers

    async def body(self) -> bytes:
        """Read the body; see `HookRequest.body`."""
        said = self._headers.get("content-length", "")
        if (
            said.isdecimal() and int(said) > self._bounds.body_bytes
        ):  # h11 has seen to it that it is short
            raise NotRead(413)
        read = bytearray()
        try:
            async with asyncio.timeout(self._bounds.body_s):
                while isinstance(event := await self._connection.next(), h11.Data):
                    read += event.data
                    if len(read) > self._bounds.body_bytes:
                        raise NotRead(413)
        except TimeoutError as error:
            raise NotRead(408) from error
        except (OSError, h11.RemoteProtocolError) as error:
            raise NotRead(0) from error
        return bytes(read)


# --- the listener ---


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
        self.refused = Refusals(log, "public_refused")
        self._pool = ConnectionPool[HttpConnection](bounds.connections, self.refused)

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
                    group.create_task(self._connection(HttpConnection(accepted, self._bounds)))
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
                self.refused.note("cut")  # gone before it was its turn
            except OSError as error:  # no descriptor is left, or no memory
                self._log("not_accepted", why=str(error.strerror).lower(), level="error")
                await asyncio.sleep(self._bounds.full_s)
            else:
                return accepted

    # --- one connection --------------------------------------------------------------------------

    async def _connection(self, connection: HttpConnection) -> None:
        if not self._pool.enter(connection):
            await connection.aclose()
            return
        try:
            ended = await call(lambda: self._talk(connection))
            if isinstance(ended, Raised):
                self._broke(connection, ended)
        finally:
            self._pool.leave(connection)
            await connection.aclose()

    async def _talk(self, connection: HttpConnection) -> None:
        await connection.open(self._tls)
        while await self._request(connection):
            self._pool.prove(connection)

    def _broke(self, connection: HttpConnection, ended: Raised) -> None:
        connection.cut()
        if not isinstance(ended.error, OSError | h11.RemoteProtocolError):
            # A fault in here ends this connection, never the daemon.
            self._log("connection_failed", why=ended.line, level="error")
        elif not self._pool.is_proven(connection):
            self.refused.note("garbled or slow")

    async def _request(self, connection: HttpConnection) -> bool:
        """Answer one request; False when the connection ends with it."""
        bounds = self._bounds
        async with asyncio.timeout(
            bounds.keep_s if self._pool.is_proven(connection) else bounds.head_s
        ):
            head = await connection.next()
        if not isinstance(head, h11.Request):
            return False
        path, _, _ = head.target.decode("ascii", "replace").partition("?")
        hook = self._hooks.get(path) if head.method == b"POST" else None
        if hook is None:
            self.refused.note("elsewhere")
            await connection.answer(HookAnswer(status=404))
            return False
        answer = await self._asked(hook, Request(connection, head))
        if answer is None:
            connection.cut()
            return False
        await connection.answer(answer)
        return answer.status < SUCCESS and connection.goes_on()

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
                self.refused.note(str(error))
                return HookAnswer(status=error.status) if error.status else None
            case ZeroclawError():
                return HookAnswer(status=503)
            case _:
                self._log("hook_failed", why=answer.line, level="error")
                return HookAnswer(status=500)


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
