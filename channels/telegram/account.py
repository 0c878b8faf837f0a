"""One bot account at the Bot API: its calls, identity, updates and files.

One call is one request, and its outcome is reported. Methods and parameters are those of Bot API 10.1 of
2026-06-11, https://core.telegram.org/bots/api, read 2026-11.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import cast
from urllib.parse import quote

from channels._remote.fields import Json, as_object, integer, parse_json, text
from channels._remote.http import READ_S, SLOWEST_BYTES_PER_S, Http, repeatable, with_file
from channels._remote.limits import FIRST_FAILURE
from channels.telegram import TelegramSettings
from channels.telegram.decode import ALLOWED_UPDATES
from channels.telegram.errors import Migrated, NoChange, NoTopic, TokenRefused, refused
from channels.telegram.styled import File
from zeroclaw import (
    Address,
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    DeliveryUnknown,
    MessageRef,
    replace,
)

POLL_S = 25
"""Seconds that Telegram holds a poll open; routers may drop connections that are silent for longer."""
MAX_UPDATES = 100
"""Bot API, getUpdates, `limit`, read 2026-11."""
MAX_CONNECTIONS = 32
"""Concurrent posts allowed to Telegram; a quarter of the public listener's limit."""
_POLL_SLACK_S = 10.0
LONGEST_POLL_S = POLL_S + 3 * _POLL_SLACK_S
"""Total time limit of a poll in seconds; the other time-outs restart with each received byte."""

# No compression, so that a small body can't expand to a large one.
_UNPACKED: Mapping[str, str] = {"Accept-Encoding": "identity"}
_JSON: Mapping[str, str] = {**_UNPACKED, "Content-Type": "application/json"}
_NOTHING: Json = {}
# A call without a body is sent at once; aiohttp writes a body in a task of its own.
_POLLED = f"?timeout={POLL_S}&allowed_updates={quote(json.dumps(ALLOWED_UPDATES))}"


class Account:
    """One bot account; safe to use concurrently.

    Attributes:
        name: The channel's name, for errors.
        token: The bot's token.
        id: The account's id, which is the first part of the token.
        http: The account's connections.
    """

    def __init__(self, name: str, settings: TelegramSettings, secrets: Mapping[str, str]) -> None:
        """Open nothing yet.

        Raises:
            ChannelUnauthorized: The token is not in Telegram's format.
        """
        self.name = name
        self.token = secrets.get("token", "").strip()
        self.id, colon, _ = self.token.partition(":")
        if not self.id.isdecimal() or not colon:
            message = (
                f"`{name}`: that is no bot's token; @BotFather gives one such as `123456:ABC…`"
            )
            raise ChannelUnauthorized(message)
        self._methods = f"{settings.api_base_url}/bot{self.token}/"
        self._files = f"{settings.api_base_url}/file/bot{self.token}/"
        self.http = Http(name, "Telegram")

    # --- its calls -------------------------------------------------------------------------------

    async def call(
        self, method: str, parameters: Json, *, file: File | None = None, extra_s: float = 0.0
    ) -> object:
        """Make one call and return its result.

        Args:
            method: The Bot API method; parameters may follow it as a query.
            parameters: The parameters; a None value leaves one out.
            file: A document to upload.
            extra_s: Seconds for which the server may delay its answer.

        Raises:
            RateLimited: Too many calls.
            ChannelUnavailable: The call did not arrive.
            ChannelRejected: Telegram refused it; see `errors.py` for the kinds.
            DeliveryUnknown: It may have arrived.
        """
        fields = {key: value for key, value in parameters.items() if value is not None}
        if file is None:
            headers, data = (_JSON, json.dumps(fields).encode()) if fields else (_UNPACKED, None)
        else:
            headers, data = _UNPACKED, with_file(fields, "document", file.name, file.content)
            extra_s = len(file.content) / SLOWEST_BYTES_PER_S
        response = await self.http.call(
            "GET" if data is None else "POST",
            self._methods + method,
            headers=headers,
            data=data,
            extra_s=extra_s,
        )
        body = as_object(parse_json(response.content))
        if response.status >= FIRST_FAILURE or body.get("ok") is not True or "result" not in body:
            raise refused(self.name, response.status, body, response.headers.get("Retry-After"))
        return body["result"]

    async def post(
        self, to: Address, method: str, parameters: Json, *, file: File | None = None
    ) -> MessageRef:
        """Post into a chat, or into the one that it was migrated to."""
        try:
            sent = await self.call(method, parameters, file=file)
        except Migrated as migration:
            to = replace(to, chat=str(migration.chat))
            # Ids start again there, so the answered message's id would be another message's.
            parameters = {**parameters, "chat_id": migration.chat, "reply_parameters": None}
            sent = await self.call(method, parameters, file=file)
        except NoTopic:
            # Telegram no longer finds some old topics, but a reply goes where its message is
            # (tdlib/telegram-bot-api#447 and #693, read 2026-11). If that is gone, so is the topic.
            reply = as_object(parameters.get("reply_parameters"))
            if not reply:
                raise
            reply = {**reply, "allow_sending_without_reply": False}
            parameters = {**parameters, "message_thread_id": None, "reply_parameters": reply}
            sent = await self.call(method, parameters, file=file)
        number = integer(as_object(sent), "message_id")
        if number is None:
            raise DeliveryUnknown(self.http.unreadable)
        return MessageRef(address=to, message=str(number))

    async def change(self, method: str, parameters: Json) -> None:
        """Make a call that changes or deletes something; no change is no error."""
        with suppress(NoChange):
            await self.call(method, parameters)

    async def read(self, method: str, parameters: Json = _NOTHING) -> object:
        """Make an idempotent call; a lost one raises `ChannelUnavailable`."""
        with repeatable():
            return await self.call(method, parameters)

    async def _read_by_token(self, method: str, *, extra_s: float = 0.0) -> object:
        """Read by a method that every server has, so that a refusal means an invalid token."""
        try:
            with repeatable():
                return await self.call(method, _NOTHING, extra_s=extra_s)
        except TokenRefused as error:
            message = f"`{self.name}`: Telegram does not accept the token; get a valid one from @BotFather"
            raise ChannelUnauthorized(message) from error

    def _object(self, result: object) -> Json:
        if not isinstance(result, dict):
            raise ChannelUnavailable(self.http.unreadable)
        return as_object(cast("object", result))

    # --- its identity and updates ----------------------------------------------------------------

    async def user(self) -> Json:
        """Return the bot's User.

        Raises:
            ChannelUnauthorized: The token is not accepted.
        """
        user = self._object(await self._read_by_token("getMe"))
        if str(integer(user, "id")) != self.id:
            message = f"`{self.name}`: the server says that the token is of another bot"
            raise ChannelUnavailable(message)
        return user

    async def webhook(self) -> Json:
        """Return the webhook's state, a WebhookInfo."""
        return self._object(await self.read("getWebhookInfo"))

    async def set_webhook(self, url: str, *, secret: str) -> None:
        """Make Telegram post updates to a URL; waiting updates are kept.

        Args:
            url: The URL.
            secret: Sent by Telegram with each post.

        Raises:
            ChannelUnavailable: Telegram refuses the URL, for now or for good. Its answer does not
                distinguish a name that does not exist from one that could not be resolved.
        """
        parameters = {
            "url": url,
            "secret_token": secret,
            "allowed_updates": ALLOWED_UPDATES,
            "max_connections": MAX_CONNECTIONS,
            "drop_pending_updates": False,
        }
        try:
            await self.read("setWebhook", parameters)
        except ChannelRejected as error:
            message = f"Telegram does not call `webhook_url`, `{url}`: {error}"
            raise ChannelUnavailable(message) from error

    async def forget_webhook(self) -> None:
        """Remove the webhook, so that updates can be polled; waiting updates are kept."""
        await self.read("deleteWebhook", {"drop_pending_updates": False})

    async def updates(self, offset: int | None, limit: int = MAX_UPDATES) -> list[object]:
        """Wait for at most so many updates from `offset` on, and confirm those before it."""
        method = f"getUpdates{_POLLED}&limit={limit}" + (f"&offset={offset}" if offset else "")
        extra_s = POLL_S + _POLL_SLACK_S - READ_S
        try:
            updates = await self._read_by_token(method, extra_s=extra_s)
        except ChannelUnavailable as error:
            # It may have been cut off for its length, as after a flood of long rich messages.
            if limit == 1 or str(error) != self.http.unreadable:
                raise
            return await self.updates(offset, limit // 10)
        if not isinstance(updates, list):
            raise ChannelUnavailable(self.http.unreadable)
        return cast("list[object]", updates)

    # --- its files -------------------------------------------------------------------------------

    async def download(self, file_id: str, *, max_bytes: int) -> bytes:
        """Download a file.

        Raises:
            ChannelRejected: It is larger than `max_bytes`, gone, or not a file of this account.
        """
        path = text(self._object(await self.read("getFile", {"file_id": file_id})), "file_path")
        if not path or path.startswith("/"):
            message = (
                f"`{self.name}`: the server keeps its files to itself; start it without --local"
            )
            raise ChannelRejected(message)
        return await self.http.download(self._files + path, max_bytes=max_bytes)
