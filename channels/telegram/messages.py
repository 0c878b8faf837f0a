"""Posts and edits messages: in their rich form if they have one, else in the ordinary form.

A server may be too old for rich messages; after its first refusal this process sends no more of them.
Or it may refuse one message; if that one is still growing, its rich form is not tried again. In both
cases the ordinary form is sent at once, and the caller does not notice. A call that may have arrived is
never repeated.

Rich messages came with Bot API 10.1 (2026-06-11): `sendRichMessage`, `sendRichMessageDraft`, and
`editMessageText` with `rich_message` in place of `text`; an InputRichMessage has exactly one of `html`,
`markdown` and `blocks`. Read 2026-11; not tried on the live service. Undocumented: whether a draft may
become rich while it grows (at worst it counts as a new draft, which is not animated), and whether links
in a rich message have previews and how to turn them off.
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
from zeroclaw import Address, ChannelRejected, Log, MessageRef

T = TypeVar("T")

MOST_REFUSED = 128
"""Growing messages to remember whose rich form was refused."""
MOST_TOAST_CHARS = 200
"""Bot API, answerCallbackQuery, read 2026-11."""
_UNSEEN: Json = {"is_disabled": True}


class Messages:
    """Posts and edits the messages of one account.

    Attributes:
        is_rich: Texts are sent in their rich form if they have one.
    """

    def __init__(self, account: Account, settings: TelegramSettings, log: Log) -> None:
        """Send nothing yet."""
        self.is_rich = settings.rich
        self._account = account
        self._previews: Json = {"is_disabled": not settings.link_previews}
        self._log = log
        self._refused: deque[str] = deque(maxlen=MOST_REFUSED)

    async def post(self, to: Address, shown: Styled, *, reply_to: str = "") -> MessageRef:
        """Post a message, even if the message that it replies to is gone."""
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
        # No preview for a question, because its link leads to the bot itself.
        previews = _UNSEEN if shown.asks else self._previews
        make, methods = partial(self._account.posted, to), ("sendRichMessage", "sendMessage")
        return await self._either(make, methods, asked, shown, previews=previews)

    async def edit(self, ref: MessageRef, shown: Styled, *, is_caption: bool = False) -> None:
        """Replace a message's text or a file's caption; equal content is no error."""
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
        """Delete a message; one that no longer exists is no error."""
        asked = {"chat_id": int(ref.address.chat), "message_id": int(ref.message)}
        await self._account.changed("deleteMessage", asked)

    async def preview(self, to: Address, shown: Styled, *, draft: int) -> None:
        """Show unsent text in a private chat; `draft` is its id, any number except 0."""
        chat = int(to.chat)
        asked = {"chat_id": chat, "draft_id": draft, "message_thread_id": _thread(to)}
        methods = "sendRichMessageDraft", "sendMessageDraft"
        await self._either(self._account.changed, methods, asked, shown, grows=f"{chat} {draft}")

    async def toast(self, query: str, text: str) -> None:
        """Answer a press; the text is shown to the person who pressed."""
        short = cut(text, MOST_TOAST_CHARS) or None
        await self._account.call("answerCallbackQuery", {"callback_query_id": query, "text": short})

    async def typing(self, to: Address) -> None:
        """Show that the bot is working."""
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
        """Make the call for a text's rich form, or for its ordinary one.

        Args:
            make: Makes a call.
            methods: The method for the rich form, and the one for the ordinary form.
            asked: Parameters of both.
            shown: The text.
            previews: Options for link previews in the ordinary form.
            grows: Identifies a message that may still grow, to remember a refusal; empty for others.
        """
        richly, usually = methods
        if self.is_rich and shown.rich and grows not in self._refused:
            try:
                return await make(richly, {**asked, "rich_message": {"html": shown.rich}})
            except MethodUnknown as error:
                self.is_rich = False
                self._log("rich_messages_not_known", level="warning", why=str(error))
            except ChannelRejected as refused:
                # Some refusals are not about the form, such as that the message does not exist.
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
