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
from channels._remote.limits import cut, unknown
from channels.telegram import TelegramSettings
from channels.telegram.account import Account
from channels.telegram.errors import NoMethod
from channels.telegram.styled import Styled
from zeroclaw import Address, ChannelRejected, Log, MessageRef

T = TypeVar("T")

MAX_REFUSED = 128
"""Growing messages to remember whose rich form was refused."""
MAX_TOAST_CHARS = 200
"""Bot API, answerCallbackQuery, read 2026-11."""
_NO_PREVIEW: Json = {"is_disabled": True}


class Messages:
    """Posts and edits the messages of one account.

    Attributes:
        is_rich: Texts are sent in their rich form if they have one.
    """

    def __init__(self, account: Account, settings: TelegramSettings, log: Log) -> None:
        """Send nothing yet."""
        self.is_rich = settings.rich
        self._previews: Json = {"is_disabled": not settings.link_previews}
        self._account, self._log = account, log
        self._refused: deque[str] = deque(maxlen=MAX_REFUSED)

    async def post(self, to: Address, styled: Styled, *, reply_to: str = "") -> MessageRef:
        """Post a message, even if the message that it replies to is gone."""
        fields = {**_chat(to), "reply_markup": _markup(styled)}
        if reply_to.isdecimal():
            reply = {"message_id": int(reply_to), "allow_sending_without_reply": True}
            fields["reply_parameters"] = reply
        if styled.file is not None:
            fields |= _caption(styled) | {"disable_content_type_detection": True}
            return await self._account.post(to, "sendDocument", fields, file=styled.file)
        # No preview for a question, because its link leads to the bot itself.
        previews = _NO_PREVIEW if styled.asks else self._previews
        call, methods = partial(self._account.post, to), ("sendRichMessage", "sendMessage")
        return await self._call(call, methods, fields, styled, previews=previews)

    async def edit(self, ref: MessageRef, styled: Styled, *, is_caption: bool = False) -> None:
        """Replace a message's text or a file's caption; equal content is no error."""
        fields = {**_message(ref), "reply_markup": _markup(styled)}
        change, methods = self._account.change, ("editMessageText", "editMessageText")
        if is_caption or styled.file is not None:
            await change("editMessageCaption", fields | _caption(styled))
            return
        growing = f"{ref.address.chat}/{ref.message}"
        await self._call(change, methods, fields, styled, previews=self._previews, growing=growing)

    async def delete(self, ref: MessageRef) -> None:
        """Delete a message; one that no longer exists is no error."""
        await self._account.change("deleteMessage", _message(ref))

    async def preview(self, to: Address, styled: Styled, *, draft: int) -> None:
        """Show unsent text in a private chat; `draft` is its id, any number except 0."""
        fields, growing = {**_chat(to), "draft_id": draft}, f"{to.chat} {draft}"
        methods = "sendRichMessageDraft", "sendMessageDraft"
        await self._call(self._account.change, methods, fields, styled, growing=growing)

    async def toast(self, query: str, text: str) -> None:
        """Answer a press; the text is shown to the person who pressed."""
        short = cut(text, MAX_TOAST_CHARS) or None
        await self._account.call("answerCallbackQuery", {"callback_query_id": query, "text": short})

    async def typing(self, to: Address) -> None:
        """Show that the bot is working."""
        await self._account.call("sendChatAction", {**_chat(to), "action": "typing"})

    # --- the form ------------------------------------------------------------------------------

    async def _call(
        self,
        call: Callable[[str, Json], Awaitable[T]],
        methods: tuple[str, str],
        fields: Json,
        styled: Styled,
        *,
        previews: Json | None = None,
        growing: str = "",
    ) -> T:
        """Make the call for a text's rich form, or for its ordinary one.

        Args:
            call: Makes a call.
            methods: The method for the rich form, and the one for the ordinary form.
            fields: The parameters of both.
            styled: The text in both forms.
            previews: Options for link previews in the ordinary form.
            growing: Identifies a message that may still grow, to remember a refusal; empty for others.
        """
        rich_method, plain_method = methods
        if self.is_rich and styled.rich and growing not in self._refused:
            try:
                return await call(rich_method, {**fields, "rich_message": {"html": styled.rich}})
            except NoMethod as error:
                self.is_rich = False
                self._log("rich_messages_unsupported", level="warning", reason=str(error))
            except ChannelRejected as error:
                # Some refusals are not about the form, such as that the message does not exist.
                if type(error) is not ChannelRejected or error.gone:
                    raise
                if growing:
                    self._refused.append(growing)
                self._log("rich_message_refused", reason=str(error))
        plain = {"text": styled.text, "entities": styled.entities or None}
        return await call(plain_method, {**fields, **plain, "link_preview_options": previews})


def _chat(to: Address) -> dict[str, object]:
    """Return the parameters for a chat and its topic.

    Raises:
        ChannelRejected: They are of another platform, as in a row from before the channel's kind changed.
    """
    if not to.chat.removeprefix("-").isdecimal() or not (to.thread or "0").isdecimal():
        raise unknown(to.channel, "chat", to.chat)
    return {"chat_id": int(to.chat), "message_thread_id": int(to.thread) if to.thread else None}


def _message(ref: MessageRef) -> dict[str, object]:
    """Return the parameters for a message."""
    chat = _chat(ref.address)["chat_id"]
    if not ref.message.isdecimal():
        raise unknown(ref.address.channel, "message", ref.message)
    return {"chat_id": chat, "message_id": int(ref.message)}


def _caption(styled: Styled) -> dict[str, object]:
    return {"caption": styled.text or None, "caption_entities": styled.entities or None}


def _markup(styled: Styled) -> Json | None:
    """Return the request for a reply or the buttons under a message, None for neither."""
    if styled.asks:
        return {"force_reply": True, "selective": True}
    return {"inline_keyboard": styled.rows} if styled.rows else None
