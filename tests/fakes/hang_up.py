"""A server on loopback that says the same bytes to whoever connects, and hangs up."""

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.fakes.tcp_server import serving


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
