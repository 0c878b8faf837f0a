"""A line between a client and a server of this machine: it hands bytes on, until it is to lose an answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

MUCH_BYTES = 1_200
"""More than a client says before it hears an answer, unless it hands something over."""


class Relay:
    """Takes connections on a port of its own, and looks at nothing but how much is said.

    Attributes:
        port: Where it takes connections.
        is_free: Set while nobody is connected.
        loses: Cut the line in place of the next answer to much: what was said has arrived.
    """

    def __init__(self, to: int) -> None:
        """Hand on to a port of the loopback."""
        self._to = to
        self.port = 0
        self.is_free = asyncio.Event()
        self.is_free.set()
        self.loses = False
        self._connected = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hand on, both ways, until either side ends."""
        said = 0
        self._connected += 1
        self.is_free.clear()
        theirs, ours = await asyncio.open_connection("127.0.0.1", self._to)

        async def forth() -> None:
            nonlocal said
            with suppress(ConnectionError):
                while data := await reader.read(1 << 16):
                    said += len(data)
                    ours.write(data)
            ours.close()

        async def back() -> None:
            nonlocal said
            with suppress(ConnectionError):
                while data := await theirs.read(1 << 16):
                    if self.loses and said >= MUCH_BYTES:
                        self.loses = False
                        writer.transport.abort()
                        break
                    said = 0
                    writer.write(data)
            writer.close()

        async with asyncio.TaskGroup() as group:
            group.create_task(forth())
            group.create_task(back())
        self._connected -= 1
        if not self._connected:
            self.is_free.set()


@asynccontextmanager
async def relayed(to: int) -> AsyncGenerator[Relay]:
    """Relay to a port while the block runs, and until all who are connected have gone."""
    relay = Relay(to)
    async with await asyncio.start_server(relay.serve, "127.0.0.1", 0) as server:
        relay.port = server.sockets[0].getsockname()[1]
        yield relay
        await relay.is_free.wait()
