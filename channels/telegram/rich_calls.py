"""Make the calls of the Bot API that show texts in their rich form, which the library does not know.

Of Bot API 10.1 (2026-06-11): `sendRichMessage`, `sendRichMessageDraft`, and `editMessageText` with
`rich_message` in place of `text`; an InputRichMessage has exactly one of `html`, `markdown` and
`blocks`. Read 2026-11; python-telegram-bot 22.8 knows the methods of 10.0. Nothing was tried on the
live service. That a draft may turn rich while it is written is not said: at worst it is then another
one, which is not animated. Nor is it said that links in a rich message have previews, or how to turn
them off.
"""

from typing import TypeVar

from telegram import Bot, Message
from telegram.error import EndPointNotFound, InvalidToken

from channels.telegram import parameters
from channels.telegram.calls import Calls
from channels.telegram.styled import Styled
from zeroclaw import Address, MessageRef

T = TypeVar("T")


class RichCalls:
    """One bot account's."""

    def __init__(self, calls: Calls) -> None:
        """Hold the account's other calls."""
        self._calls = calls

    async def send(self, to: Address, text: Styled, *, reply_to: str = "") -> MessageRef:
        """Post a text."""
        return await self._calls.post(
            to,
            lambda bot, chat: _asked(
                bot,
                "sendRichMessage",
                text.rich,
                chat_id=chat,
                message_thread_id=parameters.thread(to),
                reply_parameters=parameters.answering(reply_to),
                reply_markup=parameters.receipts(text.receipts),
            ),
        )

    async def preview(self, to: Address, html: str, *, draft: int) -> None:
        """Show a text that is not sent; see `Calls.preview`."""
        await self._calls.change(
            lambda bot: _asked(
                bot,
                "sendRichMessageDraft",
                html,
                chat_id=int(to.chat),
                draft_id=draft,
                message_thread_id=parameters.thread(to),
            )
        )

    async def edit(self, ref: MessageRef, text: Styled) -> None:
        """Replace a text; the same again is no error."""
        # The Bot API reads methods in any case. Of one that the library has it warns.
        await self._calls.change(
            lambda bot: _asked(
                bot,
                "editmessagetext",
                text.rich,
                chat_id=int(ref.address.chat),
                message_id=int(ref.message),
                reply_markup=parameters.receipts(text.receipts),
            )
        )


async def _asked(bot: Bot, method: str, html: str, **values: object) -> Message:
    """Make a call.

    Raises:
        TelegramError: As of every other call.
    """
    asked = {**values, "rich_message": {"html": html}}
    try:
        # What a draft is answered with, `True`, is handed back as it is, and nobody reads it.
        return await bot.do_api_request(method, api_kwargs=asked, return_type=Message)
    except (InvalidToken, EndPointNotFound) as error:
        # Here the library takes a wrong token and a method that is not there for the same.
        said = error.__cause__
        if isinstance(said, InvalidToken):
            raise said from said.__cause__
        raise
