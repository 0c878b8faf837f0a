"""The library's connection, with two of its habits mended: it logs bodies, and reads without end.

What it can't read it writes into the log, whole, where other people's messages may stand in it; and
it takes any JSON for an answer of the Bot API, so that an odd one breaks its caller.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from urllib.request import getproxies, proxy_bypass

import aiohttp
from telegram.error import NetworkError, TelegramError, TimedOut
from telegram.request import BaseRequest, RequestData
from yarl import URL

from channels._remote.fields import Json, as_object, inner, number, parsed, text
from channels._remote.http import form_name
from channels._remote.limits import TOO_MANY, wait_s
from channels._remote.servers import trust


class NotSent(NetworkError):
    """Raised when no connection came about, or may come about; nothing of the call was sent."""


class Connection(BaseRequest):
    """One pool of connections to a Bot API server, with aiohttp.

    The library's own request class is httpx's, which takes twice the processor time of all else that
    a message costs.
    """

    def __init__(self, *, most: int, connect_s: float, read_s: float) -> None:
        """Open nothing yet.

        Args:
            most: Connections at once.
            connect_s: Until one is free and stands.
            read_s: Between two reads; a call may say otherwise.
        """
        self._most, self._connect_s, self._read_s = most, connect_s, read_s
        self._trusted = trust()  # here, so that no call has to wait while they are read
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False
        self._proxy_headers: dict[str, str] = {}

    @property
    def read_timeout(self) -> float:
        """Seconds between two reads."""
        return self._read_s

    async def initialize(self) -> None:
        """Do nothing; the first call opens a connection."""

    async def shutdown(self) -> None:
        """Close every connection, for good; safe twice."""
        self._is_closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self, url: str) -> aiohttp.ClientSession:
        """Return the session; every call of a connection goes to one server.

        Raises:
            NotSent: All was closed, and nobody would close what is opened now.
        """
        if self._is_closed:
            why = "closed"
            raise NotSent(why)
        if self._session is None:
            server = URL(url)
            proxy, self._proxy_headers = _proxy(server)
            # To one that opens a tunnel they are said before, to one that passes calls on in them.
            passed_on = {} if server.scheme == "https" else self._proxy_headers
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._most, ssl=self._trusted),
                cookie_jar=aiohttp.DummyCookieJar(),
                # Packed, a small body could unpack to any size at once.
                headers={
                    "User-Agent": self.USER_AGENT,
                    "Accept-Encoding": "identity",
                    **passed_on,
                },
                auto_decompress=False,
                # Not `trust_env`: the library would look for both anew, in a thread, at each call.
                proxy=proxy,
            )
        return self._session

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, object]:
        """Read an answer; what is said of an odd one holds nothing of it.

        Raises:
            TelegramError: It is none of a Bot API server.
        """
        found = as_object(parsed(payload))
        if "result" not in found and found.get("ok") is not False:
            message = "invalid server response"
            raise TelegramError(message)
        return {
            **found,
            "parameters": _parameters(found),
            "description": text(found, "description"),
        }

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: object = None,
        *_: object,
        **__: object,
    ) -> tuple[int, bytes]:
        """Make one call; of the time-outs only `read_timeout` counts. See `BaseRequest.do_request`.

        Raises:
            NotSent: Nothing was sent.
            TimedOut: The answer did not come in time.
            NetworkError: The connection ended before all of the answer had come.
        """
        read_s = read_timeout if isinstance(read_timeout, int | float) else self._read_s
        async with self._answer(method, url, read_s, _form(request_data)) as answer:
            return answer.status, await answer.read()

    async def start_of_file(self, url: str, most: int) -> tuple[int, bytes]:
        """Get a status, and a body up to its bound and perhaps a little further."""
        read = bytearray()
        async with self._answer("GET", url, self._read_s, None) as answer:
            async for piece in answer.content.iter_any():
                read += piece
                if len(read) > most:
                    break
            return answer.status, bytes(read)

    @asynccontextmanager
    async def _answer(
        self, method: str, url: str, read_s: float, data: aiohttp.FormData | None
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        times = aiohttp.ClientTimeout(total=None, connect=self._connect_s, sock_read=read_s)
        try:
            session = self._opened(url)
            async with session.request(
                method,
                url,
                data=data,
                timeout=times,
                allow_redirects=False,
                proxy_headers=self._proxy_headers,
            ) as answer:
                yield answer
        except _BEFORE_SENDING as error:
            raise NotSent(type(error).__name__) from error
        except TimeoutError as error:
            raise TimedOut from error
        except aiohttp.ClientError as error:
            raise NetworkError(type(error).__name__) from error


def _proxy(url: URL) -> tuple[URL | None, dict[str, str]]:
    """Return the proxy that the environment names for a server, and the headers that it asks for."""
    found = getproxies().get(url.scheme)
    if not found or proxy_bypass(url.host or ""):
        return None, {}
    proxy = URL(found)
    if proxy.user is None:
        return proxy, {}
    secret = aiohttp.encode_basic_auth(proxy.user, proxy.password or "")
    return proxy.with_user(None), {"Proxy-Authorization": secret}


_BEFORE_SENDING: tuple[type[Exception], ...] = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)


def _form(data: RequestData | None) -> aiohttp.FormData | None:
    """Return the parameters of a call, its files among them."""
    if data is None:
        return None
    form = aiohttp.FormData(data.json_parameters, quote_fields=False)
    for name, (file, content, media_type) in data.multipart_data.items():
        form.add_field(name, content, filename=form_name(file), content_type=media_type)
    return form


def _parameters(found: Json) -> Mapping[str, object]:
    """Return what the library may read of the parameters of a refusal."""
    given = inner(found, "parameters")
    moved, stated = given.get("migrate_to_chat_id"), number(given, "retry_after")
    if isinstance(moved, int):
        return {"migrate_to_chat_id": moved}
    if stated is None and found.get("error_code") != TOO_MANY:
        return {}
    return {"retry_after": wait_s(stated)}
