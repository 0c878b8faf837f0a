"""A server on loopback that ends with the last of its connections."""

import asyncio
import ssl
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
