"""Make single calls of the Bot API, and raise this house's errors."""

import mimetypes
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from urllib.parse import urlencode

from telegram import (
    Bot,
    ForceReply,
    InputFile,
    LinkPreviewOptions,
    Message,
    User,
    WebhookInfo,
)
from telegram.constants import ChatAction
from telegram.error import ChatMigrated, InvalidToken, TelegramError

from channels.telegram import parameters
from channels.telegram.cards import FILE_NAME, Button, View
from channels.telegram.connection import Connection, Download
from channels.telegram.styled import Styled
from channels.telegram.troubles import about_the_token, is_as_wanted, translated
from zeroclaw import (
    Address,
    ChannelRejected,
    ChannelUnavailable,
    DeliveryUnknown,
    MessageRef,
    OutgoingFile,
    ZeroclawError,
    replace,
)

T = TypeVar("T")
Told = Callable[[str, TelegramError], ZeroclawError]

# Else the first file that is sent reads the machine's tables of types while everybody waits.
mimetypes.init()

POLL_S = 25
"""Seconds that Telegram holds a poll open; routers forget connections that are silent for longer."""
MOST_CONNECTIONS = 64
_CONNECT_S, _READ_S, _SLOWEST_BYTES_PER_S = 10.0, 20.0, 100_000
_POLL_SLACK_S = 10.0
LONGEST_POLL_S = POLL_S + 3 * _POLL_SLACK_S
"""Seconds after which a poll has died that no other time-out has ended: each byte starts those anew."""
MOST_TOAST_CHARS = 200
"""Bot API, answerCallbackQuery, read 2026-11."""


class Calls:
    """One bot account's calls; safe to make concurrently."""

    def __init__(self, *, name: str, token: str, base_url: str, link_previews: bool) -> None:
        """Open nothing yet.

        Args:
            name: The channel's, for errors.
            token: Of the bot.
            base_url: Without a slash at its end.
            link_previews: Whether Telegram looks behind links.
        """
        self._name = name
        self._request = Connection(most=MOST_CONNECTIONS, connect_s=_CONNECT_S, read_s=_READ_S)
        self._bot = Bot(
            token,
            base_url=f"{base_url}/bot",
            base_file_url=f"{base_url}/file/bot",
            request=self._request,
            get_updates_request=self._request,  # one pool, one set of certificates
        )
        self._polled = f"{base_url}/bot{token}/getUpdates"
        self._previews = LinkPreviewOptions(is_disabled=not link_previews)

    async def aclose(self) -> None:
        """Close every connection; safe twice."""
        await self._request.shutdown()

    # --- the account -----------------------------------------------------------------------------

    async def me(self) -> User:
        """Return the bot."""
        return await self._read(self._bot.get_me, told=about_the_token)

    async def read(self, call: Callable[[Bot], Awaitable[T]]) -> T:
        """Make another call that may be made twice."""
        return await self._read(lambda: call(self._bot))

    async def post(self, to: Address, call: Callable[[Bot, int], Awaitable[Message]]) -> MessageRef:
        """Make another call that posts into a chat."""
        return await self._posted(to, lambda chat: call(self._bot, chat))

    async def change(self, call: Callable[[Bot], Awaitable[object]]) -> None:
        """Make another call that shows something; the same again is no error."""
        await self._changed(lambda: call(self._bot))

    async def webhook(self) -> WebhookInfo:
        """Return where updates are sent to, if they are."""
        return await self._read(self._bot.get_webhook_info)

    async def set_webhook(
        self, url: str, *, secret: str, allowed: tuple[str, ...], connections: int
    ) -> None:
        """Let updates be posted to an address; what waits stays.

        Args:
            url: The address.
            secret: What Telegram shows with each post.
            allowed: Which kinds of updates.
            connections: Posts at once, of different chats.

        Raises:
            ChannelUnavailable: Telegram does not post there, now or at all: it says alike that a
                name does not exist and that it could not look it up.
        """
        try:
            await self._read(
                lambda: self._bot.set_webhook(
                    url,
                    secret_token=secret,
                    allowed_updates=list(allowed),
                    max_connections=connections,
                    drop_pending_updates=False,
                )
            )
        except ChannelRejected as error:
            message = f"Telegram does not call `webhook_url`, `{url}`: {error}"
            raise ChannelUnavailable(message) from error

    async def forget_webhook(self) -> None:
        """Let updates be polled for; what waits stays."""
        await self._read(lambda: self._bot.delete_webhook(drop_pending_updates=False))

    async def updates(self, offset: int | None, allowed: Sequence[str]) -> list[object]:
        """Wait for updates from `offset` on, and confirm those before it.

        They are left as JSON: what the library can't read yet must not stop all that follows it.
        """
        asked: dict[str, object] = {
            "timeout": POLL_S,
            "allowed_updates": "[" + ",".join(f'"{one}"' for one in allowed) + "]",
        }
        if offset is not None:
            asked["offset"] = offset
        url = f"{self._polled}?{urlencode(asked)}"
        answer: object = await self._read(
            lambda: self._request.post(url, read_timeout=POLL_S + _POLL_SLACK_S),
            told=about_the_token,
        )
        if not isinstance(answer, list):
            message = f"`{self._name}`: an answer that can't be read"
            raise ChannelUnavailable(message)
        return list(answer)

    # --- messages --------------------------------------------------------------------------------

    async def send(
        self,
        to: Address,
        text: Styled,
        *,
        rows: Sequence[Sequence[Button]] = (),
        reply_to: str = "",
    ) -> MessageRef:
        """Post a text."""
        return await self._posted(
            to,
            lambda chat: self._bot.send_message(
                chat,
                text.text,
                entities=parameters.entities(text.marks),
                message_thread_id=parameters.thread(to),
                reply_markup=parameters.keyboard(rows) or parameters.receipts(text.receipts),
                reply_parameters=parameters.answering(reply_to),
                link_preview_options=self._previews,
            ),
        )

    async def preview(self, to: Address, text: Styled, *, draft: int) -> None:
        """Show a text in a private chat that is not sent; `draft` is any number but 0."""
        await self._called(
            lambda: self._bot.send_message_draft(
                int(to.chat),
                draft,
                text.text,
                entities=parameters.entities(text.marks),
                message_thread_id=parameters.thread(to),
            )
        )

    async def send_card(self, to: Address, card: View) -> MessageRef:
        """Post a card: a text, or a file with a caption."""
        if not card.attached:
            return await self.send(to, card.shown, rows=card.rows)
        return await self._posted(
            to,
            lambda chat: self._bot.send_document(
                chat,
                InputFile(card.attached.encode(), filename=FILE_NAME),
                caption=card.shown.text,
                caption_entities=parameters.entities(card.shown.marks),
                message_thread_id=parameters.thread(to),
                reply_markup=parameters.keyboard(card.rows),
                disable_content_type_detection=True,
            ),
        )

    async def send_file(self, to: Address, file: OutgoingFile, *, reply_to: str = "") -> MessageRef:
        """Post a file with its caption."""
        upload_s = len(file.content) / _SLOWEST_BYTES_PER_S
        return await self._posted(
            to,
            lambda chat: self._bot.send_document(
                chat,
                InputFile(file.content, filename=file.name),
                caption=file.caption or None,
                message_thread_id=parameters.thread(to),
                reply_parameters=parameters.answering(reply_to),
                disable_content_type_detection=True,
                read_timeout=_READ_S + upload_s,
            ),
        )

    async def edit_caption(self, ref: MessageRef, caption: str) -> None:
        """Replace what stands with a file; the same again is no error."""
        await self._changed(
            lambda: self._bot.edit_message_caption(
                chat_id=int(ref.address.chat),
                message_id=int(ref.message),
                caption=caption or None,
            )
        )

    async def edit(
        self, ref: MessageRef, text: Styled, *, rows: Sequence[Sequence[Button]] = ()
    ) -> None:
        """Replace a text and its buttons; the same again is no error."""
        await self._changed(
            lambda: self._bot.edit_message_text(
                text.text,
                chat_id=int(ref.address.chat),
                message_id=int(ref.message),
                entities=parameters.entities(text.marks),
                reply_markup=parameters.keyboard(rows) or parameters.receipts(text.receipts),
                link_preview_options=self._previews,
            )
        )

    async def edit_card(self, ref: MessageRef, card: View) -> None:
        """Show a card as it is now; its file stays."""
        if not card.attached:
            await self.edit(ref, card.shown, rows=card.rows)
            return
        await self._changed(
            lambda: self._bot.edit_message_caption(
                chat_id=int(ref.address.chat),
                message_id=int(ref.message),
                caption=card.shown.text,
                caption_entities=parameters.entities(card.shown.marks),
                reply_markup=parameters.keyboard(card.rows),
            )
        )

    async def delete(self, ref: MessageRef) -> None:
        """Remove a message; one that is gone is no error."""
        await self._changed(
            lambda: self._bot.delete_message(int(ref.address.chat), int(ref.message))
        )

    async def ask_why(self, card: MessageRef, question: Styled) -> MessageRef:
        """Ask for a reason, in reply to a card; the person's next message becomes a reply to it."""
        return await self._posted(
            card.address,
            lambda chat: self._bot.send_message(
                chat,
                question.text,
                entities=parameters.entities(question.marks),
                message_thread_id=parameters.thread(card.address),
                reply_parameters=parameters.answering(card.message),
                reply_markup=ForceReply(selective=True),
                link_preview_options=LinkPreviewOptions(is_disabled=True),
            ),
        )

    async def toast(self, query: str, text: str) -> None:
        """Answer a press; the text is shown to whoever pressed."""
        short = text if len(text) <= MOST_TOAST_CHARS else f"{text[: MOST_TOAST_CHARS - 1]}…"
        await self._called(lambda: self._bot.answer_callback_query(query, text=short or None))

    async def typing(self, to: Address) -> None:
        """Show that the bot is at work."""
        await self._called(
            lambda: self._bot.send_chat_action(
                int(to.chat), ChatAction.TYPING, message_thread_id=parameters.thread(to)
            )
        )

    async def download(self, file_id: str, *, max_bytes: int) -> bytes:
        """Get a file.

        Raises:
            ChannelRejected: It is larger, gone, or no file of this account.
        """
        file = await self._read(lambda: self._bot.get_file(file_id))
        if (file.file_size or 0) > max_bytes:
            raise self._too_large(max_bytes)
        path = file.file_path or ""
        if not path.startswith(("http://", "https://")):
            message = (
                f"`{self._name}`: the server keeps its files to itself; start it without --local"
            )
            raise ChannelRejected(message)
        content = await self._read(lambda: self._content(path, max_bytes))
        if len(content) > max_bytes:
            raise self._too_large(max_bytes)
        return content

    async def _content(self, url: str, most: int) -> bytes:
        try:
            return await Download(self._request, most=most).retrieve(url)
        except InvalidToken as error:
            # The library reads a 404 so, which for a file only says that it is gone.
            message = f"`{self._name}`: the file is no longer there"
            raise ChannelRejected(message) from error

    def _too_large(self, max_bytes: int) -> ChannelRejected:
        return ChannelRejected(f"`{self._name}`: the file is larger than {max_bytes} bytes")

    # --- what may go wrong -----------------------------------------------------------------------

    async def _posted(self, to: Address, post: Callable[[int], Awaitable[Message]]) -> MessageRef:
        """Post into a chat, or into the one that it has become."""
        try:
            message = await post(int(to.chat))
        except ChatMigrated as moved:
            chat = moved.new_chat_id
            message = await self._called(lambda: post(chat))
            to = replace(to, chat=str(chat))
        except TelegramError as error:
            raise translated(self._name, error) from error
        return MessageRef(address=to, message=str(message.message_id))

    async def _changed(self, call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except TelegramError as error:
            if not is_as_wanted(error):
                raise translated(self._name, error) from error

    async def _called(self, call: Callable[[], Awaitable[T]], *, told: Told = translated) -> T:
        try:
            return await call()
        except TelegramError as error:
            raise told(self._name, error) from error

    async def _read(self, call: Callable[[], Awaitable[T]], *, told: Told = translated) -> T:
        """Make a call that changes nothing, or nothing more the second time."""
        try:
            return await self._called(call, told=told)
        except DeliveryUnknown as error:
            raise ChannelUnavailable(str(error)) from error
