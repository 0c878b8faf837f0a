"""Calls to Slack: its Web API, files, and the connection that delivers events.

One call is one request, and its outcome is reported. It does not use the library's client, which
repeats a call by itself when a connection fails (`AsyncConnectionErrorRetryHandler`, slack-sdk 3.47),
so a call could arrive twice unnoticed.
"""

import json
import re
from collections.abc import Mapping
from contextlib import aclosing
from urllib.parse import urlencode, urlsplit

from channels._remote.fields import Json, as_object, inner, parse_json, text
from channels._remote.http import NOTHING, SLOWEST_BYTES_PER_S, Http, Response, Socket, repeatable
from channels._remote.limits import (
    FAILED,
    FIRST_FAILURE,
    NO_TIME,
    TOO_LARGE,
    TOO_MANY,
    proxy_refused,
    unavailable,
    wait_s,
)
from channels.slack import SlackSettings
from zeroclaw import (
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    Clock,
    DeliveryUnknown,
    RateLimited,
    Value,
    ZeroclawError,
)

QUIET_S = 60.0
"""Seconds of silence after which a connection is dead; Slack pings every few seconds."""
MAX_FRAME_BYTES = 8 * 1024 * 1024
CHECK_S, MAX_CHECKS = 0.5, 10
"""Interval and number of checks whether Slack has processed an upload."""
_OK = 200
_JSON, _FORM = "application/json; charset=utf-8", "application/x-www-form-urlencoded"
_CODE = re.compile(r"[A-Za-z0-9_:.,]{1,100}")
_LINK = re.compile(r"https?://[^\s<>|]{1,1000}")

# "Errors" of the methods used here, docs.slack.dev, read 2026-11.
_BAD_TOKEN = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"}
)
_BAD_SCOPE = frozenset({"not_allowed_token_type", "missing_scope", "no_permission"})
_IDENTIFY, _CONNECT = "auth.test", "apps.connections.open"
"""Calls that every app may make; only the second is made with the app-level token."""
_FAILED = frozenset({"fatal_error", "internal_error", "service_unavailable", "request_timeout"})
_GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
_BLOCKS = frozenset({"invalid_blocks", "msg_blocks_too_long"})
_STREAMED = frozenset({"streaming_state_conflict", "cant_delete_message"})
_LIMITED = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})


class Identity(Value):
    """The bot's identity.

    Attributes:
        account: The account as one word.
        user: Its user id, as in mentions of it.
        name: Its name.
        team: The name of its workspace.
    """

    account: str
    user: str
    name: str
    team: str


class Calls:
    """Makes one app's calls; safe to use concurrently.

    Attributes:
        http: The app's connections.
    """

    def __init__(self, name: str, settings: SlackSettings, secrets: Mapping[str, str]) -> None:
        """Open nothing yet.

        Raises:
            ChannelUnauthorized: A token is not of the expected kind.
        """
        kinds = [("bot_token", "xoxb-"), ("app_token", "xapp-")]
        self._tokens = {
            key: _token(name, key, secrets.get(key, "").strip(), prefix)
            for key, prefix in kinds[: 2 if settings.receive == "socket_mode" else 1]
        }
        self._base = f"{settings.api_base_url}/"
        self.http = Http(name, "Slack")

    async def call(self, method: str, body: Mapping[str, object]) -> Json:
        """Make one call that writes, and return Slack's answer.

        Args:
            method: The Web API method.
            body: The arguments; a None value leaves one out.

        Raises:
            RateLimited: Too many calls.
            ChannelUnauthorized: The token is not accepted.
            ChannelUnavailable: The call did not arrive.
            ChannelRejected: Slack refused it.
            DeliveryUnknown: It may have arrived.
        """
        arguments = {key: value for key, value in body.items() if value is not None}
        return await self._call(method, content_type=_JSON, data=json.dumps(arguments).encode())

    async def read(self, method: str, body: Mapping[str, object] = NOTHING) -> Json:
        """Make one call that is safe to repeat; a lost one raises `ChannelUnavailable`.

        The arguments are sent as a form, because methods that read ignore JSON arguments ("Web API",
        docs.slack.dev, read 2026-11).
        """
        form = {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in body.items()
            if value is not None
        }
        with repeatable():
            return await self._call(method, content_type=_FORM, data=urlencode(form).encode())

    async def _call(self, method: str, *, content_type: str, data: bytes) -> Json:
        key = "app_token" if method == _CONNECT else "bot_token"
        headers = {"Authorization": f"Bearer {self._tokens[key]}", "Content-Type": content_type}
        answer = await self.http.call("POST", self._base + method, headers=headers, data=data)
        body = as_object(parse_json(answer.content))
        if answer.status != _OK or body.get("ok") is not True:
            raise self._refused(method, key, answer, body)
        return body

    async def connect(self) -> Socket:
        """Open the connection that delivers events.

        Raises:
            ChannelUnauthorized: The app-level token is not accepted.
            ChannelUnavailable: The connection could not be established.
        """
        url = await self.socket_url()
        opened = await self.http.websocket(url, max_bytes=MAX_FRAME_BYTES, heartbeat_s=QUIET_S / 2)
        return Socket(opened)

    async def download(self, url: str, *, max_bytes: int) -> bytes:
        """Download a person's file; the token is sent only to Slack's own hosts.

        Raises:
            ChannelRejected: It is larger than `max_bytes`, gone, or on another host.
            ChannelUnavailable: It can't be read now.
        """
        if not _is_slacks(url, self._base):
            message = f"`{self.http.name}`: the file is not on a server of Slack's"
            raise ChannelRejected(message)
        headers = {"Authorization": f"Bearer {self._tokens['bot_token']}"}
        return await self.http.download(url, headers=headers, max_bytes=max_bytes)

    async def upload(self, name: str, content: bytes, clock: Clock) -> str:
        """Upload a file that no person can see yet, and return its permanent link.

        A message of the bot's with that link shows the file to its readers
        (slackapi/bolt-python#1018, 2024-01). Nothing is visible before that, so the whole upload is
        safe to repeat. Slack shows a file only after it has processed it and set its type
        (slackapi/node-slack-sdk#2040, 2024-09); this waits a while for that.

        Raises:
            RateLimited: Too many calls.
            ChannelRejected: Slack refused it.
            ChannelUnavailable: It can't be uploaded now.
        """
        size = {"filename": name, "length": len(content)}
        target = await self.read("files.getUploadURLExternal", size)
        url, id_ = text(target, "upload_url"), text(target, "file_id")
        if not _is_slacks(url, self._base):
            message = f"`{self.http.name}`: the server names no URL for the upload"
            raise ChannelUnavailable(message)
        extra_s = len(content) / SLOWEST_BYTES_PER_S
        with repeatable():
            answer = await self.http.call("POST", url, data=content, extra_s=extra_s)
        if answer.status != _OK:
            message = f"`{self.http.name}`: the file can't be uploaded ({answer.status})"
            if answer.status == TOO_LARGE:
                raise ChannelRejected(message)
            raise unavailable(message, answer.headers.get("Retry-After"))
        files = json.dumps([{"id": id_, "title": name}])
        await self.read("files.completeUploadExternal", {"files": files})
        file, checks = await self.file(id_), 0
        while not text(file, "mimetype") and checks < MAX_CHECKS:
            await clock.sleep(CHECK_S)
            file, checks = await self.file(id_), checks + 1
        link = text(file, "permalink")
        if not _LINK.fullmatch(link):
            raise ChannelUnavailable(self.http.unreadable)
        return link

    async def file(self, id_: str) -> Json:
        """Return Slack's record of a file, empty if the answer has none."""
        return inner(await self.read("files.info", {"file": id_}), "file")

    async def identity(self) -> Identity:
        """Return the bot that the bot token belongs to.

        Raises:
            ChannelUnauthorized: The token is not accepted.
        """
        found = await self._probe_token(_IDENTIFY)
        team, user, bot = (text(found, key) for key in ("team_id", "user_id", "bot_id"))
        if not (team and user and bot):
            message = f"`{self.http.name}`: the bot token belongs to no bot; it begins with `xoxb-`"
            raise ChannelUnauthorized(message)
        name, team_name = text(found, "user"), text(found, "team")
        return Identity(account=f"{team}-{user}", user=user, name=name, team=team_name)

    async def socket_url(self) -> str:
        """Return the URL of the event connection; valid for one connection, for a short time.

        Raises:
            ChannelUnauthorized: The token is not accepted.
        """
        return text(await self._probe_token(_CONNECT), "url")

    async def _probe_token(self, method: str) -> Json:
        """Make a call that every app may make; if it is unauthorized, the token is invalid."""
        try:
            return await self.read(method)
        except ChannelRejected as error:
            raise ChannelUnavailable(str(error)) from error

    def _refused(self, method: str, key: str, answer: Response, body: Json) -> ZeroclawError:
        """Return the error to raise for a failed call.

        It names only the error code, because some of Slack's answers repeat the arguments.
        """
        status, code = answer.status, text(body, "error")
        if status == TOO_MANY or code in _LIMITED:
            message = f"`{self.http.name}`: too many calls of `{method}`"
            return RateLimited(message, retry_after_s=wait_s(answer.headers.get("Retry-After")))
        if not code and FIRST_FAILURE <= status < FAILED and status != NO_TIME:
            return proxy_refused(self.http.name, "Slack", status)
        if status >= FAILED or code in _FAILED or not code:
            message = f"`{self.http.name}`: Slack failed at `{method}` ({code or status})"
            return DeliveryUnknown(message, late=status == NO_TIME)
        shown = code if _CODE.fullmatch(code) else str(status)
        if _CODE.fullmatch(scope := text(body, "needed")):
            shown = f"{shown}, the app needs the scope {scope}"
        if code in _BAD_TOKEN or (code in _BAD_SCOPE and method in {_IDENTIFY, _CONNECT}):
            page = "see https://api.slack.com/apps for a valid one and its scopes"
            message = f"`{self.http.name}`: Slack does not accept `{key}` ({shown}); {page}"
            return ChannelUnauthorized(message)
        kinds = dict.fromkeys(_STREAMED, MessageStreams) | dict.fromkeys(_BLOCKS, BlocksRefused)
        kind = kinds.get(code, ChannelRejected)
        return kind(f"`{self.http.name}`: `{method}`: {shown}", gone=code in _GONE)


class MessageStreams(ChannelRejected):
    """Raised when a message can't be changed or deleted now, perhaps because it is being streamed."""


class BlocksRefused(ChannelRejected):
    """Raised when Slack refuses a message's blocks, or those that it makes of its Markdown.

    It makes a block of each table, for example, and accepts fifty blocks
    (github.com/metabase/metabase/pull/79908).
    """


def _token(name: str, key: str, token: str, prefix: str) -> str:
    if not token.startswith(prefix) or not token.isascii() or not token.isprintable():
        message = f"`{name}`: `{key}` is not a token of that kind; it begins with `{prefix}`"
        raise ChannelUnauthorized(message)
    return token


def _is_slacks(url: str, api: str) -> bool:
    """Whether a URL is on one of Slack's hosts, or on the server of the Web API."""
    try:
        origin, base = ((u.scheme, u.hostname, u.port) for u in map(urlsplit, (url, api)))
    except ValueError:
        return False
    scheme, host, port = origin[0], origin[1] or "", origin[2]
    is_slack = host == "slack.com" or host.endswith((".slack.com", ".slack-edge.com"))
    return origin == base or (scheme == "https" and is_slack and port in {None, 443})


async def check(settings: SlackSettings, secrets: Mapping[str, str]) -> str:
    """Ask Slack who the bot is, and whether it could receive events; changes nothing.

    Raises:
        ChannelUnauthorized: A token is not accepted.
        ChannelUnavailable: Slack can't be reached.
    """
    calls, note = Calls("slack", settings, secrets), ""
    async with aclosing(calls.http):
        bot = await calls.identity()
        if settings.receive == "socket_mode":
            await calls.socket_url()
        else:
            note = f"; Slack is to call {settings.webhook_path} of the public listener"
    return f"@{bot.name} answers in the workspace {bot.team}{note}"
