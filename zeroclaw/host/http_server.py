"""One listening socket and its HTTP connections; both listeners build on it.

    connection ── (TLS) ── head ── handler: body, answer ── the next head ── …

All resources that a stranger can use are bounded (`Bounds`): connections, the head, the body, and
the time for each. A client that holds connections open can't keep others out: when all connections
are taken, the server cuts the one with the lowest claim, and among equals the oldest.
h11 parses and writes the HTTP.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from http import HTTPStatus

import h11

from zeroclaw.channel import Log, Refusals
from zeroclaw.foreign import Raised, call
from zeroclaw.host.connections import Bounds, accept_each, close_stream
from zeroclaw.value import Struct, field

READ_BYTES = 16 * 1024
ANSWERED = 4
"""The claim of a connection whose request has fully arrived and is being answered."""
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_INCOMPLETE = frozenset({h11.IDLE, h11.SEND_BODY, h11.ERROR})
_WITH_BODY = frozenset({b"content-length", b"transfer-encoding"})  # RFC 9112, 6

Headers = Iterable[tuple[bytes, bytes]]


class HttpConnection:
    """One HTTP connection; call `open` first.

    Attributes:
        is_proven: Whether it has sent a useful request.
    """

    def __init__(self, accepted: socket.socket, bounds: Bounds) -> None:
        """Wrap an accepted connection; nothing is read or written yet."""
        self._accepted = accepted
        self._reader = asyncio.StreamReader(limit=READ_BYTES, loop=asyncio.get_running_loop())
        self._writer: asyncio.StreamWriter | None = None
        self._lost = asyncio.Event()
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=bounds.head_bytes)
        self.bounds = bounds
        self.is_proven = False
        self._is_stalled = False

    @property
    def claim(self) -> int:
        """The rank of the connection when room is needed; `ANSWERED` means that it must stay.

        Ascending: it sent nothing useful; it is idle between requests; it has half a request; its
        peer does not read the answer. The peer can reconnect.
        """
        if self.has_full_request and not self._is_stalled:
            return ANSWERED
        if not self.is_proven:
            return 0
        return 3 if self._is_stalled else 1 + (self._http.their_state is not h11.IDLE)

    @property
    def has_full_request(self) -> bool:
        """Whether a request has fully arrived and waits for its answer."""
        return self._http.their_state not in _INCOMPLETE

    async def open(self, tls: ssl.SSLContext | None) -> None:
        """Do the TLS handshake if there is one, and create the streams.

        Raises:
            OSError: The handshake failed or timed out.
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

    async def head(self) -> h11.Request | None:
        """Return the head of the next request; None if there is none.

        Raises:
            OSError: The connection broke, or the head did not arrive in time.
            h11.RemoteProtocolError: The data is not HTTP, or the head is too large.
        """
        bounds = self.bounds
        async with asyncio.timeout(bounds.keep_s if self.is_proven else bounds.head_s):
            head = await self.next()
        if not isinstance(head, h11.Request):
            return None
        lengths = [name for name, _ in head.headers if name in _WITH_BODY]
        if not lengths:
            self._http.next_event()  # consumes EndOfMessage, so that the request counts as full
        elif len(lengths) > 1:  # a proxy in front may take the end of the body to be elsewhere
            message = "the length of the body is given twice"
            raise h11.RemoteProtocolError(message)
        return head

    async def body(self) -> bytes:
        """Return the next piece of the request's body; empty at its end.

        Raises:
            OSError: The connection broke.
            h11.RemoteProtocolError: The data is not HTTP.
        """
        event = None if self.has_full_request else await self.next()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def next(self) -> h11.Event:
        """Return the next event.

        Raises:
            OSError: The connection broke.
            h11.RemoteProtocolError: The data is not HTTP, or the head is too large.
        """
        while True:
            event = self._http.next_event()
            if not isinstance(event, type):
                return event
            if event is h11.PAUSED:  # the client pipelines: it sends on before it was answered
                message = "the client did not wait for the answer"
                raise h11.RemoteProtocolError(message)
            if self._http.they_are_waiting_for_100_continue:
                self.write(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._reader.read(READ_BYTES))

    async def wait_until_gone(self) -> None:
        """Wait until the peer is gone.

        If it already sends another request, only one chunk of that is read; then only a failed
        write shows that the peer is gone.
        """
        data = await self._reader.read(READ_BYTES)
        self._http.receive_data(data)
        if data:
            await self._lost.wait()

    def write(self, event: h11.Event) -> None:
        """Write a part of an answer; `drained` waits until there is room for more."""
        data = self._http.send(event)
        if data:
            self._out.write(data)

    async def drained(self) -> None:
        """Wait until the write buffer has room again.

        Raises:
            OSError: The peer is gone.
        """
        self._is_stalled = True
        try:
            await self._out.drain()
        except OSError:
            self._lost.set()
            raise
        self._is_stalled = False

    def answer(self, status: int, headers: Headers = (), body: bytes = b"") -> None:
        """Write a whole answer."""
        length = (b"content-length", str(len(body)).encode())
        self.start(status, (length, *headers))
        self.write(h11.Data(data=body))
        self.write(h11.EndOfMessage())

    def start(self, status: int, headers: Headers) -> None:
        """Write the head of an answer."""
        phrase = _PHRASES.get(status, "")  # Telegram reports it for a failed call
        self.write(h11.Response(status_code=status, headers=list(headers), reason=phrase))

    async def finish(self) -> bool:
        """Prepare for the next request; return False if there will be none.

        The rest of a request that was answered early is read and discarded, within bounds:
        otherwise the system might reset the connection before the answer is read.
        """
        state = self._http.our_state
        if state not in (h11.DONE, h11.MUST_CLOSE):  # the answer is incomplete
            return False
        if not self.has_full_request:
            remaining = self.bounds.linger_bytes
            with suppress(OSError, h11.RemoteProtocolError):
                if state is h11.MUST_CLOSE and self._out.can_write_eof():  # not over TLS
                    self._out.write_eof()
                async with asyncio.timeout(self.bounds.linger_s):
                    while remaining > 0 and (data := await self.body()):
                        remaining -= len(data)
        if state is h11.MUST_CLOSE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    def cut(self) -> None:
        """Abort the connection at once."""
        if self._writer is not None:
            self._writer.transport.abort()
            return
        with suppress(OSError):  # already gone; otherwise this wakes the handshake
            self._accepted.shutdown(socket.SHUT_RDWR)

    async def aclose(self) -> None:
        """Close an open connection; drops what the peer doesn't read within a second."""
        if self._writer is not None:
            await close_stream(self._writer)

    @property
    def _out(self) -> asyncio.StreamWriter:
        if self._writer is None:
            message = "the connection is not open"
            raise ConnectionError(message)
        return self._writer


Handler = Callable[[HttpConnection, h11.Request], Awaitable[None]]
"""Answers one request; if it does not, the connection ends."""


class HttpServer(Struct, eq=False):
    """Serves one bound socket.

    Attributes:
        bound: Listens; closed by `serve` or `close`.
        refused: Counts refused requests and connections by reason.
    """

    bound: socket.socket
    handle: Handler
    bounds: Bounds
    log: Log
    refused: Refusals
    tls: ssl.SSLContext | None = None
    _open: dict[HttpConnection, None] = field(default_factory=dict[HttpConnection, None])

    async def serve(self) -> None:
        """Answer requests until cancelled, which ends all of them and frees the port; call once."""
        try:
            await accept_each(self.bound, self._connection, log=self.log, full_s=self.bounds.full_s)
        finally:
            self.close()

    def close(self) -> None:
        """Free the port if `serve` was never called; safe twice."""
        self.bound.close()

    async def _connection(self, accepted: socket.socket) -> None:
        connection = HttpConnection(accepted, self.bounds)
        try:
            if self._enter(connection):
                result = await call(lambda: self._talk(connection))
                if isinstance(result, Raised):
                    self._note_failure(connection, result)
        finally:
            self._open.pop(connection, None)
            await connection.aclose()

    def _enter(self, connection: HttpConnection) -> bool:
        """Register a connection; cut it and return False if there is no room and none can be made."""
        if len(self._open) >= self.bounds.connections:
            self.refused.note("crowded")
            loser = min(self._open, key=lambda other: other.claim)
            if loser.claim == ANSWERED:
                loser = connection
            loser.cut()
            self._open.pop(loser, None)
            if loser is connection:
                return False
        self._open[connection] = None
        return True

    async def _talk(self, connection: HttpConnection) -> None:
        await connection.open(self.tls)
        while (head := await connection.head()) is not None:
            await self.handle(connection, head)
            if not await connection.finish():
                return
            if connection in self._open:  # move to the end: `_enter` treats the first as the oldest
                self._open[connection] = self._open.pop(connection)

    def _note_failure(self, connection: HttpConnection, failure: Raised) -> None:
        connection.cut()
        if not isinstance(failure.error, OSError | h11.RemoteProtocolError):
            # A bug in a handler ends this connection, never the daemon.
            self.log("connection_failed", reason=failure.line, level="error")
        elif connection in self._open and not connection.is_proven:
            self.refused.note("garbled or slow")
