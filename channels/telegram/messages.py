"""Show what stands in a chat: each message in its rich form where it has one, else in the ordinary.

A server may be older than rich messages: the first one then is the last for this process. Or it may
not take just this one; of a message that still grows it is not asked again. Either way the ordinary
form follows at once, so that who posts never hears of it. What may have arrived is never repeated.

Rich messages are of Bot API 10.1 (2026-06-11): `sendRichMessage`, `sendRichMessageDraft`, and
`editMessageText` with `rich_message` in place of `text`; an InputRichMessage has exactly one of
`html`, `markdown` and `blocks`. Read 2026-11; python-telegram-bot 22.8 knows the methods of 10.0.
Nothing was tried on the live service. That a draft may turn rich while it is written is not said: at
worst it is then another one, which is not animated. Nor is it said that links in a rich message have
previews, or how to turn them off.
"""

import mimetypes
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ParamSpec, TypeVar

from telegram import (
    CopyTextButton,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    ReplyParameters,
)
from telegram.constants import ChatAction
from telegram.error import EndPointNotFound, InvalidToken

from channels._remote.http import READ_S, SLOWEST_BYTES_PER_S
from channels._remote.limits import cut
from channels.telegram import TelegramSettings
from channels.telegram.account import Account
from channels.telegram.errors import MethodUnknown
from channels.telegram.styled import Styled
from zeroclaw import Address, ChannelLog, ChannelRejected, MessageRef

C = TypeVar("C")
P = ParamSpec("P")
T = TypeVar("T")

# Else the first file that is sent reads the machine's tables of types while all others wait.
mimetypes.init()

MOST_REFUSED = 128
"""Messages that are remembered because their rich form was refused."""
MOST_TOAST_CHARS = 200
"""Bot API, answerCallbackQuery, read 2026-11."""
_UNSEEN = LinkPreviewOptions(is_disabled=True)


class Messages:
    """All messages of one account.

    Attributes:
        is_rich: Texts are shown in their rich form where they have one.
    """

    def __init__(self, account: Account, settings: TelegramSettings, log: ChannelLog) -> None:
        """Hold what is needed; all of it is the account's."""
        self.is_rich = settings.rich
        self._account = account
        self._bot = account.bot
        self._previews = LinkPreviewOptions(is_disabled=not settings.link_previews)
        self._log = log
        self._refused: deque[str] = deque(maxlen=MOST_REFUSED)

    async def post(self, to: Address, shown: Styled, *, reply_to: str = "") -> MessageRef:
        """Post a message, which is sent also where what it answers is gone."""
        thread, answered = _thread(to), None
        markup = ForceReply(selective=True) if shown.asks else _markup(shown)
        if reply_to.isdecimal():
            answered = ReplyParameters(int(reply_to), allow_sending_without_reply=True)
        if (file := shown.file) is not None:
            return await self._account.posted(
                to,
                lambda chat: self._bot.send_document(
                    chat,
                    InputFile(file.content, filename=file.name),
                    caption=shown.text or None,
                    caption_entities=_entities(shown),
                    message_thread_id=thread,
                    reply_markup=markup,
                    reply_parameters=answered,
                    disable_content_type_detection=True,
                    read_timeout=READ_S + len(file.content) / SLOWEST_BYTES_PER_S,
                ),
            )
        return await self._either(
            shown,
            partial(self._account.posted, to),
            lambda chat: self._richly(
                "sendRichMessage",
                shown,
                chat_id=chat,
                message_thread_id=thread,
                reply_markup=markup,
                reply_parameters=answered,
            ),
            lambda chat: self._bot.send_message(
                chat,
                shown.text,
                entities=_entities(shown),
                message_thread_id=thread,
                reply_markup=markup,
                reply_parameters=answered,
                # A question's link leads to the bot itself.
                link_preview_options=_UNSEEN if shown.asks else self._previews,
            ),
        )

    async def edit(self, ref: MessageRef, shown: Styled, *, is_caption: bool = False) -> None:
        """Replace a message, or what stands with a file; the same again is no error."""
        chat, number, markup = int(ref.address.chat), int(ref.message), _markup(shown)
        if is_caption or shown.file is not None:
            await self._account.changed(
                lambda: self._bot.edit_message_caption(
                    chat_id=chat,
                    message_id=number,
                    caption=shown.text or None,
                    caption_entities=_entities(shown),
                    reply_markup=markup,
                )
            )
            return
        await self._either(
            shown,
            self._account.changed,
            # The Bot API reads methods in any case. Of one that the library has it warns.
            lambda: self._richly(
                "editmessagetext", shown, chat_id=chat, message_id=number, reply_markup=markup
            ),
            lambda: self._bot.edit_message_text(
                shown.text,
                chat_id=chat,
                message_id=number,
                entities=_entities(shown),
                reply_markup=markup,
                link_preview_options=self._previews,
            ),
            grows=f"{chat}/{number}",
        )

    async def delete(self, ref: MessageRef) -> None:
        """Remove a message; one that is gone is no error."""
        chat, number = int(ref.address.chat), int(ref.message)
        await self._account.changed(lambda: self._bot.delete_message(chat, number))

    async def preview(self, to: Address, shown: Styled, *, draft: int) -> None:
        """Show a text in a private chat that is not sent; `draft` is any number but 0."""
        chat, thread = int(to.chat), _thread(to)
        await self._either(
            shown,
            self._account.changed,
            lambda: self._richly(
                "sendRichMessageDraft",
                shown,
                chat_id=chat,
                draft_id=draft,
                message_thread_id=thread,
            ),
            lambda: self._bot.send_message_draft(
                chat, draft, shown.text, entities=_entities(shown), message_thread_id=thread
            ),
            grows=f"{chat} {draft}",
        )

    async def toast(self, query: str, text: str) -> None:
        """Answer a press; the text is shown to its sender."""
        short = cut(text, MOST_TOAST_CHARS) or None
        await self._account.called(lambda: self._bot.answer_callback_query(query, text=short))

    async def typing(self, to: Address) -> None:
        """Show that the bot is at work."""
        chat, thread = int(to.chat), _thread(to)
        await self._account.called(
            lambda: self._bot.send_chat_action(chat, ChatAction.TYPING, message_thread_id=thread)
        )

    # --- which form ------------------------------------------------------------------------------

    async def _either(
        self,
        shown: Styled,
        make: Callable[[Callable[P, Awaitable[C]]], Awaitable[T]],
        richly: Callable[P, Awaitable[C]],
        usually: Callable[P, Awaitable[C]],
        *,
        grows: str = "",
    ) -> T:
        """Make the call that shows a text in one of its forms.

        Args:
            shown: The text.
            make: Makes a call, and translates its errors.
            richly: In the rich form, where the text has one and nothing was refused.
            usually: In the ordinary one.
            grows: Names what will show more of it soon.
        """
        if not self.is_rich or not shown.rich or grows in self._refused:
            return await make(usually)
        try:
            return await make(richly)
        except MethodUnknown as error:
            self.is_rich = False
            self._log("rich_messages_not_known", level="warning", why=str(error))
        except ChannelRejected as refused:
            # What is not about the form: there is no such message, or it is none of ours.
            if type(refused) is not ChannelRejected or refused.gone:
                raise
            if grows:
                self._refused.append(grows)
            self._log("rich_message_refused", why=str(refused))
        return await make(usually)

    async def _richly(self, method: str, shown: Styled, **values: object) -> Message:
        """Make a call that the library does not know.

        Raises:
            TelegramError: As of every other call.
        """
        asked = {**values, "rich_message": {"html": shown.rich}}
        try:
            # What a draft is answered with, `True`, is handed back as it is, and nobody reads it.
            return await self._bot.do_api_request(method, api_kwargs=asked, return_type=Message)
        except (InvalidToken, EndPointNotFound) as error:
            # Here the library takes a wrong token and a method that is not there for the same.
            said = error.__cause__
            if isinstance(said, InvalidToken):
                raise said from said.__cause__
            raise


def _thread(place: Address) -> int | None:
    return None if place.thread is None else int(place.thread)


def _entities(shown: Styled) -> list[MessageEntity]:
    return [
        MessageEntity(
            one.kind, one.offset, one.length, url=one.url or None, language=one.language or None
        )
        for one in shown.marks
    ]


def _markup(shown: Styled) -> InlineKeyboardMarkup | None:
    """Return the buttons under a message, None for none."""
    rows = [
        [
            InlineKeyboardButton(one.label, copy_text=CopyTextButton(one.copied))
            if one.copied
            else InlineKeyboardButton(one.label, callback_data=one.data)
            for one in row
        ]
        for row in shown.rows
    ]
    return InlineKeyboardMarkup(rows) if rows else None
