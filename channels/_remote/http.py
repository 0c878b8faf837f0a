"""HTTP with a platform: one connection pool, bounded answers, and errors by whether a call may have arrived."""

import asyncio
import json
import os
import ssl
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import aiohttp

from channels._remote.fields import Json, as_object, parse_json
from channels._remote.limits import FAILED, FIRST_FAILURE, NO_TIME, TOO_MANY, unavailable
from channels._remote.settings import is_safe
from zeroclaw import ChannelRejected, ChannelUnavailable, DeliveryUnknown, Network, NoWayOut, Value

CONNECT_S, READ_S = 10.0, 20.0
SLOWEST_BYTES_PER_S = 100_000
"""An upload that is slower than this counts as stuck."""
MAX_ANSWER_BYTES = 16 * 1024 * 1024
MAX_CONNECTIONS = 64
BROKEN: tuple[type[Exception], ...] = (aiohttp.ClientError, OSError, TimeoutError)
"""Errors that a broken connection raises."""
Websocket = aiohttp.ClientWebSocketResponse
Form = aiohttp.FormData
NOTHING: Mapping[str, str] = {}

_ENDS = frozenset(
    {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING}
    | {aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR}
)
_BEFORE_SENDING: tuple[type[Exception], ...] = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)


class Response(Value):
    """A response; the body may be cut off a little beyond the limit of the call."""

    status: int
    content: bytes
    headers: Mapping[str, str]


class Http:
    """One account's connections; safe to use concurrently.

    Attributes:
        name: The channel's name, for errors.
        closed: Set by `aclose`; no calls are made after that.
    """

    def __init__(
        self,
        name: str,
        platform: str,
        *,
        agent: str = "zeroclaw",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Open nothing yet; `platform` is for errors, `tls` replaces the default trust settings."""
        self.name = name
        self.closed = asyncio.Event()
        self._platform, self._agent = platform, agent
        self._network = Network(os.environ, asyncio.to_thread, tls)
        self._session: aiohttp.ClientSession | None = None

    @property
    def unreadable(self) -> str:
        """The message of the error to raise for an answer in an unknown form."""
        return f"`{self.name}`: an answer that can't be read"

    async def aclose(self) -> None:
        """Close every connection for good; safe to call twice."""
        self.closed.set()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        if self.closed.is_set():
            message = f"`{self.name}` is closed"
            raise ChannelUnavailable(message)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=MAX_CONNECTIONS),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self._agent},
                trace_configs=[_WITHOUT_REDIRECTS],
            )
        return self._session

    async def _route(self, url: str) -> tuple[str | None, ssl.SSLContext | bool]:
        """Return the proxy for a server, if any, and the TLS context to verify the server with.

        Raises:
            ChannelUnavailable: The proxy settings give no usable route.
        """
        try:
            proxy = self._network.proxy_for(url)
            return proxy, await self._network.trusted_for(url, proxy)
        except NoWayOut as error:
            message = f"`{self.name}`: {error}"
            raise ChannelUnavailable(message) from None

    async def call(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = NOTHING,
        data: Form | bytes | None = None,
        extra_s: float = 0.0,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> Response:
        """Make one request and read the answer, up to about `max_bytes` bytes.

        Args:
            method: The HTTP method.
            url: The full URL; never logged or put into errors, since it may contain a secret.
            headers: Kept out of logs and errors too.
            data: The body.
            extra_s: Seconds to wait for the answer in addition to `READ_S`.
            max_bytes: Stop reading the body at this size.

        Raises:
            ChannelUnavailable: The request did not arrive.
            DeliveryUnknown: It may have arrived.
        """
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_read=READ_S + extra_s)
        body = bytearray()
        proxy, trusted = await self._route(url)
        try:
            async with self._open_session().request(
                method,
                url,
                headers=headers,
                data=data,
                timeout=timeout,
                proxy=proxy,
                ssl=trusted,
                allow_redirects=False,
            ) as answer:
                async for piece in answer.content.iter_any():
                    body += piece
                    if len(body) >= max_bytes:
                        break
        except _BEFORE_SENDING as error:
            message = f"`{self.name}`: {self._platform} can't be reached: {_reason(error)}"
            raise ChannelUnavailable(message) from None
        except BROKEN as error:
            late = isinstance(error, TimeoutError)
            detail = " in time" if late else f": {_reason(error)}"
            message = f"`{self.name}`: {self._platform} gave no answer{detail}"
            raise DeliveryUnknown(message, late=late) from None
        return Response(status=answer.status, content=bytes(body), headers=answer.headers)

    async def download(
        self, url: str, *, max_bytes: int, headers: Mapping[str, str] = NOTHING
    ) -> bytes:
        """Download a file.

        Raises:
            ChannelRejected: It is larger than `max_bytes`, gone, or may not be read.
            ChannelUnavailable: It can't be read now.
        """
        if not is_safe(url):
            message = f"`{self.name}`: the file has no address"
            raise ChannelRejected(message)
        with repeatable():
            answer = await self.call("GET", url, headers=headers, max_bytes=max_bytes + 1)
        if answer.status >= FAILED or answer.status in {TOO_MANY, NO_TIME}:
            message = f"`{self.name}`: the file can't be read now ({answer.status})"
            raise unavailable(message, answer.headers.get("Retry-After"))
        if answer.status >= FIRST_FAILURE:
            message = f"`{self.name}`: the file is no longer there, or may not be read"
            raise ChannelRejected(message)
        if len(answer.content) > max_bytes:
            message = f"`{self.name}`: the file is larger than {max_bytes} bytes"
            raise ChannelRejected(message)
        return answer.content

    async def websocket(
        self, url: str, *, max_bytes: int, heartbeat_s: float | None = None, autoclose: bool = True
    ) -> Websocket:
        """Open a websocket.

        Args:
            url: The server's URL.
            max_bytes: Largest message accepted.
            heartbeat_s: Seconds between our pings, None to send none.
            autoclose: Answer the server's close frame automatically.

        Raises:
            ChannelUnavailable: The URL is not a websocket's, or would send a secret unencrypted to the
                internet, or the connection could not be established.
        """
        # `wss` relates to `ws` as `https` to `http`.
        if not (url.startswith("ws") and is_safe(url.replace("ws", "http", 1))):
            message = f"`{self.name}`: the server names no gateway"
            raise ChannelUnavailable(message)
        ends = aiohttp.ClientWSTimeout(ws_close=CONNECT_S)  # pyright: ignore[reportCallIssue]  of attrs
        proxy, trusted = await self._route(url)
        try:
            async with asyncio.timeout(2 * CONNECT_S):
                return await self._open_session().ws_connect(
                    url,
                    max_msg_size=max_bytes,
                    autoclose=autoclose,
                    heartbeat=heartbeat_s,
                    timeout=ends,
                    proxy=proxy,
                    ssl=trusted,
                )
        except BROKEN as error:
            message = f"`{self.name}`: the gateway can't be reached: {_reason(error)}"
            raise ChannelUnavailable(message) from None


class Socket:
    """One websocket connection that delivers events as JSON objects."""

    def __init__(self, socket: Websocket) -> None:
        """Use an open websocket."""
        self._socket = socket

    async def next(self) -> Json | None:
        """Return the next message, None when the connection has ended."""
        while True:
            frame = await self._socket.receive()
            if frame.type is aiohttp.WSMsgType.TEXT:
                return as_object(parse_json(str(frame.data).encode("utf-8", "replace")))
            if frame.type in _ENDS:
                return None

    async def send(self, message: Mapping[str, object]) -> bool:
        """Send a message; return False if the connection has ended."""
        try:
            await self._socket.send_str(json.dumps(message))
        except (aiohttp.ClientError, ConnectionError):
            return False
        return True

    async def aclose(self) -> None:
        """Close the connection."""
        await self._socket.close()


async def _refuse_redirect(_: object, __: object, hop: aiohttp.TraceRequestRedirectParams) -> None:
    """Fail a websocket that is redirected: a secret may be sent over it, and no option forbids that."""
    hop.response.close()
    raise aiohttp.WSServerHandshakeError(hop.response.request_info, (), status=hop.response.status)


_WITHOUT_REDIRECTS = aiohttp.TraceConfig()
_WITHOUT_REDIRECTS.on_request_redirect.append(_refuse_redirect)


@contextmanager
def repeatable() -> Generator[None]:
    """Report idempotent calls as safe to retry: turn `DeliveryUnknown` into `ChannelUnavailable`.

    Raises:
        ChannelUnavailable: The outcome of a call is unknown.
    """
    try:
        yield
    except DeliveryUnknown as error:
        raise ChannelUnavailable(str(error)) from error


def with_file(fields: Mapping[str, object], part: str, name: str, content: bytes) -> Form:
    """Return a form with the fields (strings unchanged, other values as JSON) and one file part.

    The file name is escaped as browsers do it: WHATWG HTML, "multipart form data", read 2026-11.
    The part has no specific type; Telegram goes by the name (tdlib, MessageContent.cpp, 2026-11).
    """
    form = Form(quote_fields=False)
    for key, value in fields.items():
        form.add_field(key, value if isinstance(value, str) else json.dumps(value))
    escaped = name.translate({ord("\r"): "%0D", ord("\n"): "%0A", ord('"'): "%22"})
    form.add_field(part, content, filename=escaped, content_type="application/octet-stream")
    return form


def _reason(error: Exception) -> str:
    """Return why a connection failed: the system's message if there is one, else the error's type."""
    match error:
        case TimeoutError():
            return "no answer in time"
        # TLS errors have numbers of their own, so they must come before `OSError`.
        case aiohttp.ClientConnectorCertificateError(
            certificate_error=ssl.SSLCertVerificationError(verify_message=text)
        ):
            return f"its certificate is not trusted: {text}"
        case aiohttp.ClientSSLError():
            return "it does not speak TLS"
        case aiohttp.ClientProxyConnectionError():
            return f"the proxy: {_reason(error.os_error)}"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answered {error.status}"
        case aiohttp.WSServerHandshakeError():
            return f"it answered {error.status}"
        case aiohttp.ClientResponseError():
            return "it does not speak HTTP"
        case OSError(errno=int(number), strerror=str(text)):
            # asyncio's text describes its own call; an unknown host name has an errno below 0
            return (os.strerror(number) if number > 0 else text).lower()
        case aiohttp.ClientConnectionError() | aiohttp.ClientPayloadError():
            # a connector's error without a number: each address failed in its own way
            is_unconnected = isinstance(error, aiohttp.ClientConnectorError)
            closed = "the connection was closed too early"
            return "none of its addresses can be reached" if is_unconnected else closed
        case _:
            return type(error).__name__
