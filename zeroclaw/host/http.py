"""Speaks HTTP: one request out, a status, headers and the body's bytes as they come.

The library that carries the bytes is known to `aiohttp_client.py` alone, and loaded with the first
request. That takes up to a tenth of a second of processor time, so it is done in a thread.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from typing import Protocol

from zeroclaw.errors import ZeroclawError
from zeroclaw.value import Value, field

USER_AGENT = "zeroclaw"


class HttpFailed(ZeroclawError):
    """Raised when there was no answer, or only part of one."""


class HttpConnectFailed(HttpFailed):
    """Raised when no connection came about; the request was not sent."""


class HttpTimedOut(HttpFailed):
    """Raised when a peer, or a free connection, was waited for in vain."""


class HttpPoolExhausted(HttpTimedOut):
    """Raised when no connection of our own became free in time; the request was not sent."""


class HttpCut(HttpFailed):
    """Raised when a connection ended too early.

    Attributes:
        before_answer: Not even a status line had come. On a connection that was kept alive this
            is mostly a peer that had just closed it (seen with llama.cpp's server, 2026-11), so
            asking once more at once is right for requests without side effects.
    """

    def __init__(self, message: str, *, before_answer: bool) -> None:
        super().__init__(message)
        self.before_answer = before_answer


class HttpRequest(Value):
    """One request; header names are written as they should be sent.

    Attributes:
        address: Connect to exactly this address, and ask nobody for the name; the Host header and
            the name in the certificate stay those of the URL. Only for clients that keep no
            connection: another host may share that address. Empty to ask for the name.
        is_raw: The answer's body is wanted as it was sent, without its Content-Encoding undone.
    """

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    address: str = ""
    is_raw: bool = False


class HttpAnswer(Value):
    """An answer whose body is still coming.

    Attributes:
        status: As sent; redirects are not followed.
        headers: Names in lower case.
        chunks: The body without transfer encodings, in order, once. Ends when the body is whole;
            raises `HttpCut` or `HttpTimedOut` when it does not become whole, and what had come by
            then and was not read yet (128 KiB at most) is lost.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class HttpLimits(Value):
    """Bounds of one client.

    Attributes:
        connect_s: Until a connection stands, TLS included.
        read_s: Between two reads; what watches a stream's progress is its caller's.
        pool_s: For a free connection when all are in use.
        connections: At most this many at once.
        keep_alive_s: For how long idle ones are kept; with 0 none is.
    """

    connect_s: float = 10.0
    read_s: float = 120.0
    pool_s: float = 10.0
    connections: int = 100
    keep_alive_s: float = 30.0


class HttpClient(Protocol):
    """What the rooms above need of an HTTP library; safe for concurrent requests.

    Sends no cookies and no credentials but those of a request's own headers, asks no proxy of the
    environment, and trusts the authorities of `trust`.
    """

    def open(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpAnswer]:
        """Send a request; the answer's connection is freed when the block is left.

        Raises:
            HttpConnectFailed: Nothing was sent.
            HttpTimedOut: No answer, or no free connection, in time.
            HttpCut: The connection ended before the answer began.
            HttpFailed: The request could not be made of these parts.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection; safe twice, and the client may be used again."""
        ...


class _LazyClient:
    """The `HttpClient` of the library, which is loaded and opened for the first request."""

    def __init__(self, limits: HttpLimits, trusted: ssl.SSLContext | None) -> None:
        self._limits = limits
        self._trusted = trusted
        self._client: HttpClient | None = None
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncGenerator[HttpAnswer]:
        async with self._opening:
            if (client := self._client) is None:
                load = await asyncio.to_thread(_library)
                client = self._client = load(self._limits, self._trusted or trust())
        async with client.open(request) as answer:
            yield answer

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def http_client(
    limits: HttpLimits | None = None, trusted: ssl.SSLContext | None = None
) -> HttpClient:
    """Return a client; it trusts the authorities of `trust` unless others are given."""
    return _LazyClient(limits or HttpLimits(), trusted)


def _library() -> Callable[[HttpLimits, ssl.SSLContext], HttpClient]:
    """Load the library and the certificates; blocks."""
    from zeroclaw.host.aiohttp_client import AiohttpClient

    trust()
    return AiohttpClient


@cache
def trust() -> ssl.SSLContext:
    """Return who is trusted; once, because all the certificates take 0.7 MiB each time."""
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


def reason_of(error: BaseException) -> str:
    """Say why no connection came about, in the words of the innermost cause that has some."""
    cause: BaseException | None = error
    reason = "the connection was refused"
    while cause is not None:
        match cause:
            case ssl.SSLCertVerificationError():
                reason = f"its certificate is not trusted: {cause.verify_message}"
            case ssl.SSLError():
                reason = f"it does not speak TLS: {(cause.reason or '').lower().replace('_', ' ')}"
            case OSError(errno=int(number)) if number > 0:
                reason = os.strerror(number).lower()  # asyncio's own text is about its calls
            case OSError(strerror=str(text)) if text:  # of a name that nobody knows
                reason = text.lower()
            case _:
                pass
        cause = cause.__cause__ or cause.__context__
    return reason
