"""Show what stands in a chat: each message in its rich form where it has one, else in the ordinary.

A server may be older than rich messages: the first one then is the last for this process. Or it may
not take just this one; of a message that still grows it is not asked again. Either way the ordinary
form follows at once, so that who posts never hears of it. What may have arrived is never repeated.

Rich messages are of Bot API 10.1 (2026-06-11): `sendRichMessage`, `sendRichMessageDraft`, and
`editMessageText` with `rich_message` in place of `text`; an InputRichMessage has exactly one of
`html`, `markdown` and `blocks`. Read 2026-11; nothing was tried on the live service. That a draft may
turn rich while it is written is not said: at worst it is then another one, which is not animated. Nor
is it said that links in a rich message have previews, or how to turn them off.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from channels._remote.fields import Json
from channels._remote.limits import cut
from channels.telegram import TelegramSettings
from channels.telegram.account import Account
from channels.telegram.errors import MethodUnknown
from channels.telegram.styled import Styled
from zeroclaw import Address, ChannelLog, ChannelRejected, MessageRef

T = TypeVar("T")

MOST_REFUSED = 128
"""Messages that are remembered because their rich form was refused."""
MOST_TOAST_CHARS = 200
"""Bot API, answerCallbackQuery, read 2026-11."""
_UNSEEN: Json = {"is_disabled": True}


class Messages:
    """All messages of one account.

    Attributes:
        is_rich: Texts are shown in their rich form where they have one.
    """

    def __init__(self, account: Account, settings: TelegramSettings, log: ChannelLog) -> None:
        """Hold what is needed; all of it is the account's."""
        self.is_rich = settings.rich
        self._account = account
        self._previews: Json = {"is_disabled": not settings.link_previews}
        self._log = log
        self._refused: deque[str] = deque(maxlen=MOST_REFUSED)

    async def post(self, to: Address, shown: Styled, *, reply_to: str = "") -> MessageRef:
        """Post a message, which is sent also where what it answers is gone."""
        asked: dict[str, object] = {
            "message_thread_id": _thread(to),
            "reply_markup": {"force_reply": True, "selective": True}
            if shown.asks
            else _markup(shown),
        }
        if reply_to.isdecimal():
            asked["reply_parameters"] = {
                "message_id": int(reply_to),
                "allow_sending_without_reply": True,
            }
        if shown.file is not None:
            asked |= _caption(shown) | {"disable_content_type_detection": True}
            return await self._account.posted(to, "sendDocument", asked, file=shown.file)
        # A question's link leads to the bot itself.
        previews = _UNSEEN if shown.asks else self._previews
        make, methods = partial(self._account.posted, to), ("sendRichMessage", "sendMessage")
        return await self._either(make, methods, asked, shown, previews=previews)

    async def edit(self, ref: MessageRef, shown: Styled, *, is_caption: bool = False) -> None:
        """Replace a message, or what stands with a file; the same again is no error."""
        chat, number = int(ref.address.chat), int(ref.message)
        asked = {"chat_id": chat, "message_id": number, "reply_markup": _markup(shown)}
        changed, method = self._account.changed, "editMessageText"
        if is_caption or shown.file is not None:
            await changed("editMessageCaption", asked | _caption(shown))
            return
        grows = f"{chat}/{number}"
        await self._either(
            changed, (method, method), asked, shown, previews=self._previews, grows=grows
        )

    async def delete(self, ref: MessageRef) -> None:
        """Remove a message; one that is gone is no error."""
        asked = {"chat_id": int(ref.address.chat), "message_id": int(ref.message)}
        await self._account.changed("deleteMessage", asked)

    async def preview(self, to: Address, shown: Styled, *, draft: int) -> None:
        """Show a text in a private chat that is not sent; `draft` is any number but 0."""
        chat = int(to.chat)
        asked = {"chat_id": chat, "draft_id": draft, "message_thread_id": _thread(to)}
        methods = "sendRichMessageDraft", "sendMessageDraft"
        await self._either(self._account.changed, methods, asked, shown, grows=f"{chat} {draft}")

    async def toast(self, query: str, text: str) -> None:
        """Answer a press; the text is shown to its sender."""
        short = cut(text, MOST_TOAST_CHARS) or None
        await self._account.call("answerCallbackQuery", {"callback_query_id": query, "text": short})

    async def typing(self, to: Address) -> None:
        """Show that the bot is at work."""
        asked = {"chat_id": int(to.chat), "action": "typing", "message_thread_id": _thread(to)}
        await self._account.call("sendChatAction", asked)

    # --- which form ------------------------------------------------------------------------------

    async def _either(
        self,
        make: Callable[[str, Json], Awaitable[T]],
        methods: tuple[str, str],
        asked: Json,
        shown: Styled,
        *,
        previews: Json | None = None,
        grows: str = "",
    ) -> T:
        """Make the call that shows a text in one of its forms.

        Args:
            make: Makes a call.
            methods: That for the rich form, where the text has one and nothing was refused; and
                that for the ordinary one.
            asked: What both are asked.
            shown: The text.
            previews: Of links, in the ordinary form.
            grows: Names what will show more of it soon.
        """
        richly, usually = methods
        if self.is_rich and shown.rich and grows not in self._refused:
            try:
                return await make(richly, {**asked, "rich_message": {"html": shown.rich}})
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
        said = {
            "text": shown.text,
            "entities": shown.marks or None,
            "link_preview_options": previews,
        }
        return await make(usually, {**asked, **said})


def _thread(place: Address) -> int | None:
    return None if place.thread is None else int(place.thread)


def _caption(shown: Styled) -> dict[str, object]:
    return {"caption": shown.text or None, "caption_entities": shown.marks or None}


def _markup(shown: Styled) -> Json | None:
    """Return the buttons under a message, None for none."""
    return {"inline_keyboard": shown.rows} if shown.rows else None
