"""The HTTP client: sends one request; returns the status, the headers and the body as it arrives.

It carries model requests, fetched pages and downloads. aiohttp does the work; only
`aiohttp_client.py` knows it. Importing it takes up to 0.1 s of CPU time, so the first request
imports it, in a thread.
"""

import asyncio
import os
import re
import ssl
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Mapping,
    MutableMapping,
)
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from typing import Protocol

from zeroclaw.errors import ZeroclawError
from zeroclaw.value import Value, field

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HASHED = re.compile(r"[0-9a-f]{8}\.0")  # subject hashes, as `openssl rehash` names them


class HttpFailed(ZeroclawError):
    """Raised when there was no answer, or only part of one."""


class HttpConnectFailed(HttpFailed):
    """Raised when no connection could be made; the request was not sent."""


class HttpTimedOut(HttpFailed):
    """Raised when waiting for the peer, or for a free connection, timed out."""


class HttpPoolExhausted(HttpTimedOut):
    """Raised when none of the client's connections became free in time; nothing was sent."""


class HttpCut(HttpFailed):
    """Raised when a connection ended too early.

    If no answer had begun, the peer has mostly just closed a kept-alive connection (seen with
    llama.cpp's server, 2026-11), so a request without side effects should be retried once, at once.
    """


class HttpRequest(Value):
    """One request; header names are sent as written.

    Attributes:
        address: Connect to exactly this address, without resolving the name. The URL is sent as
            written; the Host header and the certificate's name stay those of the URL. Only for
            clients that keep no connection alive: a kept connection may belong to another host at
            the same address.
        is_raw: Whether to return the body without undoing its Content-Encoding.
    """

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    address: str = ""
    is_raw: bool = False


class HttpAnswer(Value):
    """An answer whose body is still arriving.

    Attributes:
        status: As sent; redirects are not followed.
        headers: Names in lower case; repeated headers are joined by commas.
        chunks: The body without transfer encoding, in order; iterate once. Ends when the body is
            complete; raises `HttpCut` or `HttpTimedOut` if it does not complete.
        unread: While this block runs, the system buffers incoming data, so that one read gets all
            of it; await no chunk within. A cut is noticed only after the data before it.
        is_received: Whether the whole body has arrived; `chunks` may not have yielded all of it.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    unread: Callable[[], AbstractContextManager[None]] = nullcontext
    is_received: Callable[[], bool] = lambda: False


class HttpLimits(Value):
    """Limits of one client.

    Attributes:
        connect_s: Time to connect, TLS included.
        read_s: Time between two reads; the caller watches a stream's progress. Until the head of the
            answer is there, all reads together may take five times as long.
        pool_s: Time to wait for a free connection.
        connections: Maximum number of concurrent connections.
        keep_alive_s: How long idle connections are kept; 0 keeps none.
    """

    connect_s: float = 10.0
    read_s: float = 120.0
    pool_s: float = 10.0
    connections: int = 100
    keep_alive_s: float = 30.0


class HttpClient(Protocol):
    """The part of an HTTP library that other rooms use; safe for concurrent requests.

    Sends no cookies, and no credentials but those in a request's headers. A request with an
    `address` uses no proxy; `Network` chooses proxy and trusted certificates of all others.
    """

    def open(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpAnswer]:
        """Send a request; leaving the block frees the connection.

        Raises:
            HttpConnectFailed: Nothing was sent.
            HttpTimedOut: No answer, or no free connection, in time.
            HttpCut: The connection ended before the answer began.
            HttpFailed: The request is malformed.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection; safe twice, and the client can be used again."""
        ...


async def read_answer(
    http: HttpClient, request: HttpRequest, *, max_bytes: int
) -> tuple[int, bytes]:
    """Return status and body of an answer; a body over the limit is cut a little beyond it.

    Raises:
        HttpFailed: There was no answer, or only part of one.
    """
    body = bytearray()
    async with http.open(request) as answer:
        async for chunk in answer.chunks:
            body += chunk
            if len(body) > max_bytes:
                break
        return answer.status, bytes(body)


class _Lazy:
    """An `HttpClient` that imports its library on first use."""

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._client: HttpClient | None = None
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncGenerator[HttpAnswer]:
        async with self._opening:
            if (client := self._client) is None:
                client = self._client = (await asyncio.to_thread(load_library))(self._limits)
        async with client.open(request) as answer:
            yield answer

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def load_library() -> Callable[[HttpLimits], HttpClient]:
    """Import the HTTP library; blocks."""
    from zeroclaw.host.aiohttp_client import AiohttpClient

    return AiohttpClient


def http_client(limits: HttpLimits | None = None) -> HttpClient:
    """Return a client that imports and opens nothing until its first request."""
    return _Lazy(limits or HttpLimits())


def headers_of(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers as text by lower-case name, joined if repeated (RFC 9110, 5.3; cookies: 6265, 4.2)."""
    found: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        joint = "; " if key == "cookie" else ", "
        found[key] = f"{found[key]}{joint}{text}" if key in found else text
    return found


@contextmanager
def authorities_by_directory(
    environment: MutableMapping[str, str], paths: ssl.DefaultVerifyPaths
) -> Generator[None]:
    """Keep the SSL contexts that a library creates on import from loading all certificates.

    aiohttp creates two, which read the system's bundle: 50 ms and 1.3 MiB for nothing, because
    `AiohttpClient` passes a context with each connection. Without the bundle, OpenSSL looks
    certificates up in its directory, which has the same ones under hashed names. If the directory is
    not hashed, or the environment sets the trusted certificates, nothing is changed. Meanwhile no
    other thread may read `SSL_CERT_FILE`, or start a process with the whole environment.
    """
    configured = {paths.openssl_cafile_env, paths.openssl_capath_env} & set(environment)
    if configured or not _is_hashed(paths.openssl_capath):
        yield
        return
    environment[paths.openssl_cafile_env] = os.devnull
    try:
        yield
    finally:
        del environment[paths.openssl_cafile_env]


def _is_hashed(directory: str) -> bool:
    with suppress(OSError), os.scandir(directory) as entries:
        return any(_HASHED.fullmatch(entry.name) for entry in entries)
    return False


def reason_of(error: BaseException) -> str:
    """Return why no connection could be made, from the innermost cause that has a reason."""
    cause: BaseException | None = error
    reason = "none of its addresses can be reached"  # each failed in its own way
    while cause is not None:
        match cause:
            case ssl.SSLCertVerificationError():
                reason = f"its certificate is not trusted: {cause.verify_message}"
            case ssl.SSLError():
                reason = f"it does not speak TLS: {(cause.reason or '').lower().replace('_', ' ')}"
            case OSError(errno=int(number)) if number > 0:
                reason = os.strerror(number).lower()  # asyncio's own text is about its calls
            case OSError(strerror=str(text)) if text:  # as for an unknown name
                reason = text.lower()
            case _:
                pass
        cause = cause.__cause__ or cause.__context__
    return reason
