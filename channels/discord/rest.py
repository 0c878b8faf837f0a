"""Call Discord's API: one call is one request, and what came of it is told.

Not the library's own client: it waits out every 429 by itself and makes a failed call up to five
times (`discord.http.HTTPClient.request`, discord.py 2.7.1), so that the pacing would not see the
one, and nobody would know of the other that it may have arrived twice.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import getproxies

import aiohttp

from channels._remote.fields import Json, as_object, number, parsed, text, whole
from channels._remote.known import Known
from channels._remote.servers import is_near, trust
from channels.discord import DiscordSettings, account_of
from channels.discord.errors import TOO_MANY, TokenRefused, about_the_token, refused, until_free
from zeroclaw import (
    ChannelRejected,
    ChannelUnavailable,
    Clock,
    DeliveryUnknown,
    RateLimited,
)

MOST_ROUTES = 10_000
"""Limits that are remembered; those that were told last."""
MOST_CONNECTIONS = 64
CONNECT_S, READ_S = 10.0, 20.0
MOST_ANSWER_BYTES = 16 * 1024 * 1024
MOST_FRAME_BYTES = 32 * 1024 * 1024
"""Of one event; a large server's first is several MiB."""
Websocket = aiohttp.ClientWebSocketResponse
BROKEN: tuple[type[Exception], ...] = (aiohttp.ClientError, OSError, TimeoutError)
"""What a connection raises that has ended."""
_SLOWEST_BYTES_PER_S = 100_000
_ID = re.compile(r"[0-9]{15,20}")
_FIRST_FAILURE, _FAILED = 300, 500
# User Agent, "Reference", read 2026-11: without one of this form calls may be refused.
_AGENT = "DiscordBot (zeroclaw, 0.1)"

# Application Flags, read 2026-11: the intent is granted, or is turned on for a bot in few servers.
_MAY_READ = 1 << 18 | 1 << 19


@dataclass(frozen=True, kw_only=True)
class _Answer:
    status: int
    content: bytes
    headers: Mapping[str, str]


class Rest:
    """One account's calls; safe to make concurrently.

    Attributes:
        name: The channel's, for errors.
        account: The account's user id.
        token: The bot's, for the gateway.
        is_closed: No call is made any more.
    """

    def __init__(
        self,
        name: str,
        settings: DiscordSettings,
        secrets: Mapping[str, str],
        clock: Clock | None = None,
    ) -> None:
        """Open nothing yet; without a clock no limits are remembered.

        Raises:
            ChannelUnauthorized: The token has another form than Discord's.
        """
        self.name = name
        self.token = secrets.get("token", "").strip()
        self.account = account_of(name, self.token)
        self._base = settings.api_base_url
        self._trusted = trust()  # here, so that no call has to wait while they are read
        self._session: aiohttp.ClientSession | None = None
        self._clock = clock
        self._spent: Known[float] = Known(MOST_ROUTES)
        self.is_closed = False

    async def aclose(self) -> None:
        """Close every connection, for good; safe twice."""
        self.is_closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self.is_closed:
            message = f"`{self.name}` is closed"
            raise ChannelUnavailable(message)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=MOST_CONNECTIONS, ssl=self._trusted),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": _AGENT},
                # It reads a file in a thread for each call, so only where there is a proxy to find.
                trust_env=bool(getproxies()),
            )
        return self._session

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        file: tuple[str, bytes] | None = None,
        of_bot: bool = True,
    ) -> object:
        """Make one call and return what Discord answered, None for nothing.

        Args:
            method: Of HTTP.
            path: Below the API's address, its query included.
            body: As JSON; None for none.
            file: A name and the content, sent along.
            of_bot: It is made with the bot's token, which interactions need not.

        Raises:
            RateLimited: Too many calls; where Discord has said so before, this one is not made.
            ChannelUnavailable: Nothing arrived.
            ChannelRejected: Discord refuses it.
            DeliveryUnknown: It may have arrived.
        """
        route, at = _route(method, path), 0.0 if self._clock is None else self._clock.monotonic()
        if (wait_s := self._spent.get(route, at) - at) > 0:
            message = f"`{self.name}`: Discord takes no more such calls now"
            raise RateLimited(message, retry_after_s=wait_s)
        data: aiohttp.FormData | bytes | None = None if body is None else json.dumps(body).encode()
        more_s = 0.0
        if file is not None:
            data, more_s = _form(body, *file), len(file[1]) / _SLOWEST_BYTES_PER_S
        answer = await self._answer(method, self._base + path, data, of_bot=of_bot, more_s=more_s)
        if self._clock is not None and of_bot and (free_s := until_free(answer.headers)):
            self._spent[route] = self._clock.monotonic() + free_s
        if answer.status >= _FIRST_FAILURE:
            raise refused(self.name, answer.status, answer.content, answer.headers)
        return parsed(answer.content)

    async def read(self, path: str) -> object:
        """Make a call that changes nothing, so that one that is lost may simply be made again."""
        try:
            return await self.call("GET", path)
        except DeliveryUnknown as error:
            raise ChannelUnavailable(str(error)) from error

    async def download(self, url: str, *, max_bytes: int) -> bytes:
        """Get a file from where Discord keeps it; without the token, for that is another host.

        Raises:
            ChannelRejected: It is larger, or gone.
            ChannelUnavailable: It can't be read now.
        """
        parts = urlsplit(url)
        if parts.scheme != "https" and not (
            parts.scheme == "http" and is_near(parts.hostname or "")
        ):
            message = f"`{self.name}`: the file has no address"
            raise ChannelRejected(message)
        try:
            answer = await self._answer("GET", url, None, of_bot=False, most=max_bytes + 1)
        except DeliveryUnknown as error:
            raise ChannelUnavailable(str(error)) from error
        if answer.status >= _FAILED or answer.status == TOO_MANY:
            message = f"`{self.name}`: Discord failed ({answer.status})"
            raise ChannelUnavailable(message)
        if answer.status >= _FIRST_FAILURE:
            message = f"`{self.name}`: the file is no longer there"
            raise ChannelRejected(message)
        content = answer.content
        if len(content) > max_bytes:
            message = f"`{self.name}`: the file is larger than {max_bytes} bytes"
            raise ChannelRejected(message)
        return content

    async def me(self) -> Json:
        """Return the bot's user, as the token says it is.

        Raises:
            ChannelUnauthorized: The token is not accepted.
        """
        found = await self._about_the_token("/users/@me")
        if text(found, "id") != self.account:
            message = f"`{self.name}`: the server says that the token is of another bot"
            raise ChannelUnavailable(message)
        return found

    async def gateway(self) -> str:
        """Return where events come from.

        Raises:
            RateLimited: The bot has begun as often today as Discord lets it; were it to begin once
                more, Discord would take its token away ("Session Start Limit", read 2026-11).
        """
        found = await self._about_the_token("/gateway/bot")
        limit = as_object(found.get("session_start_limit"))
        if whole(limit, "remaining") == 0:
            message = f"`{self.name}`: the bot has connected too often today"
            raise RateLimited(message, retry_after_s=(number(limit, "reset_after") or 0) / 1000)
        return self.checked(text(found, "url"))

    def checked(self, url: str) -> str:
        """Return the gateway's address, which the token is sent to.

        Raises:
            ChannelUnavailable: It is none, or would be sent in clear to the internet.
        """
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
        except ValueError:
            parts, host = urlsplit(""), ""
        if parts.scheme == "wss" or (parts.scheme == "ws" and host and is_near(host)):
            return url
        message = f"`{self.name}`: the server names no gateway"
        raise ChannelUnavailable(message)

    async def websocket(self, url: str) -> Websocket:
        """Open a connection to the gateway.

        Raises:
            ChannelUnavailable: It did not come about.
        """
        try:
            return await self._opened().ws_connect(
                url,
                max_msg_size=MOST_FRAME_BYTES,
                autoclose=False,
                timeout=aiohttp.ClientWSTimeout(ws_close=CONNECT_S),  # pyright: ignore[reportCallIssue]  of attrs
            )
        except (aiohttp.ClientError, OSError) as error:
            message = f"`{self.name}`: the gateway can't be reached ({type(error).__name__})"
            raise ChannelUnavailable(message) from error

    async def _about_the_token(self, path: str) -> Json:
        """Make a call that every bot may make, so that a refusal is about its token."""
        try:
            return as_object(await self.read(path))
        except TokenRefused as error:
            raise about_the_token(self.name) from error
        except ChannelRejected as error:
            raise ChannelUnavailable(str(error)) from error

    async def _answer(
        self,
        method: str,
        url: str,
        data: aiohttp.FormData | bytes | None,
        *,
        of_bot: bool,
        more_s: float = 0.0,
        most: int = MOST_ANSWER_BYTES,
    ) -> _Answer:
        """Send a request and read its answer, of the body no more than a bound and a little."""
        headers = {"Authorization": f"Bot {self.token}"} if of_bot else {}
        if isinstance(data, bytes):
            headers["Content-Type"] = "application/json"
        times = aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_read=READ_S + more_s)
        read = bytearray()
        try:
            async with self._opened().request(
                method, url, headers=headers, data=data, timeout=times, allow_redirects=False
            ) as answer:
                async for piece in answer.content.iter_any():
                    read += piece
                    if len(read) >= most:
                        break
        except _BEFORE_SENDING as error:
            message = f"`{self.name}`: Discord can't be reached ({type(error).__name__})"
            raise ChannelUnavailable(message) from error
        except TimeoutError as error:
            message = f"`{self.name}`: Discord gave no answer in time"
            raise DeliveryUnknown(message, late=True) from error
        except aiohttp.ClientError as error:
            message = f"`{self.name}`: Discord gave no answer ({type(error).__name__})"
            raise DeliveryUnknown(message) from error
        return _Answer(status=answer.status, content=bytes(read), headers=answer.headers)


_BEFORE_SENDING: tuple[type[Exception], ...] = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)


def _route(method: str, path: str) -> str:
    """Return what calls share a limit: of one method on one kind of thing in one channel."""
    first, major, *rest = path.partition("?")[0].strip("/").split("/", 2)
    return f"{method} {first}/{major} {_ID.sub('id', ''.join(rest))}"


def _form(body: object, name: str, content: bytes) -> aiohttp.FormData:
    """Return a message with a file, as "Uploading Files" says (read 2026-11)."""
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("payload_json", json.dumps(body), content_type="application/json")
    # As browsers write a file's name: what would end it is escaped (WHATWG HTML, "multipart form
    # data", read 2026-11).
    shown = name.translate({ord("\r"): "%0D", ord("\n"): "%0A", ord('"'): "%22"})
    form.add_field("files[0]", content, filename=shown, content_type="application/octet-stream")
    return form


async def described(rest: Rest, settings: DiscordSettings) -> str:
    """Return one line about the account, and what stands in its way."""
    user = await rest.me()
    application = as_object(await rest.read("/oauth2/applications/@me"))
    hears = "every message" if settings.servers == "all" else "what is meant for it"
    heard = "nothing" if settings.servers == "off" else hears
    facts = [f"{text(user, 'username')} answers; in servers it hears {heard}"]
    if settings.reads_everything and not (whole(application, "flags") or 0) & _MAY_READ:
        facts.append(
            "turn on Message Content Intent at https://discord.com/developers under Bot, "
            "or Discord refuses the connection"
        )
    if text(application, "interactions_endpoint_url"):
        facts.append(
            "buttons and slash commands go to the application's Interactions Endpoint URL and not "
            "here; remove it at https://discord.com/developers under General Information"
        )
    return "; ".join(facts)
