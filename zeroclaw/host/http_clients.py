"""Opens the clients that speak HTTP, each with its library when the first request is made.

Loading one takes up to a tenth of a second of processor time, so it is done in a thread.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from zeroclaw.host.http import HttpAnswer, HttpClient, HttpLimits, HttpRequest, trust


class _Lazy:
    """An `HttpClient` that loads its library in a thread when it is first used."""

    def __init__(self, load: Callable[[], Callable[[], HttpClient]]) -> None:
        """Load nothing yet; what `load` returns opens the client, on the event loop."""
        self._load = load
        self._client: HttpClient | None = None
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncGenerator[HttpAnswer]:
        """Send a request; see `HttpClient.open`."""
        client = self._client
        if client is None:
            async with self._opening:
                client = self._client
                if client is None:
                    client = self._client = (await asyncio.to_thread(self._load))()
        async with client.open(request) as answer:
            yield answer

    async def aclose(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def http_client(limits: HttpLimits | None = None) -> HttpClient:
    """Return a client for endpoints that the operator chose."""

    def load() -> Callable[[], HttpClient]:
        from zeroclaw.host.aiohttp_client import AiohttpClient

        trust()
        return lambda: AiohttpClient(limits or HttpLimits())

    return _Lazy(load)


def guarded_client(limits: HttpLimits | None = None) -> HttpClient:
    """Return a client for addresses that a model or an answer names; takes `GuardedRequest`s."""

    def load() -> Callable[[], HttpClient]:
        from zeroclaw.host.guarded_client import GuardedClient

        trust()
        return lambda: GuardedClient(limits or HttpLimits())

    return _Lazy(load)
