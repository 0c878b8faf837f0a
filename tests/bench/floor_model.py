"""How floors ask the model; each client is imported by the floor that uses it, and by no other."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from tests.bench.floor_parts import CONNECTIONS, Ask

if TYPE_CHECKING:
    import aiohttp


@asynccontextmanager
async def by_httpx(model: str) -> AsyncGenerator[Ask]:
    """Open httpx, which the SDKs of models use."""
    import httpx

    async def ask(body: Mapping[str, object]) -> AsyncGenerator[str]:
        async with client.stream("POST", f"{model}/chat/completions", json=body) as came:
            async for line in came.aiter_lines():
                yield line

    limits = httpx.Limits(max_connections=CONNECTIONS)
    async with httpx.AsyncClient(limits=limits, timeout=60) as client:
        yield ask


@asynccontextmanager
async def by_aiohttp(model: str) -> AsyncGenerator[Ask]:
    """Open aiohttp, which the daemon uses."""
    async with open_session() as session:
        yield asking(session, model)


CLIENTS: Mapping[str, Callable[[str], AbstractAsyncContextManager[Ask]]] = {
    "httpx": by_httpx,
    "aiohttp": by_aiohttp,
}


def open_session() -> "aiohttp.ClientSession":
    """Return aiohttp's client with as many connections as floors use."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=CONNECTIONS + 1)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
    return aiohttp.ClientSession(connector=connector, timeout=timeout)


def asking(session: "aiohttp.ClientSession", model: str) -> Ask:
    """Return what asks the model by aiohttp."""

    async def ask(body: Mapping[str, object]) -> AsyncGenerator[str]:
        async with session.post(f"{model}/chat/completions", json=body) as came:
            async for line in came.content:
                yield line.decode().rstrip("\n")

    return ask
