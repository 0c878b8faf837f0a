"""Speaks HTTP with httpx, to addresses that were judged: what a model fetches, and downloads.

The only file that knows this library. It connects to a given address under another name, and hands
over a body as it was packed; nothing here is asked so often that its slowness would matter.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from zeroclaw.host.http import (
    USER_AGENT,
    GuardedRequest,
    HttpAnswer,
    HttpConnectFailed,
    HttpCut,
    HttpFailed,
    HttpLimits,
    HttpPoolExhausted,
    HttpRequest,
    HttpTimedOut,
    reason_of,
    trust,
)

# Closing an unread answer only closes its socket; a peer that drags this out is left alone.
CLOSE_S = 5.0
WRITE_S = 30.0


@dataclass(slots=True, eq=False, kw_only=True)
class _Pool:
    """One client of the library and how many of our answers are open on it."""

    library: httpx.AsyncClient
    answers: int = 0
    retired: bool = False


class GuardedClient:
    """An `HttpClient` that takes `GuardedRequest`s as well."""

    def __init__(self, limits: HttpLimits, *, trusted: ssl.SSLContext | None = None) -> None:
        """Open nothing yet; `trusted` are the authorities, `trust` when None."""
        self._limits = limits
        self._trusted = trusted
        self._pool: _Pool | None = None

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncGenerator[HttpAnswer]:
        """Send a request; see `HttpClient.open`."""
        pool = self._pool = self._pool or _Pool(library=self._opened())
        pool.answers += 1
        try:
            response = await self._send(pool.library, request)
            is_raw = isinstance(request, GuardedRequest) and request.is_raw
            chunks = self._chunks(response, is_raw=is_raw)
            try:
                headers = {name.lower(): value for name, value in response.headers.items()}
                yield HttpAnswer(status=response.status_code, headers=headers, chunks=chunks)
            finally:
                with suppress(TimeoutError, HttpFailed):
                    async with asyncio.timeout(CLOSE_S):
                        await _close(response)
                        # httpx nests half a dozen generators and closes none of them: the garbage
                        # collector would, in tasks without an owner. On a closed connection they
                        # run to their end, over what had been received.
                        async for _ in chunks:
                            pass
        except HttpPoolExhausted:
            if pool.answers <= self._limits.connections:
                self._retire(pool)
            raise
        finally:
            # Cancelled twice, httpx loses the connection that it was closing for good (encode/httpx
            # #3782, reproduced with 0.28.1): its pool is one place smaller, the socket stays open.
            # So a pool that this may have happened to is closed as soon as it is not in use.
            task = asyncio.current_task()
            if task is not None and task.cancelling() > 1:
                self._retire(pool)
            pool.answers -= 1
            if pool.retired and not pool.answers:
                with suppress(TimeoutError):
                    async with asyncio.timeout(CLOSE_S):
                        await pool.library.aclose()

    async def aclose(self) -> None:
        """Close every connection; safe twice, and the client may be used again."""
        pool = self._pool
        if pool is not None:
            self._retire(pool)
            await pool.library.aclose()

    def _retire(self, pool: _Pool) -> None:
        """Give a pool no new requests."""
        pool.retired = True
        if self._pool is pool:
            self._pool = None

    def _opened(self) -> httpx.AsyncClient:
        limits = self._limits
        return httpx.AsyncClient(
            verify=self._trusted or trust(),
            headers={"User-Agent": USER_AGENT},
            # A jar that takes nothing: the library would bring back what another answer had set.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(
                connect=limits.connect_s, read=limits.read_s, write=WRITE_S, pool=limits.pool_s
            ),
            limits=httpx.Limits(
                max_connections=limits.connections,
                max_keepalive_connections=None if limits.keep_alive_s else 0,
                keepalive_expiry=limits.keep_alive_s,
            ),
        )

    async def _send(self, client: httpx.AsyncClient, request: HttpRequest) -> httpx.Response:
        try:
            url, headers, extensions = httpx.URL(request.url), dict(request.headers), {}
            if isinstance(request, GuardedRequest) and request.address:
                headers = {"Host": url.netloc.decode("ascii"), **headers}
                extensions = {"sni_hostname": url.host}
                url = url.copy_with(host=request.address)
            built = client.build_request(
                request.method,
                url,
                headers=headers,
                content=request.body or None,
                extensions=extensions,
            )
            return await client.send(built, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._ours(error, before_answer=True) from error

    async def _chunks(self, response: httpx.Response, *, is_raw: bool) -> AsyncGenerator[bytes]:
        try:
            async for chunk in response.aiter_raw() if is_raw else response.aiter_bytes():
                yield chunk
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise self._ours(error, before_answer=False) from error

    def _ours(self, error: Exception, *, before_answer: bool) -> HttpFailed:
        """Translate an error of the library; its texts stay out of ours, they may hold anything."""
        match error:
            case httpx.PoolTimeout():
                message = f"all {self._limits.connections} connections are in use"
                return HttpPoolExhausted(message)
            case httpx.ConnectTimeout():
                return HttpConnectFailed(f"no connection within {self._limits.connect_s:g} s")
            case httpx.ConnectError():
                return HttpConnectFailed(reason_of(error))
            case httpx.TimeoutException():
                return HttpTimedOut(f"nothing came for {self._limits.read_s:g} s")
            case httpx.NetworkError() | httpx.RemoteProtocolError():
                return HttpCut("the connection was closed too early", before_answer=before_answer)
            case _:
                return HttpFailed(f"the request failed ({type(error).__name__})")


async def _close(response: httpx.Response) -> None:
    try:
        await response.aclose()
    finally:
        # The library leaves an answer and its stream in a circle, and with them the whole request
        # until the garbage collector comes by.
        response.stream = httpx.ByteStream(b"")
