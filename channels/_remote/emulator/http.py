"""A small HTTP/1.1 server for local use, whose connections can be cut at any point."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

from zeroclaw import Value

MAX_BODY_BYTES = 64 * 1024 * 1024
_MAX_HEAD_BYTES = 64 * 1024
_REASONS = {200: "OK", 204: "No Content", 303: "See Other"}


def reserve_port() -> int:
    """Return a loopback port that the system gives to no other program while this process runs.

    It stays bound, and a server with `SO_REUSEADDR` can still listen there. A port that was only
    found free could be another program's before the server takes it.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    listener.detach()
    return port


@dataclass(eq=False, kw_only=True)
class Disconnect:
    """Whether the client has disconnected, and the callback for when it does.

    Attributes:
        is_set: The client has disconnected.
        callback: Called when it does; a connection answers one request at a time, so one is enough.
    """

    is_set: bool = False
    callback: Callable[[], object] | None = None

    def set(self) -> None:
        """Record that the client has disconnected."""
        self.is_set = True
        if self.callback is not None:
            self.callback()


class Request(Value):
    """One request.

    Attributes:
        path: The path as sent, without the query.
        headers: By lower-case name.
        disconnect: Whether the client has disconnected before the answer.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    disconnect: Disconnect


class Response(Value):
    """A complete answer."""

    status: int = 200
    content_type: str = "application/json"
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class Streamed(Value):
    """An answer in pieces, until it ends or the client disconnects."""

    content_type: str
    pieces: AsyncIterator[bytes]
    headers: tuple[tuple[str, str], ...] = ()


class Cut(Value):
    """No answer; the connection is cut."""


Answer = Response | Streamed | Cut
NOTHING_HERE = Response(status=404, content_type="text/plain", body=b"nothing is here")
Handle = Callable[[Request], Awaitable[Answer]]


class _Line(asyncio.StreamReaderProtocol):
    """Notices when the client disconnects before it has its answer."""

    def __init__(
        self,
        serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter, Disconnect], Awaitable[None]],
    ) -> None:
        disconnect = Disconnect()
        super().__init__(
            asyncio.StreamReader(limit=_MAX_HEAD_BYTES),
            lambda reader, writer: serve(reader, writer, disconnect),
        )
        self._disconnect = disconnect

    def eof_received(self) -> bool | None:
        self._disconnect.set()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disconnect.set()
        super().connection_lost(exc)


class Server:
    """Listens on a loopback port; `down` and `up` keep the port."""

    def __init__(self, handle: Handle, port: int = 0) -> None:
        """Listen to nothing yet; port 0 takes any free port."""
        self._handle = handle
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._connection_closed = asyncio.Event()
        self.port = port

    async def up(self) -> None:
        """Accept connections.

        Raises:
            OSError: The port is in use.
        """
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Line(self._serve), "127.0.0.1", self.port, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Cut every connection and accept no new ones; safe to call twice."""
        if self._server is None:
            return
        self._server.close()
        self.cut()
        for task in self._connections:
            task.cancel()
        while self._connections:
            self._connection_closed.clear()
            await self._connection_closed.wait()
        await self._server.wait_closed()
        self._server = None

    def cut(self) -> None:
        """Cut every connection, but go on accepting new ones."""
        for writer in self._connections.values():
            writer.transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, disconnect: Disconnect
    ) -> None:
        task = asyncio.current_task()
        if task is None or self._server is None or not self._server.is_serving():
            writer.transport.abort()  # accepted just before the server went down
            return
        self._connections[task] = writer
        try:
            while (request := await _read(reader, disconnect)) is not None:
                if not await self._answer(request, writer):
                    break
        except (ConnectionError, asyncio.CancelledError):
            # `down` cancels connections; an exception here would be reported.
            return
        finally:
            writer.close()
            del self._connections[task]
            self._connection_closed.set()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return False if the connection ends with it."""
        answer = await self._handle(request)
        match answer:
            case Cut():
                writer.transport.abort()
                return False
            case Response():
                length = ("content-length", str(len(answer.body)))
                headers = (("content-type", answer.content_type), length, *answer.headers)
                writer.write(_head(answer.status, headers) + answer.body)
                await writer.drain()
                return request.headers.get("connection", "").lower() != "close"
            case Streamed():
                close = ("connection", "close")
                headers = (("content-type", answer.content_type), close, *answer.headers)
                writer.write(_head(200, headers))
                await _stream(answer.pieces, writer, request.disconnect)
                return False


async def _stream(
    pieces: AsyncIterator[bytes], writer: asyncio.StreamWriter, disconnect: Disconnect
) -> None:
    """Write pieces until they end or the client disconnects."""

    async def write() -> None:
        async for piece in pieces:
            writer.write(piece)
            await writer.drain()

    async with asyncio.TaskGroup() as group:
        writing = group.create_task(write())
        disconnect.callback = writing.cancel
        if disconnect.is_set:
            writing.cancel()


def _head(status: int, headers: tuple[tuple[str, str], ...]) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Refused')}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def _read(reader: asyncio.StreamReader, disconnect: Disconnect) -> Request | None:
    """Read one request; None at the end of the connection, or if the request is invalid."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    request_line, *lines = head.split("\r\n")
    parts = request_line.split(" ")
    if len(parts) != 3:  # noqa: PLR2004  method, target, version
        return None
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    size = headers.get("content-length", "0")
    if not size.isdigit() or int(size) > MAX_BODY_BYTES or "transfer-encoding" in headers:
        return None
    try:
        body = await reader.readexactly(int(size))
    except asyncio.IncompleteReadError:
        return None
    path, _, query = parts[1].partition("?")
    return Request(
        method=parts[0], path=path, query=query, headers=headers, body=body, disconnect=disconnect
    )
