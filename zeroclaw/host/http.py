"""Speak HTTP: one request out, a status, headers and the body's bytes as they come.

The only file that knows the library (httpx), so that the move to another one is made here. The
library is imported when the first connection is opened, in a thread, because loading it and the
certificates takes a tenth of a second of processor time.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Protocol, cast

from zeroclaw.errors import ZeroclawError
from zeroclaw.host.prefetch import Prefetch
from zeroclaw.value import Value, field

# Closing an unread answer only closes its socket; a peer that drags this out is left alone.
CLOSE_S = 5.0


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
        address: Connect to exactly this address, and ask nobody for the name again; the Host
            header and the name in the certificate stay those of the URL. Only for clients that
            keep nothing alive: a kept connection is known by its address alone.
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
            raises `HttpCut` or `HttpTimedOut` when it does not become whole.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class HttpLimits(Value):
    """Bounds of one client.

    Attributes:
        connect_s: Until a connection stands, TLS included.
        read_s: Between two reads; what watches a stream's progress is its caller's.
        write_s: Between two writes.
        pool_s: For a free connection when all are in use.
        connections: At most this many at once.
        kept_alive: At most this many idle ones.
        keep_alive_s: For how long they are kept.
        proxy: `http://host:port`; empty for none. The environment's proxies are ignored.
        authorities: A PEM file with the only certificates that are trusted; empty for those that
            come with the library.
    """

    connect_s: float = 10.0
    read_s: float = 120.0
    write_s: float = 30.0
    pool_s: float = 10.0
    connections: int = 100
    kept_alive: int = 20
    keep_alive_s: float = 30.0
    proxy: str = ""
    authorities: str = ""


class HttpClient(Protocol):
    """What the rooms above need of an HTTP library; safe for concurrent requests.

    Sends no cookies and no credentials but those of a request's own headers.
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


class _Response(Protocol):
    """What is used of the library's answer."""

    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def aiter_bytes(self) -> AsyncIterator[bytes]: ...

    def aiter_raw(self) -> AsyncIterator[bytes]: ...


class _Library(Protocol):
    """What is used of the library's client, with its errors made ours."""

    async def send(self, request: HttpRequest) -> _Response: ...

    def read(self, response: _Response, *, is_raw: bool) -> AsyncGenerator[bytes, None]: ...

    async def close(self, response: _Response) -> None: ...

    async def aclose(self) -> None: ...


@dataclass(slots=True, eq=False, kw_only=True)
class _Pool:
    """One client of the library and how many of our answers are open on it."""

    library: _Library
    answers: int = 0
    retired: bool = False


class HttpxClient:
    """`HttpClient` over httpx.

    Keeps connections alive; opens nothing until it is used.
    """

    def __init__(self, *, limits: HttpLimits | None = None) -> None:
        self._limits = limits or HttpLimits()
        self._pool: _Pool | None = None
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncGenerator[HttpAnswer, None]:
        """Send a request; see `HttpClient.open`."""
        pool = await self._current()
        pool.answers += 1
        try:
            response = await pool.library.send(request)
            pieces = pool.library.read(response, is_raw=request.is_raw)
            async with Prefetch(pieces, HttpFailed) as ahead:
                try:
                    headers = {name.lower(): value for name, value in response.headers.items()}
                    chunks = ahead.chunks()
                    yield HttpAnswer(status=response.status_code, headers=headers, chunks=chunks)
                finally:
                    with suppress(TimeoutError, HttpFailed):
                        async with asyncio.timeout(CLOSE_S):
                            await pool.library.close(response)
                            # httpx nests half a dozen generators and closes none of them: the
                            # garbage collector would, in tasks that nobody owns. On a closed
                            # connection they run to their end, over what had been received.
                            await ahead.dropped()
        except HttpPoolExhausted:
            if pool.answers <= self._limits.connections:
                self._retire(pool)
            raise
        finally:
            # Cancelled twice, httpx loses the connection that it was closing for good (encode/httpx
            # #3782, reproduced with 0.28.1): its pool is one place smaller, the socket stays open.
            # So a pool that this may have happened to is closed as soon as nobody uses it.
            task = asyncio.current_task()
            if task is not None and task.cancelling() > 1:
                self._retire(pool)
            pool.answers -= 1
            await self._close_when_unused(pool)

    async def aclose(self) -> None:
        """Close every connection; safe twice, and the client may be used again."""
        pool = self._pool
        if pool is not None:
            self._retire(pool)
            await pool.library.aclose()

    async def _current(self) -> _Pool:
        """Return the pool for a new request; the first caller makes it."""
        async with self._opening:
            if self._pool is None:
                self._pool = _Pool(library=await asyncio.to_thread(_open_httpx, self._limits))
            return self._pool

    def _retire(self, pool: _Pool) -> None:
        """Give a pool no new requests."""
        pool.retired = True
        if self._pool is pool:
            self._pool = None

    async def _close_when_unused(self, pool: _Pool) -> None:
        if pool.retired and pool.answers == 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await pool.library.aclose()


def _open_httpx(limits: HttpLimits) -> _Library:
    """Load the library and open a client of it; blocks for a tenth of a second."""
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx

    client = httpx.AsyncClient(
        verify=ssl.create_default_context(cafile=limits.authorities)
        if limits.authorities
        else _trust(),
        # A jar that takes nothing: the library would bring back what another answer had set.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        trust_env=False,
        follow_redirects=False,
        proxy=limits.proxy or None,
        timeout=httpx.Timeout(
            connect=limits.connect_s,
            read=limits.read_s,
            write=limits.write_s,
            pool=limits.pool_s,
        ),
        limits=httpx.Limits(
            max_connections=limits.connections,
            max_keepalive_connections=limits.kept_alive,
            keepalive_expiry=limits.keep_alive_s,
        ),
    )

    class Library:
        """httpx behind our names."""

        async def send(self, request: HttpRequest) -> _Response:
            try:
                url, headers, extensions = httpx.URL(request.url), dict(request.headers), {}
                if request.address:
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
                raise _ours(error, limits, before_answer=True) from error

        async def read(self, response: _Response, *, is_raw: bool) -> AsyncGenerator[bytes, None]:
            # Unpacking what is not packed costs two more generators a chunk.
            is_packed = "content-encoding" in response.headers
            try:
                async for chunk in (
                    response.aiter_bytes() if is_packed and not is_raw else response.aiter_raw()
                ):
                    yield chunk
            except (httpx.HTTPError, httpx.StreamError) as error:
                raise _ours(error, limits, before_answer=False) from error

        async def close(self, response: _Response) -> None:
            answer = cast("httpx.Response", response)
            try:
                await answer.aclose()
            finally:
                # The library leaves an answer and its stream in a circle, and with them the whole
                # request, a long conversation, until the garbage collector comes by.
                answer.stream = httpx.ByteStream(b"")

        async def aclose(self) -> None:
            await client.aclose()

    return Library()


@cache
def _trust() -> ssl.SSLContext:
    """Return what the library trusts; once, because all its certificates take 0.7 MiB each time."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)


def _ours(error: Exception, limits: HttpLimits, *, before_answer: bool) -> HttpFailed:
    """Translate an error of the library; its texts stay out of ours, they may hold anything."""
    import httpx

    match error:
        case httpx.PoolTimeout():
            return HttpPoolExhausted(f"all {limits.connections} connections are in use")
        case httpx.ConnectTimeout():
            return HttpConnectFailed(f"no connection within {limits.connect_s:g} s")
        case httpx.ConnectError() | httpx.ProxyError():
            return HttpConnectFailed(_reason(error))
        case httpx.TimeoutException():
            return HttpTimedOut(f"nothing came for {limits.read_s:g} s")
        case httpx.NetworkError() | httpx.RemoteProtocolError():
            return HttpCut("the connection was closed too early", before_answer=before_answer)
        case _:
            return HttpFailed(f"the request failed ({type(error).__name__})")


def _reason(error: BaseException) -> str:
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
