"""How floors on aiohttp ask the model; a file of its own, so that the one on httpx loads no aiohttp."""

from collections.abc import AsyncGenerator, Mapping

import aiohttp

from tests.bench.floor_parts import CONNECTIONS, Ask


def open_session() -> aiohttp.ClientSession:
    """Return the client of the model."""
    connector = aiohttp.TCPConnector(limit=CONNECTIONS + 1)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
    return aiohttp.ClientSession(connector=connector, timeout=timeout)


def asking(session: aiohttp.ClientSession, model: str) -> Ask:
    """Return what asks the model by aiohttp."""

    async def ask(body: Mapping[str, object]) -> AsyncGenerator[str]:
        async with session.post(f"{model}/chat/completions", json=body) as came:
            async for line in came.content:
                yield line.decode().rstrip("\n")

    return ask
