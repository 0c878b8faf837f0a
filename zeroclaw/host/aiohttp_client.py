"""The HTTP client on aiohttp, which takes a fifth of httpx's CPU time per request.

No other file of the daemon imports aiohttp. Its errors show whether a request may have arrived:
`ClientConnectorError` means that it was not sent; after `ServerDisconnectedError`,
`SocketTimeoutError` and `ClientPayloadError` it may have (aiohttp 3.14, tried on the wire 2026-11).
"""

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from zeroclaw.errors import NoWayOut
from zeroclaw.host.http import (
    HttpAnswer,
    HttpConnectFailed,
    HttpCut,
    HttpFailed,
    HttpLimits,
    HttpPoolExhausted,
    HttpRequest,
    HttpTimedOut,
    headers_of,
    reason_of,
)
from zeroclaw.network import Network

# For the status line and each header: some Content-Security-Policy headers exceed the default of 8
# KiB.
_LINE_BYTES = 64 * 1024
_PARSED_BYTES = 16 * 1024
MAX_HEADS = 32
"""Heads of answers in one read: before its answer, an honest server sends a few interim ones (1xx)."""


class _Protocol(ResponseHandler):
    """The library's protocol, with a fifth less work for each piece of an answer.

    The library resumes the connection and its parser after each piece, mostly without need (aiohttp
    3.14.5). If a later version lacks the attribute, it always resumes.
    """

    def data_received(self, data: bytes) -> None:
        """Parse a piece of what one read got at a time; end the connection if it is all heads.

        A read can get ten thousand of them, for which every other connection would wait.
        """
        at = 0
        while True:
            end = len(data) if getattr(self, "_reading_paused", True) else at + _PARSED_BYTES
            super().data_received(data[at:end])
            if len(self) > MAX_HEADS:
                self.close()
            if end >= len(data) or self.transport is None or self.transport.is_closing():
                return
            at = end

    def resume_reading(self, *args: bool, **options: bool) -> None:
        if getattr(self, "_reading_paused", True):
            super().resume_reading(*args, **options)


class _Connector(aiohttp.TCPConnector):
    def __init__(self, keep_alive_s: float | None) -> None:
        super().__init__(limit=0, force_close=not keep_alive_s, keepalive_timeout=keep_alive_s)  # pyright: ignore[reportUnknownMemberType]  of the library
        self._factory = partial[ResponseHandler](_Protocol, loop=asyncio.get_running_loop())


HEAD_READS = 5
"""Times `read_s` to send a request and get the head of its answer, however often data comes."""


class AiohttpClient:
    """An `HttpClient`; create it on the event loop."""

    def __init__(self, limits: HttpLimits, *, trusted: ssl.SSLContext | None = None) -> None:
        """Open nothing yet; `trusted` replaces the environment's certificate authorities."""
        self._limits = limits
        self._network = Network(os.environ, asyncio.to_thread, trusted)
        # Counted here: the library reports neither that the pool was full, nor for how long.
        self._free = asyncio.Semaphore(limits.connections)
        self._session = aiohttp.ClientSession(
            connector=_Connector(limits.keep_alive_s or None),
            timeout=aiohttp.ClientTimeout(
                total=None, connect=limits.connect_s, sock_read=limits.read_s
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "zeroclaw"},
            max_line_size=_LINE_BYTES,
            max_field_size=_LINE_BYTES,
        )

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncGenerator[HttpAnswer]:
        """Send a request; see `HttpClient.open`."""
        await self._acquire()
        try:
            response = await self._send(request)
            chunks = self._chunks(response.content)
            try:
                yield HttpAnswer(
                    status=response.status,
                    headers=headers_of(response.raw_headers),
                    chunks=chunks,
                    unread=lambda: _unread(response.connection),
                    is_received=response.content.is_eof,
                )
            finally:
                await chunks.aclose()
                response.close()  # closes the connection, unless the whole answer was read
        finally:
            self._free.release()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def _acquire(self) -> None:
        try:
            async with asyncio.timeout(self._limits.pool_s):
                await self._free.acquire()
        except TimeoutError as error:
            message = f"all {self._limits.connections} connections are in use"
            raise HttpPoolExhausted(message) from error

    async def _send(self, request: HttpRequest) -> aiohttp.ClientResponse:
        try:
            url, name = URL(request.url, encoded=bool(request.address)), None
            headers, proxy = request.headers, None
            if not request.address:
                proxy = self._network.proxy_for(request.url)
            else:
                name = url.raw_host
                headers = {"Host": url.raw_authority, **headers}
                url = url.with_host(request.address)
            async with asyncio.timeout(HEAD_READS * self._limits.read_s):
                return await self._session.request(
                    request.method,
                    url,
                    headers=headers,
                    data=request.body or None,
                    proxy=proxy,
                    ssl=await self._network.trusted_for(request.url, proxy),
                    allow_redirects=False,
                    auto_decompress=not request.is_raw,
                    server_hostname=name,
                )
        except NoWayOut as error:
            raise HttpConnectFailed(str(error)) from error
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise self._translated(error) from error

    async def _chunks(self, body: aiohttp.StreamReader) -> AsyncGenerator[bytes]:
        """Yield the body as it arrives."""
        try:
            async for chunk in body.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> HttpFailed:
        """Translate an error of the library, without its text, which may contain anything."""
        match error:
            case aiohttp.ConnectionTimeoutError():
                return HttpConnectFailed(f"no connection within {self._limits.connect_s:g} s")
            case aiohttp.ClientConnectorCertificateError():
                return HttpConnectFailed(reason_of(error.certificate_error))
            case aiohttp.ClientProxyConnectionError():
                return HttpConnectFailed(f"the proxy: {reason_of(error.os_error)}")
            case aiohttp.ClientHttpProxyError():
                return HttpConnectFailed(f"the proxy answered {error.status}")
            case aiohttp.ClientConnectorError():
                return HttpConnectFailed(reason_of(error.os_error))
            case aiohttp.ServerTimeoutError():
                return HttpTimedOut(f"nothing came for {self._limits.read_s:g} s")
            case TimeoutError():
                return HttpTimedOut(f"no answer within {HEAD_READS * self._limits.read_s:g} s")
            case (
                aiohttp.ClientConnectionError()
                | aiohttp.ClientPayloadError()
                | aiohttp.ClientResponseError()
            ):
                return HttpCut("the connection was closed too early")
            case _:
                return HttpFailed(f"the request failed ({type(error).__name__})")


@contextmanager
def _unread(connection: aiohttp.connector.Connection | None) -> Generator[None]:
    """Read nothing from a connection; see `HttpAnswer.unread`.

    The library itself pauses a transport only while it has buffered more than its limit, and
    between two chunks it has buffered nothing.
    """
    transport = None if connection is None else connection.transport
    if transport is None:  # the whole answer was received, or it is cut
        yield
        return
    transport.pause_reading()
    try:
        yield
    finally:
        transport.resume_reading()
