"""A line between a client and a mail server of this machine, which is cut at a moment that a test names.

A server can be killed as well, but at no such moment. Where TLS begins with the first byte the line
ends it, with the server's own certificate, and reads along; elsewhere it sees how much is said.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal

from channels.email.emulator.servers import Servers

MAX_BYTES = 65_536
A_MAIL = 1_200
"""Bytes: more than a client says before it hears an answer, unless it hands a mail over."""
Moment = Literal["unheard", "unanswered", "half answered", "silent"]


class Relay:
    """Hands bytes on, both ways.

    Attributes:
        port: Where it takes connections.
        is_free: Set while nobody is connected.
    """

    def __init__(self, to: int, mail: Servers | None) -> None:
        """Hand on to a port of the loopback; by TLS where it is told of whom."""
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
            at: Where a command is said that holds this, or so many bytes before an answer.
            moment: Before the server hears of it, once it has done it, or within its answer; `silent`
                leaves the connection open, with nothing said.
        """
        self._at, self._moment = at, moment

    def _is_due(self, said: bytes) -> bool:
        at = self._at
        if at is None or (len(said) < at if isinstance(at, int) else at not in said):
            return False
        self._at = None
        return True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on, until it is cut or either side ends it."""
        self._connected += 1
        self.is_free.clear()
        try:
            await self._passed_on(reader, writer)
        finally:
            self._connected -= 1
            if not self._connected:
                self.is_free.set()

    async def _passed_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("localhost", self._to, ssl=self._tls)
        said, is_due = b"", False

        async def ask() -> None:
            nonlocal said, is_due
            while data := await reader.read(MAX_BYTES):
                said += data
                is_due = is_due or self._is_due(said)
                if is_due and self._moment == "unheard":
                    return
                ours.write(data)

        async def answer() -> None:
            nonlocal said
            while data := await theirs.read(MAX_BYTES):
                said = b""
                if not is_due:
                    writer.write(data)
                elif self._moment != "silent":
                    writer.write(data[: len(data) // 2 * (self._moment == "half answered")])
                    return

        async def pass_on(one_way: Callable[[], Awaitable[None]]) -> None:
            with suppress(OSError):
                await one_way()
            writer.close()
            ours.close()

        async with asyncio.TaskGroup() as group:
            group.create_task(pass_on(ask))
            group.create_task(pass_on(answer))


@asynccontextmanager
async def relayed(to: int, mail: Servers | None = None) -> AsyncGenerator[Relay]:
    """Relay to a port while the block runs, and until all who are connected have gone."""
    relay, tls = Relay(to, mail), None
    if mail is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(mail.home / "cert.pem", mail.home / "key.pem")
    async with await asyncio.start_server(relay.serve, "127.0.0.1", 0, ssl=tls) as server:
        relay.port = server.sockets[0].getsockname()[1]
        yield relay
        await relay.is_free.wait()
