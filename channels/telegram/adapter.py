"""The Telegram adapter: connects incoming updates to ingress, and sends messages, cards and files."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from zlib import crc32

from channels._remote.cards import unmarked
from channels._remote.fields import text
from channels._remote.intake import ShortAnswers, until
from channels._remote.limits import check_size
from channels._remote.settings import check_lookup
from channels.telegram import CAPABILITIES, TelegramSettings, cards, menus, render
from channels.telegram.account import Account
from channels.telegram.decode import Bot, Decoded, Skipped
from channels.telegram.errors import NoMethod, OtherMessageKind
from channels.telegram.lookup import Lookup, MessageIds, styled_of
from channels.telegram.messages import Messages
from channels.telegram.styled import Styled, from_outgoing
from channels.telegram.updates import Intake, poll
from channels.telegram.webhook import Webhook
from zeroclaw import (
    Address,
    Admission,
    Admit,
    Answered,
    Attachment,
    Card,
    ChannelContext,
    LookupResult,
    MessageRef,
    NotSupported,
    Outcome,
    Outgoing,
    OutgoingFile,
    Postable,
    Pressed,
    Rendered,
    ToolProgress,
    replace,
)

MAX_DRAFTS = 2**31 - 1
"""Bot API, sendMessageDraft: `draft_id` is an Integer that is not 0, read 2026-11."""


class TelegramChannel:
    """One bot account."""

    def __init__(self, context: ChannelContext) -> None:
        """Open nothing yet.

        Raises:
            ChannelUnauthorized: The token is not in Telegram's format.
        """
        settings = context.settings_as(TelegramSettings)
        self.name = context.name
        self.capabilities = settings.capabilities()
        self._context = context
        self._settings = settings
        self._account = Account(context.name, settings, context.secrets)
        self._messages = Messages(self._account, settings, context.log)
        self._ids = MessageIds(context.positions)
        self._lookup = Lookup(self._messages, self._ids, context.log)
        self._bot = Bot(
            channel=context.name, id=int(self._account.id), username="", groups=settings.groups
        )
        self._answers = ShortAnswers(context.log, "press_not_answered")

    # --- receiving -------------------------------------------------------------------------------

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Receive by polling or webhook until cancelled or closed; see `Channel.receive`."""
        await self._prepare()
        account, context, log = self._account, self._context, self._context.log
        with until(account.http.closed):
            async with asyncio.TaskGroup() as group:
                # In the background: everything else works without the menu.
                group.create_task(menus.offer(account, context.menu, log))

                def respond(event: Decoded | Skipped, admission: Admission | None) -> None:
                    if event.query or isinstance(admission, Answered):
                        self._answers.begin(group, partial(self._answer, event, admission))

                intake = Intake(admit=admit, respond=respond, bot=self._bot, ids=self._ids, log=log)
                if self._settings.receive == "webhook":
                    url = self._settings.webhook_url
                    webhook = Webhook(account, url, take=intake.take, clock=context.clock, log=log)
                    await webhook.run(context.mount, ready)
                else:
                    ready()
                    await poll(account.updates, intake.take, context.clock)

    async def _prepare(self) -> None:
        """Learn the bot's user name; remove a webhook that would block polling."""
        self._bot = replace(self._bot, username=text(await self._account.user(), "username"))
        if self._settings.receive == "polling" and text(await self._account.webhook(), "url"):
            # Telegram refuses every poll while a webhook is set.
            await self._account.forget_webhook()
            self._context.log("webhook_removed", level="warning")

    async def _answer(self, event: Decoded | Skipped, admission: Admission | None) -> None:
        """Show a person the result of their press, or of their reason for a denial."""
        reply = unmarked(admission.text) if isinstance(admission, Answered) else ""
        if event.query:
            await self._messages.toast(event.query, reply)
        if not isinstance(event, Decoded) or not isinstance(admission, Answered):
            return
        body, sender = event.envelope.body, event.envelope.sender
        if not isinstance(body, Pressed) or (card := body.card) is None:
            return
        if admission.reply_wanted:
            asked = None if card.address.direct else sender
            question = cards.question(reply, self._bot.username, body.approval, card.message, asked)
            # If this question is lost, the person presses again.
            await self._post(card.address, question, reply_to=card.message)
        elif not event.query:
            await self._post(card.address, Styled(text=reply))

    # --- sending ---------------------------------------------------------------------------------

    def render(self, markdown: str) -> Rendered:
        """Turn Markdown into text and entities for Telegram."""
        return render.markdown(markdown, richly=self._messages.is_rich)

    def measure(self, rendered: Rendered) -> int:
        """Return the length in UTF-16 units."""
        return render.measure(rendered)

    async def send(self, to: Address, outgoing: Outgoing | OutgoingFile) -> MessageRef:
        """Post a message or a file; in a group it is a reply to the message that it answers."""
        reply_to = "" if to.direct else outgoing.reply_to or ""
        return await self._post(to, from_outgoing(outgoing), reply_to=reply_to)

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Post a file that is not too large."""
        check_size(self.name, len(file.content), CAPABILITIES.max_file_bytes)
        return await self.send(to, file)

    def mark(self, to: Address) -> str:
        """Return the newest known id of the chat's counter as a mark."""
        check_lookup(self.name, self.capabilities)
        return self._lookup.mark(to)

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        """Probe one id; see `lookup.py`."""
        check_lookup(self.name, self.capabilities)
        return await self._lookup.lookup(to, content, since=since, apart=apart, before=before)

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        """Replace a message's text or a file's caption."""
        styled = from_outgoing(outgoing)
        with suppress(OtherMessageKind):
            if styled.text:
                await self._messages.edit(ref, styled)
                return
        await self._messages.edit(ref, Styled(text=styled.text), is_caption=True)

    async def delete(self, ref: MessageRef) -> None:
        """Delete a message; one that no longer exists is no error."""
        await self._messages.delete(ref)

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Post a card with its buttons."""
        return await self._post(to, styled_of(card))

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show on the card how its approval requests ended."""
        await self._messages.edit(ref, cards.view(outcome))

    async def preview(self, to: Address, outgoing: Outgoing) -> None:
        """Show unsent text in a private chat; a server may be too old for that."""
        if not to.direct or not self.capabilities.native_draft:
            message = f"`{self.name}` shows nothing there that is not sent"
            raise NotSupported(message)
        try:
            # The same key gives the same draft id in every process; 0 is not allowed.
            draft = crc32(outgoing.key.encode()) % MAX_DRAFTS + 1
            await self._messages.preview(to, from_outgoing(outgoing), draft=draft)
        except NoMethod as error:
            self._context.log("previews_unsupported", reason=str(error))
            raise NotSupported(str(error)) from error

    async def typing(self, to: Address, doing: tuple[ToolProgress, ...] = ()) -> None:  # noqa: ARG002
        """Show that the bot is working."""
        await self._messages.typing(to)

    def direct_address(self, sender: str) -> Address | None:
        """Return a person's private chat, which has their id; they must have opened it."""
        if not sender.isdecimal():
            return None
        return Address(channel=self.name, account=self._account.id, chat=sender, direct=True)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """Download an attachment."""
        return await self._account.download(attachment.reference, max_bytes=max_bytes)

    async def aclose(self) -> None:
        """Close every connection; this ends `receive`."""
        await self._account.http.aclose()

    async def _post(self, to: Address, styled: Styled, *, reply_to: str = "") -> MessageRef:
        """Post a message and remember its id."""
        ref = await self._messages.post(to, styled, reply_to=reply_to)
        self._ids.add(ref.address.chat, int(ref.message))
        return ref
