"""One bot account at the Bot API: who it is, how its updates come, and what its calls raise."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar
from urllib.parse import urlencode

from telegram import Bot, Message, User, WebhookInfo
from telegram.error import ChatMigrated, TelegramError

from channels._remote.http import Http
from channels.telegram import TelegramSettings
from channels.telegram.connection import Connection
from channels.telegram.decode import ALLOWED_UPDATES
from channels.telegram.errors import about_the_token, is_as_wanted, translated
from zeroclaw import (
    Address,
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    DeliveryUnknown,
    MessageRef,
    ZeroclawError,
    replace,
)

T = TypeVar("T")
Told = Callable[[str, TelegramError], ZeroclawError]

POLL_S = 25
"""Seconds that Telegram holds a poll open; routers forget connections that are silent for longer."""
MOST_POSTED = 32
"""Updates that Telegram posts to us at once; a quarter of what the public listener holds."""
_POLL_SLACK_S = 10.0
LONGEST_POLL_S = POLL_S + 3 * _POLL_SLACK_S
"""Seconds after which a poll has died that no other time-out has ended: each byte starts those anew."""


class Account:
    """One bot account; its calls are safe to make concurrently.

    Attributes:
        name: The channel's, for errors.
        id: The account's, which its token begins with.
        bot: Makes the calls; what it raises is translated by `called` and its like.
    """

    def __init__(self, name: str, settings: TelegramSettings, secrets: Mapping[str, str]) -> None:
        """Open nothing yet.

        Raises:
            ChannelUnauthorized: The token has another form than Telegram's.
        """
        token, url = secrets.get("token", "").strip(), settings.api_base_url
        self.name = name
        self.id, colon, _ = token.partition(":")
        if not self.id.isdecimal() or not colon:
            message = (
                f"`{name}`: that is no bot's token; @BotFather gives one such as `123456:ABC…`"
            )
            raise ChannelUnauthorized(message)
        self._http = Http(name, "Telegram", agent=Connection.USER_AGENT)
        self._request = Connection(self._http)
        self.bot = Bot(
            token,
            base_url=f"{url}/bot",
            base_file_url=f"{url}/file/bot",
            request=self._request,
            get_updates_request=self._request,  # one pool, one set of certificates
        )

    async def aclose(self) -> None:
        """Close every connection; safe twice."""
        await self._http.aclose()

    async def me(self) -> User:
        """Return the bot."""
        return await self.read(self.bot.get_me, told=about_the_token)

    # --- its updates -----------------------------------------------------------------------------

    async def webhook(self) -> WebhookInfo:
        """Return where updates are sent to, if they are."""
        return await self.read(self.bot.get_webhook_info)

    async def set_webhook(self, url: str, *, secret: str) -> None:
        """Let updates be posted to an address; what waits stays.

        Args:
            url: The address.
            secret: What Telegram shows with each post.

        Raises:
            ChannelUnavailable: Telegram does not post there, now or at all: it says alike that a
                name does not exist and that it could not look it up.
        """
        try:
            await self.read(
                lambda: self.bot.set_webhook(
                    url,
                    secret_token=secret,
                    allowed_updates=ALLOWED_UPDATES,
                    max_connections=MOST_POSTED,
                    drop_pending_updates=False,
                )
            )
        except ChannelRejected as error:
            message = f"Telegram does not call `webhook_url`, `{url}`: {error}"
            raise ChannelUnavailable(message) from error

    async def forget_webhook(self) -> None:
        """Let updates be polled for; what waits stays."""
        await self.read(lambda: self.bot.delete_webhook(drop_pending_updates=False))

    async def updates(self, offset: int | None) -> list[object]:
        """Wait for updates from `offset` on, and confirm those before it.

        They are left as JSON: what the library can't read yet must not stop all that follows it.
        """
        asked = {"timeout": POLL_S, "allowed_updates": json.dumps(ALLOWED_UPDATES)}
        if offset is not None:
            asked["offset"] = offset
        url = f"{self.bot.base_url}/getUpdates?{urlencode(asked)}"
        answer: object = await self.read(
            lambda: self._request.post(url, read_timeout=POLL_S + _POLL_SLACK_S),
            told=about_the_token,
        )
        if not isinstance(answer, list):
            message = f"`{self.name}`: an answer that can't be read"
            raise ChannelUnavailable(message)
        return list(answer)

    # --- its files -------------------------------------------------------------------------------

    async def download(self, file_id: str, *, max_bytes: int) -> bytes:
        """Get a file.

        Raises:
            ChannelRejected: It is larger, gone, or no file of this account.
        """
        file = await self.read(lambda: self.bot.get_file(file_id))
        path = file.file_path or ""
        if not path.startswith(("http://", "https://")):
            message = (
                f"`{self.name}`: the server keeps its files to itself; start it without --local"
            )
            raise ChannelRejected(message)
        return await self._http.download(path, max_bytes=max_bytes)

    # --- what may go wrong -----------------------------------------------------------------------

    async def posted(self, to: Address, post: Callable[[int], Awaitable[Message]]) -> MessageRef:
        """Post into a chat, or into the one that it has become."""
        try:
            message = await post(int(to.chat))
        except ChatMigrated as moved:
            chat = moved.new_chat_id
            message = await self.called(lambda: post(chat))
            to = replace(to, chat=str(chat))
        except TelegramError as error:
            raise translated(self.name, error) from error
        return MessageRef(address=to, message=str(message.message_id))

    async def changed(self, call: Callable[[], Awaitable[object]]) -> None:
        """Make a call that changes what stands; the same again is no error."""
        try:
            await call()
        except TelegramError as error:
            if not is_as_wanted(error):
                raise translated(self.name, error) from error

    async def called(self, call: Callable[[], Awaitable[T]], *, told: Told = translated) -> T:
        """Make any other call."""
        try:
            return await call()
        except TelegramError as error:
            raise told(self.name, error) from error

    async def read(self, call: Callable[[], Awaitable[T]], *, told: Told = translated) -> T:
        """Make a call that changes nothing, or nothing more the second time."""
        try:
            return await self.called(call, told=told)
        except DeliveryUnknown as error:
            raise ChannelUnavailable(str(error)) from error
