"""Servers on loopback: one waits for its connections at the end, one cuts them all."""

import asyncio
import socket
import ssl
import struct
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Self

from zeroclaw.host.connections import accept_each, bind, close_stream

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(
    serve: Serve, port: int = 0, *, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[int]:
    """Serve each connection, and wait for all of them at the end; yields the port.

    A server sees the end of a connection later than the client; on a busy machine the test may be over
    by then. asyncio's own server does not track its connections (3.11), so their tasks have no owner.
    """
    async with asyncio.TaskGroup() as connections:

        async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):  # the client is gone
                await serve(reader, writer)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.create_task(connection(reader, writer))

        async with await asyncio.start_server(connected, "127.0.0.1", port, ssl=tls) as server:
            yield server.sockets[0].getsockname()[1]


def _no_log(event: str, /, **fields: object) -> None:
    """Log nothing."""


class CuttingServer(ABC):
    """Cuts every connection when it goes down; may come up again, on the same port.

    Attributes:
        port: The port that it listens on, once it was up.
        line_bytes: The longest line that it reads.
    """

    port = 0
    line_bytes = 64 * 1024
    _accepting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.down()

    async def up(self) -> None:
        """Accept connections."""
        bound = bind("127.0.0.1", self.port, key="port")
        self.port = bound.getsockname()[1]
        accepting = accept_each(bound, self._connection, log=_no_log)
        self._accepting = asyncio.get_running_loop().create_task(accepting)
        self._accepting.add_done_callback(lambda _: bound.close())

    async def down(self) -> None:
        """Cut every connection and accept no new ones; safe to call twice."""
        accepting, self._accepting = self._accepting, None
        if accepting is not None:
            accepting.cancel()
            await asyncio.wait([accepting])
            assert accepting.cancelled(), accepting.exception()

    async def _connection(self, accepted: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=accepted, limit=self.line_bytes)
        try:
            with suppress(OSError, EOFError):  # the client is gone
                await self._serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            await close_stream(writer)

    @abstractmethod
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it returns."""


# --- servers that send the same bytes to every client, and close ---------------------------------


@asynccontextmanager
async def saying(said: bytes, *, after: bytes = b"", resets: bool = False) -> AsyncGenerator[str]:
    """Serve these bytes, and close; yields an address without a slash at its end.

    Args:
        said: The bytes for each connection.
        after: Read up to this first; empty to read nothing.
        resets: Reset the connection instead of closing it.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if after:
            await reader.readuntil(after)
        writer.write(said)
        if resets:
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async with serving(serve) as port:
        yield f"http://127.0.0.1:{port}"


@asynccontextmanager
async def heard(said: bytes) -> AsyncGenerator[tuple[str, list[bytes]]]:
    """Serve these bytes; yields the address, and the heads of the requests."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(said)

    async with serving(serve) as port:
        yield f"http://127.0.0.1:{port}", heads
