"""Servers on loopback that end with the last of their connections."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(
    serve: Serve, port: int = 0, *, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[int]:
    """Serve each connection, and wait for all of them at the end; yields the port.

    A client's end is heard of later than the client is done, and on a busy machine a test is over by then.
    asyncio's own server forgets who is connected (3.11), and leaves their tasks to nobody.
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


# --- servers that say the same bytes to whoever connects, and hang up -----------------------------


@asynccontextmanager
async def saying(said: bytes, *, after: bytes = b"", resets: bool = False) -> AsyncGenerator[str]:
    """Serve these bytes, and close; yields an address without a slash at its end.

    Args:
        said: Written to each connection.
        after: Read until this has come; empty for nothing is read.
        resets: Reset the connection in place of closing it.
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
    """A server that answers so, and the heads that it was sent."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(said)

    async with serving(serve) as port:
        yield f"http://127.0.0.1:{port}", heads
