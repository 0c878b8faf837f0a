"""A milter as OpenDMARC is one: it takes out what others wrote under its name, and writes its own word.

Everybody here may send for the domain of their envelope's sender, so that SPF always passes, and DMARC
where the domain of From is the same. The protocol is Sendmail's (libmilter, version 6), of which
Postfix speaks what is here (MILTER_README, read 2026-11).
"""

import asyncio
import re
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from aiosmtplib import SMTP

from channels.email.emulator.servers import AUTHSERV_ID, Servers
from tests.fakes.tcp_server import serving

_ADDS, _CHANGES = 0x01, 0x10
_SKIPPED = 0x02 | 0x08 | 0x10 | 0x100 | 0x200  # HELO, RCPT, the body, unknown commands, DATA
_DOMAIN = re.compile(rb"@([A-Za-z0-9.-]+)")
_NAME = b"authentication-results"


@dataclass(slots=True)
class _Seen:
    """One mail on its way."""

    path: str = ""
    author: str = ""
    named: list[bytes] = field(default_factory=list[bytes])

    def verdict(self) -> "Packets":
        """Return what is to be done to the mail; later headers first, for their numbers move."""
        numbers = range(len(self.named), 0, -1)
        forged = [
            (b"m", struct.pack(">I", number) + b"Authentication-Results\0\0")
            for number in numbers
            if AUTHSERV_ID.encode() in self.named[number - 1].lower()
        ]
        says = "pass" if self.author == self.path else "fail"
        word = (
            f"{AUTHSERV_ID};\n\tspf=pass smtp.mailfrom={self.path};\n\t"
            f"dmarc={says} (p=reject) header.from={self.author}"
        )
        own = struct.pack(">I", 0) + b"Authentication-Results\0" + word.encode() + b"\0"
        return [*forged, (b"i", own)]


Packets = list[tuple[bytes, bytes]]


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    seen = _Seen()
    command = b""
    with suppress(asyncio.IncompleteReadError):
        while command != b"Q":
            (length,) = struct.unpack(">I", await reader.readexactly(4))
            packet = await reader.readexactly(length)
            command = packet[:1]
            for kind, more in _answers(seen, command, packet[1:]):
                writer.write(struct.pack(">I", 1 + len(more)) + kind + more)


def _answers(seen: _Seen, command: bytes, said: bytes) -> Packets:
    match command:
        case b"O":
            return [(b"O", struct.pack(">III", 6, _ADDS | _CHANGES, _SKIPPED))]
        case b"M":
            seen.path, seen.author, seen.named = _domain(said), "", []
        case b"L":
            name, value, _ = said.split(b"\0", 2)
            if name.lower() == _NAME:
                seen.named.append(value)
            if name.lower() == b"from":
                seen.author = _domain(value)
        case b"E":
            return [*seen.verdict(), (b"a", b"")]
        case b"D" | b"A" | b"Q":
            return []
        case _:
            pass
    return [(b"c", b"")]


def _domain(said: bytes) -> str:
    found = _DOMAIN.search(said)
    return found[1].decode().lower() if found else ""


async def handed_over(mail: Servers, to: str, letter: bytes, *, sender: str) -> None:
    """Let the world outside hand a mail over, by SMTP and past the milter."""
    async with SMTP(hostname="127.0.0.1", port=mail.mx, start_tls=False) as client:
        await client.sendmail(sender, [to], letter)


@asynccontextmanager
async def milter(port: int) -> AsyncGenerator[None]:
    """Open it where postfix asks."""
    async with serving(_serve, port):
        yield
