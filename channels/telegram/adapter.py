"""One Telegram bot account as a channel: what goes out, and what follows what comes in."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from zlib import crc32

from channels._remote.cards import unmarked
from channels._remote.fields import text
from channels._remote.intake import ShortAnswers
from channels._remote.limits import check_size
from channels.telegram import CAPABILITIES, TelegramSettings, cards, menus, render
from channels.telegram.account import Account
from channels.telegram.decode import Me, Passed, Taken
from channels.telegram.errors import MethodUnknown, OtherKind
from channels.telegram.lookup import Lookup, Numbers, shown_of
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
    ChannelRejected,
    ChannelUnavailable,
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

MOST_DRAFTS = 2**31 - 1
"""Bot API, sendMessageDraft: `draft_id` is an Integer that is not 0, read 2026-11."""


class TelegramChannel:
    """One bot account."""

    def __init__(self, context: ChannelContext) -> None:
        """Open nothing yet.

        Raises:
            ChannelUnauthorized: The token has another form than Telegram's.
        """
        settings = context.settings_as(TelegramSettings)
        self.name = context.name
        self.capabilities = settings.capabilities()
        self._context = context
        self._settings = settings
        self._account = Account(context.name, settings, context.secrets)
        self._messages = Messages(self._account, settings, context.log)
        self._numbers = Numbers(context.positions)
        self._lookup = Lookup(self._messages, self._numbers, context.log)
        self._me = Me(
            channel=context.name, id=int(self._account.id), username="", groups=settings.groups
        )
        self._answers = ShortAnswers(context.log, "press_not_answered")

    # --- inward ----------------------------------------------------------------------------------

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Poll, or be called, until cancelled or closed; see `Channel.receive`."""
        await self._meet()
        account, context = self._account, self._context
        try:
            async with asyncio.TaskGroup() as group:
                # It may come late: without a menu everything else works.
                group.create_task(menus.offer(account, context.menu, context.log))

                def then(event: Taken | Passed, admission: Admission | None) -> None:
                    if event.query or isinstance(admission, Answered):
                        self._answers.begin(group, partial(self._answer, event, admission))

                intake = Intake(
                    admit=admit, then=then, me=self._me, numbers=self._numbers, log=context.log
                )
                if self._settings.receive == "webhook":
                    url = self._settings.webhook_url
                    webhook = Webhook(
                        account, url, take=intake.take, clock=context.clock, log=context.log
                    )
                    await webhook.run(context.mount, ready)
                else:
                    ready()
                    await poll(account.updates, intake.take, context.clock)
        except* ChannelUnavailable:
            if not account.http.closed.is_set():  # closing cuts the poll that is under way
                raise

    async def _meet(self) -> None:
        """Learn who we are, and see that updates come here."""
        user = await self._account.me()
        self._me = replace(self._me, username=text(user, "username"))
        if self._settings.receive == "polling" and text(await self._account.webhook(), "url"):
            # Polling is what the configuration says; while a webhook is set every poll is refused.
            await self._account.forget_webhook()
            self._context.log("webhook_removed", level="warning")

    async def _answer(self, event: Taken | Passed, admission: Admission | None) -> None:
        """Show a sender what came of their press, or of their reason."""
        said = unmarked(admission.text) if isinstance(admission, Answered) else ""
        if event.query:
            await self._messages.toast(event.query, said)
        body = event.envelope.body if isinstance(event, Taken) else None
        if not isinstance(admission, Answered) or not isinstance(body, Pressed):
            return
        if (card := body.card) is not None and admission.reply_wanted:
            asked = cards.question(said, self._me.username, body.approval, card.message)
            # One whose answer is lost is asked again by another press.
            await self._post(card.address, asked, reply_to=card.message)
        elif card is not None and not event.query:
            await self._post(card.address, Styled(text=said))

    # --- outward ---------------------------------------------------------------------------------

    def render(self, markdown: str) -> Rendered:
        """Return a text as Telegram takes it."""
        return render.markdown(markdown, richly=self._messages.is_rich)

    def measure(self, rendered: Rendered) -> int:
        """Return the length in UTF-16 units."""
        return render.measure(rendered)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Post a message; in a group it shows what it answers."""
        reply_to = "" if to.direct else outgoing.reply_to or ""
        return await self._post(to, from_outgoing(outgoing), reply_to=reply_to)

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Post a file; in a group it shows what it answers."""
        check_size(self.name, file, CAPABILITIES.max_file_bytes)
        reply_to = "" if to.direct else file.reply_to or ""
        return await self._post(to, from_outgoing(file), reply_to=reply_to)

    def mark(self, to: Address) -> str:
        """Return the newest number that is known of those that the chat shares."""
        self._needs_look()
        # That a chat is none of Telegram's is said by the send that follows, as a refusal.
        return self._lookup.mark(to)

    async def lookup(
        self, to: Address, content: Postable, *, since: str, apart: frozenset[str], before: str = ""
    ) -> LookupResult:
        """Try one number; see `lookup.py`."""
        self._needs_look()
        return await self._lookup.lookup(
            self._ours(to), content, since=since, apart=apart, before=before
        )

    async def edit(self, ref: MessageRef, outgoing: Outgoing) -> None:
        """Replace a message's text, or what stands with a file."""
        shown = from_outgoing(outgoing)
        with suppress(OtherKind):
            if shown.text:
                await self._messages.edit(self._known(ref), shown)
                return
        await self._messages.edit(self._known(ref), Styled(text=shown.text), is_caption=True)

    async def delete(self, ref: MessageRef) -> None:
        """Remove a message."""
        await self._messages.delete(self._known(ref))

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Post a card with its buttons."""
        return await self._post(to, shown_of(card))

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show on the card how its calls ended."""
        await self._messages.edit(self._known(ref), cards.view(outcome))

    async def preview(self, to: Address, outgoing: Outgoing) -> None:
        """Show a text in a private chat that is not sent; a server may be too old for that."""
        if not to.direct or not self.capabilities.native_draft:
            message = f"`{self.name}` shows nothing there that is not sent"
            raise NotSupported(message)
        try:
            # A draft's number is the same whoever asks; 0 is none.
            draft = crc32(outgoing.key.encode()) % MOST_DRAFTS + 1
            await self._messages.preview(self._ours(to), from_outgoing(outgoing), draft=draft)
        except MethodUnknown as error:
            self._context.log("previews_not_known", why=str(error))
            raise NotSupported(str(error)) from error

    async def typing(self, to: Address, doing: tuple[ToolProgress, ...] = ()) -> None:  # noqa: ARG002
        """Show that the bot is at work."""
        await self._messages.typing(self._ours(to))

    def direct_address(self, sender: str) -> Address | None:
        """Return a person's private chat, whose id is theirs; they must have opened it."""
        if not sender.isdecimal():
            return None
        return Address(channel=self.name, account=self._account.id, chat=sender, direct=True)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """Get an attachment's bytes."""
        return await self._account.download(attachment.reference, max_bytes=max_bytes)

    async def aclose(self) -> None:
        """Close every connection, and end `receive`."""
        await self._account.http.aclose()

    async def _post(self, to: Address, shown: Styled, *, reply_to: str = "") -> MessageRef:
        """Post a message, and take note of its number."""
        ref = await self._messages.post(self._ours(to), shown, reply_to=reply_to)
        self._numbers.saw(ref.address.chat, int(ref.message))
        return ref

    # --- whose it is -----------------------------------------------------------------------------

    def _needs_look(self) -> None:
        if not self.capabilities.can_lookup:
            message = f"`{self.name}` is told not to look for messages"
            raise NotSupported(message)

    def _ours(self, place: Address) -> Address:
        chat, thread = place.chat.removeprefix("-"), place.thread
        if not chat.isdecimal() or not (thread is None or thread.isdecimal()):
            message = f"`{self.name}` has no chat `{place.chat}`"
            raise ChannelRejected(message)
        return place

    def _known(self, ref: MessageRef) -> MessageRef:
        self._ours(ref.address)
        if not ref.message.isdecimal():
            message = f"`{self.name}` has no message `{ref.message}`"
            raise ChannelRejected(message, gone=True)
        return ref
