"""A relay between a client and a mail server of this machine, which a test cuts at an exact moment.

Killing the server is not that exact. If TLS begins with the first byte, the relay terminates it with
the server's own certificate and reads the commands; otherwise it only counts bytes.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal

from channels.email.emulator.servers import Servers

MAX_BYTES = 65_536
A_MAIL = 1_200
"""Bytes: more than a client sends before it reads an answer, unless it sends a mail."""
Moment = Literal["unheard", "unanswered", "half answered", "silent"]


class Relay:
    """Relays bytes in both directions.

    Attributes:
        port: The port that it listens on.
        is_free: Set while no client is connected.
    """

    def __init__(self, to: int, mail: Servers | None) -> None:
        """Relay to a loopback port; by TLS if `mail` is given."""
        self._to = to
        self._tls = mail and ssl.create_default_context(cafile=mail.ca_file)
        self.port = 0
        self.is_free = asyncio.Event()
        self.is_free.set()
        self._connected = 0
        self._at: bytes | int | None = None
        self._moment: Moment = "unanswered"

    def cut(self, at: bytes | int, moment: Moment = "unanswered") -> None:
        """Cut one connection, once.

        Args:
            at: A command that contains this, or this many bytes before an answer.
            moment: Before the server gets the command, after it has carried it out, or within its
                answer; `silent` leaves the connection open without an answer.
        """
        self._at, self._moment = at, moment

    def _is_due(self, received: bytes) -> bool:
        at = self._at
        if at is None or (len(received) < at if isinstance(at, int) else at not in received):
            return False
        self._at = None
        return True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one connection, until it is cut or either side ends it."""
        self._connected += 1
        self.is_free.clear()
        try:
            await self._relay(reader, writer)
        finally:
            self._connected -= 1
            if not self._connected:
                self.is_free.set()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(
            "localhost", self._to, ssl=self._tls
        )
        received, is_due = b"", False

        async def forward() -> None:
            nonlocal received, is_due
            while data := await reader.read(MAX_BYTES):
                received += data
                is_due = is_due or self._is_due(received)
                if is_due and self._moment == "unheard":
                    return
                server_writer.write(data)

        async def back() -> None:
            nonlocal received
            while data := await server_reader.read(MAX_BYTES):
                received = b""
                if not is_due:
                    writer.write(data)
                elif self._moment != "silent":
                    writer.write(data[: len(data) // 2 * (self._moment == "half answered")])
                    return

        async def relay_one_way(direction: Callable[[], Awaitable[None]]) -> None:
            with suppress(OSError):
                await direction()
            writer.close()
            server_writer.close()

        async with asyncio.TaskGroup() as group:
            group.create_task(relay_one_way(forward))
            group.create_task(relay_one_way(back))


@asynccontextmanager
async def relayed(to: int, mail: Servers | None = None) -> AsyncGenerator[Relay]:
    """Relay to a port during the block, and until all clients have disconnected."""
    relay, tls = Relay(to, mail), None
    if mail is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(mail.home / "cert.pem", mail.home / "key.pem")
    async with await asyncio.start_server(relay.serve, "127.0.0.1", 0, ssl=tls) as server:
        relay.port = server.sockets[0].getsockname()[1]
        yield relay
        await relay.is_free.wait()
