"""How floors ask the model; each client is imported by the floor that uses it, and by no other."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.bench.floor_parts import CONNECTIONS, Ask


@asynccontextmanager
async def by_httpx(model: str) -> AsyncGenerator[Ask]:
    """Open httpx, which the SDKs of models use."""
    import httpx

    async def ask(body: Mapping[str, object]) -> AsyncGenerator[str]:
        async with client.stream("POST", f"{model}/chat/completions", json=body) as response:
            async for line in response.aiter_lines():
                yield line

    limits = httpx.Limits(max_connections=CONNECTIONS)
    async with httpx.AsyncClient(limits=limits, timeout=60) as client:
        yield ask


@asynccontextmanager
async def by_aiohttp(model: str) -> AsyncGenerator[Ask]:
    """Open aiohttp, which the daemon uses."""
    import aiohttp

    async def ask(body: Mapping[str, object]) -> AsyncGenerator[str]:
        async with client.post(f"{model}/chat/completions", json=body) as response:
            async for line in response.content:
                yield line.decode().rstrip("\n")

    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as client:
        yield ask


CLIENTS: Mapping[str, Callable[[str], AbstractAsyncContextManager[Ask]]] = {
    "httpx": by_httpx,
    "aiohttp": by_aiohttp,
}
