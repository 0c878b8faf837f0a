"""Calls to Discord's API: one call is one request, and its outcome is reported.

It does not use the library's client, which waits out every 429 by itself and repeats a failed call up
to five times (`discord.http.HTTPClient.request`, discord.py 2.7.1). Our pacing would not see the waits,
and a call could arrive twice unnoticed.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing

from channels._remote.fields import Json, as_object, integer, number, objects, parse_json, text
from channels._remote.http import SLOWEST_BYTES_PER_S, Form, Http, repeatable, with_file
from channels._remote.limits import FIRST_FAILURE, wait_s
from channels.discord import DiscordSettings, account_of
from channels.discord.errors import TokenRefused, invalid_token, refused
from zeroclaw import (
    ChannelRejected,
    ChannelUnavailable,
    Clock,
    DeliveryUnknown,
    RateLimited,
    Recent,
)

MAX_ROUTES = 10_000
"""Routes whose used-up limit is remembered; the oldest are dropped."""
_ID = re.compile(r"[0-9]{15,20}")
_GLOBAL = "global"
"""The limit of all calls ("Rate Limits", read 2026-11); answers to interactions are exempt."""
# User Agent, "Reference", read 2026-11: calls with another form may be refused.
_AGENT = "DiscordBot (zeroclaw, 0.1)"

# Application Flags, read 2026-11: the content intent was granted, or is on for a bot in few servers.
_MAY_READ = 1 << 18 | 1 << 19


class Rest:
    """Makes one account's calls; safe to use concurrently.

    Attributes:
        account: The account's user id.
        token: The bot's token, for the gateway.
        http: The account's connections.
    """

    def __init__(
        self,
        name: str,
        settings: DiscordSettings,
        secrets: Mapping[str, str],
        clock: Clock | None = None,
    ) -> None:
        """Open nothing yet; without a clock no rate limits are remembered.

        Raises:
            ChannelUnauthorized: The token is not in Discord's format.
        """
        self.token = secrets.get("token", "").strip()
        self.account = account_of(name, self.token)
        self.http = Http(name, "Discord", agent=_AGENT)
        self._base, self._clock = settings.api_base_url, clock
        self._spent: Recent[str, float] = Recent(MAX_ROUTES)

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        file: tuple[str, bytes] | None = None,
        of_bot: bool = True,
    ) -> object:
        """Make one call and return Discord's answer, None for an empty one.

        Args:
            method: The HTTP method.
            path: The path below the API's base URL, including the query.
            body: Sent as JSON; None for none.
            file: The name and content of a file to upload.
            of_bot: Send the bot's token; answers to interactions don't need it.

        Raises:
            RateLimited: Too many calls. If the route's limit is known to be used up, no call is made.
            ChannelUnavailable: The call did not arrive.
            ChannelRejected: Discord refused it.
            DeliveryUnknown: It may have arrived.
        """
        route, at = _route(method, path), 0.0 if self._clock is None else self._clock.monotonic()
        limits = (route, _GLOBAL) if of_bot else (route,)
        if (remaining_s := max(self._spent.get(limit, at) for limit in limits) - at) > 0:
            message = f"`{self.http.name}`: Discord takes no more such calls now"
            raise RateLimited(message, retry_after_s=remaining_s)
        headers = {"Authorization": f"Bot {self.token}"} if of_bot else {}
        data: Form | bytes | None = None
        if file is not None:
            # "Uploading Files", read 2026-11.
            data = with_file({"payload_json": body}, "files[0]", *file)
        elif body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        extra_s = 0.0 if file is None else len(file[1]) / SLOWEST_BYTES_PER_S
        url = self._base + path
        answer = await self.http.call(method, url, headers=headers, data=data, extra_s=extra_s)
        received = answer.headers
        if self._clock is not None and of_bot and received.get("X-RateLimit-Remaining") == "0":
            # Each answer states how many calls of the route remain ("Rate Limits", read 2026-11).
            free_s = wait_s(received.get("X-RateLimit-Reset-After"))
            self._spent[route] = self._clock.monotonic() + free_s
        if answer.status >= FIRST_FAILURE:
            error = refused(self.http.name, answer.status, answer.content, received)
            # A proxy that has banned our address answers with its own page.
            scope = as_object(parse_json(answer.content)) or {"global": True}
            is_global = of_bot and scope.get("global") is True
            if isinstance(error, RateLimited) and is_global and self._clock:
                self._spent[_GLOBAL] = self._clock.monotonic() + error.retry_after_s
            raise error
        found = parse_json(answer.content)
        if found is None and answer.content:
            raise DeliveryUnknown(self.http.unreadable)
        return found

    async def read(self, path: str, body: object = None) -> object:
        """Make one call that is safe to repeat; a lost one raises `ChannelUnavailable`.

        It is a GET call, or with a body a POST call.
        """
        with repeatable():
            return await self.call("GET" if body is None else "POST", path, body)

    async def messages(self, channel: str, query: str) -> Sequence[Json]:
        """Read one page of a channel's history."""
        page: Json = {"messages": await self.read(f"/channels/{channel}/messages?{query}")}
        if not isinstance(page["messages"], list):
            raise ChannelUnavailable(self.http.unreadable)
        return objects(page, "messages")

    async def bot_user(self) -> Json:
        """Return the bot's user.

        Raises:
            ChannelUnauthorized: The token is not accepted.
        """
        found = await self._probe_token("/users/@me")
        if text(found, "id") != self.account:
            message = f"`{self.http.name}`: the server says that the token is of another bot"
            raise ChannelUnavailable(message)
        return found

    async def gateway(self) -> str:
        """Return the gateway's URL.

        Raises:
            RateLimited: The bot has used up today's session starts; after one more Discord would
                reset its token ("Session Start Limit", read 2026-11).
        """
        found = await self._probe_token("/gateway/bot")
        limit = as_object(found.get("session_start_limit"))
        if integer(limit, "remaining") == 0:
            message = f"`{self.http.name}`: the bot has connected too often today"
            until_s = (number(limit, "reset_after") or 0) / 1000
            raise RateLimited(message, retry_after_s=wait_s(until_s))
        return text(found, "url")

    async def _probe_token(self, path: str) -> Json:
        """Make a call that every bot may make; if it is unauthorized, the token is invalid."""
        try:
            return as_object(await self.read(path))
        except TokenRefused as error:
            raise invalid_token(self.http.name) from error
        except ChannelRejected as error:
            raise ChannelUnavailable(str(error)) from error


def _route(method: str, path: str) -> str:
    """Return the key of the rate limit that a call counts against: method, top resource, path shape."""
    first, major, *rest = path.partition("?")[0].strip("/").split("/", 2)
    return f"{method} {first}/{major} {_ID.sub('id', ''.join(rest))}"


async def check(settings: DiscordSettings, secrets: Mapping[str, str]) -> str:
    """Ask Discord who the bot is, and whether its settings are a problem; changes nothing.

    Raises:
        ChannelUnauthorized: The token is not accepted.
        ChannelUnavailable: Discord can't be reached.
    """
    rest = Rest("discord", settings, secrets)
    async with aclosing(rest.http):
        user = await rest.bot_user()
        application = as_object(await rest.read("/oauth2/applications/@me"))
    scopes = {"all": "every message", "off": "nothing"}
    scope = scopes.get(settings.servers, "messages meant for it")
    facts = [f"{text(user, 'username')} answers; in servers it reads {scope}"]
    if settings.reads_everything and not (integer(application, "flags") or 0) & _MAY_READ:
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
