"""A relay before dovecot, which cuts a connection in the middle of a command, or lets it fall silent.

Dovecot can be killed as well, but at no moment that a test names. The relay reads along, with
dovecot's own certificate.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from channels.email.emulator.servers import Servers

MOST_BYTES = 65_536
Moment = Literal["unheard", "unanswered", "half answered", "silent"]


@dataclass(kw_only=True)
class Relay:
    """What is cut next.

    Attributes:
        port: Where it stands.
        at: The command at which one connection is cut; empty for none, as after each cut.
        moment: Before dovecot hears of it, once it has done it, or within its answer; `silent` leaves it
            open, with nothing said.
    """

    mail: Servers
    port: int = 0
    at: bytes = b""
    moment: Moment = "unheard"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on, until it is cut or either side ends it."""
        trusted = ssl.create_default_context(cafile=self.mail.ca_file)
        answers, asks = await asyncio.open_connection("localhost", self.mail.imaps, ssl=trusted)
        is_due = asyncio.Event()

        async def ask() -> None:
            while line := await reader.readline():
                if self.at and self.at in line:
                    self.at = b""
                    is_due.set()
                if is_due.is_set() and self.moment == "unheard":
                    return
                asks.write(line)

        async def answer() -> None:
            while said := await answers.read(MOST_BYTES):
                if not is_due.is_set():
                    writer.write(said)
                elif self.moment != "silent":
                    writer.write(said[: len(said) // 2 * (self.moment == "half answered")])
                    return

        async def pass_on(one_way: Callable[[], Awaitable[None]]) -> None:
            with suppress(OSError):
                await one_way()
            writer.close()
            asks.close()

        async with asyncio.TaskGroup() as group:
            group.create_task(pass_on(ask))
            group.create_task(pass_on(answer))


@asynccontextmanager
async def relay(mail: Servers) -> AsyncGenerator[Relay]:
    """Open one; whoever connects has to close the connections before it ends."""
    found = Relay(mail=mail)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(mail.home / "cert.pem", mail.home / "key.pem")
    async with asyncio.TaskGroup() as group:

        def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            group.create_task(found.serve(reader, writer))

        async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
            found.port = server.sockets[0].getsockname()[1]
            yield found
