"""A milter like OpenDMARC: it removes forged verdicts under its name, and adds its own.

Every sender may send for the domain of their envelope, so SPF always passes, and DMARC passes if the
domain of From is the same. The protocol is the part of Sendmail's (libmilter, version 6) that Postfix
speaks (MILTER_README, read 2026-11).
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
class _Mail:
    """A mail in transit: the domains of its envelope and of From, and its verdicts so far."""

    envelope: str = ""
    author: str = ""
    verdicts: list[bytes] = field(default_factory=list[bytes])

    def changes(self) -> "Packets":
        """Return the changes to the mail; later headers first, because removals renumber them."""
        numbers = range(len(self.verdicts), 0, -1)
        forged = [
            (b"m", struct.pack(">I", number) + b"Authentication-Results\0\0")
            for number in numbers
            if AUTHSERV_ID.encode() in self.verdicts[number - 1].lower()
        ]
        result = "pass" if self.author == self.envelope else "fail"
        verdict = (
            f"{AUTHSERV_ID};\n\tspf=pass smtp.mailfrom={self.envelope};\n\t"
            f"dmarc={result} (p=reject) header.from={self.author}"
        )
        own = struct.pack(">I", 0) + b"Authentication-Results\0" + verdict.encode() + b"\0"
        return [*forged, (b"i", own)]


Packets = list[tuple[bytes, bytes]]


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    mail = _Mail()
    command = b""
    with suppress(asyncio.IncompleteReadError):
        while command != b"Q":
            (length,) = struct.unpack(">I", await reader.readexactly(4))
            packet = await reader.readexactly(length)
            command = packet[:1]
            for kind, body in _answers(mail, command, packet[1:]):
                writer.write(struct.pack(">I", 1 + len(body)) + kind + body)


def _answers(mail: _Mail, command: bytes, data: bytes) -> Packets:
    match command:
        case b"O":
            return [(b"O", struct.pack(">III", 6, _ADDS | _CHANGES, _SKIPPED))]
        case b"M":
            mail.envelope, mail.author, mail.verdicts = _domain(data), "", []
        case b"L":
            name, value, _ = data.split(b"\0", 2)
            if name.lower() == _NAME:
                mail.verdicts.append(value)
            if name.lower() == b"from":
                mail.author = _domain(value)
        case b"E":
            return [*mail.changes(), (b"a", b"")]
        case b"D" | b"A" | b"Q":
            return []
        case _:
            pass
    return [(b"c", b"")]


def _domain(data: bytes) -> str:
    match = _DOMAIN.search(data)
    return match[1].decode().lower() if match else ""


async def deliver_from_outside(mail: Servers, to: str, letter: bytes, *, sender: str) -> None:
    """Deliver a mail from another domain, by SMTP and past the milter."""
    async with SMTP(hostname="127.0.0.1", port=mail.mx, start_tls=False) as client:
        await client.sendmail(sender, [to], letter)


@asynccontextmanager
async def milter(port: int) -> AsyncGenerator[None]:
    """Open the milter on the port that postfix asks."""
    async with serving(_serve, port):
        yield
