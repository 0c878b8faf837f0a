"""Speaks HTTP: one request out, a status, headers and the body's bytes as they come.

aiohttp carries the bytes, for models, for what is fetched on a model's word, and for downloads; one
file knows it (`aiohttp_client.py`). Loading it takes up to a tenth of a second of processor time, so
that is done with the first request, in a thread.
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
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from typing import Protocol

from zeroclaw.errors import ZeroclawError
from zeroclaw.value import Value, field

USER_AGENT = "zeroclaw"
_HASHED = re.compile(r"[0-9a-f]{8}\.0")  # of a certificate's subject, as `openssl rehash` names it


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
        address: Connect to exactly this address and do not resolve the name; the URL is sent as it
            is written, and the Host header and the name in the certificate stay those of the URL.
            Only for clients that keep no connection alive: a kept one may be another host's, at
            the same address.
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
        headers: Names in lower case; the values of one that came several times are joined by commas.
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
        pool_s: For a free connection when all are in use.
        connections: At most this many at once.
        keep_alive_s: For how long idle ones are kept; 0 keeps none.
    """

    connect_s: float = 10.0
    read_s: float = 120.0
    pool_s: float = 10.0
    connections: int = 100
    keep_alive_s: float = 30.0


class HttpClient(Protocol):
    """What the rooms above need of an HTTP library; safe for concurrent requests.

    Sends no cookies and no credentials but those of a request's own headers. A request to an address
    asks no proxy; others go, and trust, as `Network` says.
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


async def read_whole(
    http: HttpClient, request: HttpRequest, *, most_bytes: int
) -> tuple[int, bytes]:
    """Return an answer's status and body; of one that is too long a little more than is allowed.

    Raises:
        HttpFailed: There was no answer, or only part of one.
    """
    body = bytearray()
    async with http.open(request) as answer:
        async for chunk in answer.chunks:
            body += chunk
            if len(body) > most_bytes:
                break
        return answer.status, bytes(body)


class _Lazy:
    """An `HttpClient` that loads its library when it is first used."""

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._client: HttpClient | None = None
        self._opening = asyncio.Lock()

    def open(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpAnswer]:
        client = self._client
        return self._first(request) if client is None else client.open(request)

    @asynccontextmanager
    async def _first(self, request: HttpRequest) -> AsyncGenerator[HttpAnswer]:
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
    """Import what carries the bytes; blocks."""
    from zeroclaw.host.aiohttp_client import AiohttpClient

    return AiohttpClient


def http_client(limits: HttpLimits | None = None) -> HttpClient:
    """Return a client that has loaded and opened nothing yet."""
    return _Lazy(limits or HttpLimits())


def headers_of(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers as text, each name once, in lower case (RFC 9110, 5.3; of cookies 6265, 4.2)."""
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
    """Let the contexts that a library makes as it is imported find authorities when they need them.

    aiohttp makes two, which read the system's file with all certificates: 50 ms and 1.3 MiB, for
    nothing here, where each connection is given its own. Without the file OpenSSL looks each up in
    its directory, which holds the same, where names in it are hashes; elsewhere, and where the
    environment says what to trust, nothing is changed. No other thread may read `SSL_CERT_FILE` or
    start a process with the whole environment meanwhile.
    """
    said = {paths.openssl_cafile_env, paths.openssl_capath_env} & set(environment)
    if said or not _is_hashed(paths.openssl_capath):
        yield
        return
    environment[paths.openssl_cafile_env] = os.devnull
    try:
        yield
    finally:
        del environment[paths.openssl_cafile_env]


def _is_hashed(directory: str) -> bool:
    with suppress(OSError), os.scandir(directory) as found:
        return any(_HASHED.fullmatch(one.name) for one in found)
    return False


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
            case OSError(strerror=str(text)) if text:  # of an unknown name
                reason = text.lower()
            case _:
                pass
        cause = cause.__cause__ or cause.__context__
    return reason
