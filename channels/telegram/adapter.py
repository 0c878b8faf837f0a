"""One Telegram bot account as a channel: what goes out, and what follows what comes in."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from zlib import crc32

from channels.telegram import (
    ACCOUNT,
    CAPABILITIES,
    CHAT,
    EDIT_INTERVAL_S,
    GROUP,
    TelegramSettings,
    buttons,
    cards,
    menus,
    render,
)
from channels.telegram.calls import LONGEST_POLL_S, Calls
from channels.telegram.decode import Me, Passed, Taken, newest_message
from channels.telegram.lookup import Lookup
from channels.telegram.numbers import Numbers
from channels.telegram.polling import Poller, Take
from channels.telegram.sending import Sending
from channels.telegram.showing import Showing
from channels.telegram.styled import Styled, from_outgoing, unmarked
from channels.telegram.taking import Taking
from channels.telegram.troubles import MethodUnknown, OtherKind
from channels.telegram.webhook import Webhook
from zeroclaw import (
    Address,
    Admission,
    Admit,
    Answered,
    Attachment,
    Capabilities,
    Card,
    ChannelContext,
    ChannelRejected,
    ChannelUnauthorized,
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
    ZeroclawError,
    replace,
)

MOST_ANSWERS = 64
"""Presses that are answered at the same time; a toast beyond that is lost, its effect is not."""
MOST_DRAFTS = 2**31 - 1
"""Bot API, sendMessageDraft: `draft_id` is an Integer that is not 0, read 2026-11."""
FASTEST_EDIT_S = 0.05
"""Where no limits are kept: as often as an eye can follow."""


class TelegramChannel:
    """One bot account."""

    def __init__(self, context: ChannelContext, settings: TelegramSettings) -> None:
        """Open nothing yet.

        Raises:
            ChannelUnauthorized: The token has another form than Telegram's.
        """
        token = context.secrets.get("token", "").strip()
        account, colon, _ = token.partition(":")
        if not account.isdecimal() or not colon:
            message = (
                f"`{context.name}`: that is no bot's token; @BotFather gives one such as "
                "`123456:ABC…`"
            )
            raise ChannelUnauthorized(message)
        self._context = context
        self._settings = settings
        self._capabilities = capabilities(settings)
        self._account = account
        self._calls = Calls(
            name=context.name,
            token=token,
            base_url=settings.api_base_url,
            link_previews=settings.link_previews,
        )
        self._numbers = Numbers(context.positions)
        self._showing = Showing(calls=self._calls, log=context.log, rich=settings.rich)
        self._sending = Sending(calls=self._calls, showing=self._showing, numbers=self._numbers)
        self._lookup = Lookup(
            name=context.name,
            calls=self._calls,
            showing=self._showing,
            numbers=self._numbers,
            log=context.log,
        )
        self._me = Me(channel=context.name, id=int(account), username="", groups=settings.groups)
        self._is_closed = False

    @property
    def name(self) -> str:
        """The name in the configuration."""
        return self._context.name

    @property
    def capabilities(self) -> Capabilities:
        """What a bot can do, within the limits that are kept."""
        return self._capabilities

    # --- inward ----------------------------------------------------------------------------------

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Poll, or be called, until cancelled or closed; see `Channel.receive`."""
        await self._meet()
        try:
            await self._receive(admit, ready)
        except* ChannelUnavailable:
            if not self._is_closed:  # closing cuts the poll that is under way
                raise

    async def _receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        async with asyncio.TaskGroup() as group:
            answering = asyncio.Semaphore(MOST_ANSWERS)
            # Nobody waits for it: without a menu everything else works.
            group.create_task(menus.offer(self._calls, self._context.menu, self._context.log))

            def then(event: Taken | Passed, admission: Admission | None) -> None:
                if (event.query or isinstance(admission, Answered)) and not answering.locked():
                    group.create_task(self._answer(event, admission, answering))

            taking = Taking(admit=admit, then=then, me=self._me, log=self._context.log)
            if self._settings.receive == "webhook":
                await self._be_called(taking.take, ready)
            else:
                await self._poll(taking.take, ready)

    async def _poll(self, take: Take, ready: Callable[[], None]) -> None:
        poller = Poller(
            fetch=self._fetch, take=take, clock=self._context.clock, longest_s=LONGEST_POLL_S
        )
        ready()
        await poller.run()

    async def _be_called(self, take: Take, ready: Callable[[], None]) -> None:
        async def seen(update: object) -> bool:
            self._saw(update)
            return await take(update)

        webhook = Webhook(
            name=self.name,
            url=self._settings.webhook_url,
            token=self._context.secrets["token"].strip(),
            take=seen,
            calls=self._calls,
            clock=self._context.clock,
            log=self._context.log,
        )
        await webhook.run(self._context.mount, ready)

    async def _fetch(self, offset: int | None, allowed: Sequence[str]) -> list[object]:
        updates = await self._calls.updates(offset, allowed)
        for update in updates:
            self._saw(update)
        return updates

    def _saw(self, update: object) -> None:
        newest = newest_message(update)
        if newest is not None:
            self._numbers.saw(*newest)

    async def _meet(self) -> None:
        """Learn who we are, and see that updates come here."""
        user = await self._calls.me()
        if str(user.id) != self._account:
            message = f"`{self.name}`: the server says that the token is of another bot"
            raise ChannelUnavailable(message)
        self._me = replace(self._me, username=user.username or "")
        if self._settings.receive == "polling" and (await self._calls.webhook()).url:
            # Polling is what the configuration says; while a webhook is set every poll is refused.
            await self._calls.forget_webhook()
            self._context.log("webhook_removed", level="warning")

    async def _answer(
        self, event: Taken | Passed, admission: Admission | None, slot: asyncio.Semaphore
    ) -> None:
        """Show a sender what came of their press, or of their reason; it may be lost."""
        said = unmarked(admission.text) if isinstance(admission, Answered) else ""
        async with slot:
            try:
                if event.query:
                    await self._calls.toast(event.query, said)
                body = event.envelope.body if isinstance(event, Taken) else None
                if not isinstance(admission, Answered) or not isinstance(body, Pressed):
                    return
                if admission.reply_wanted and body.card is not None:
                    await self._ask_why(said, body, body.card)
                elif not event.query and body.card is not None:
                    await self._sending.post(body.card.address, Styled(text=said))
            except ZeroclawError as error:
                self._context.log("press_not_answered", why=str(error))

    async def _ask_why(self, said: str, pressed: Pressed, card: MessageRef) -> None:
        asked = buttons.Question(approval=pressed.approval, card=card.message)
        url = buttons.question_url(self._me.username, asked)
        await self._sending.ask_why(card, cards.question(said, url))

    # --- outward ---------------------------------------------------------------------------------

    def render(self, markdown: str) -> Rendered:
        """Return a text as Telegram takes it."""
        return render.markdown(markdown, richly=self._showing.is_rich)

    def measure(self, rendered: Rendered) -> int:
        """Return the length in UTF-16 units."""
        return render.measure(rendered)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Post a message; in a group it shows what it answers."""
        reply_to = "" if to.direct else outgoing.reply_to or ""
        return await self._sending.post(self._ours(to), from_outgoing(outgoing), reply_to=reply_to)

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Post a file; in a group it shows what it answers."""
        most = CAPABILITIES.max_file_bytes
        if len(file.content) > most:
            message = f"`{self.name}`: {len(file.content):,} bytes are more than {most:,}"
            raise ChannelRejected(message)
        reply_to = "" if to.direct else file.reply_to or ""
        return await self._sending.post_file(self._ours(to), file, reply_to=reply_to)

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
        text = from_outgoing(outgoing)
        with suppress(OtherKind):
            if text.text:
                await self._showing.edit(self._known(ref), text)
                return
        await self._calls.edit_caption(self._known(ref), text.text)

    async def delete(self, ref: MessageRef) -> None:
        """Remove a message."""
        await self._calls.delete(self._known(ref))

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Post a card with its buttons."""
        asked = cards.view(Outcome(card=card, endings=()))
        return await self._sending.post_card(self._ours(to), asked)

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Show on the card how its calls ended."""
        await self._calls.edit_card(self._known(ref), cards.view(outcome))

    async def preview(self, to: Address, outgoing: Outgoing) -> None:
        """Show a text in a private chat that is not sent; a server may be too old for that."""
        if not to.direct or not self.capabilities.native_draft:
            message = f"`{self.name}` shows nothing there that is not sent"
            raise NotSupported(message)
        try:
            await self._showing.preview(
                self._ours(to), from_outgoing(outgoing), draft=_number_of(outgoing.key)
            )
        except MethodUnknown as error:
            self._context.log("previews_not_known", why=str(error))
            raise NotSupported(str(error)) from error

    async def typing(self, to: Address) -> None:
        """Show that the bot is at work."""
        await self._calls.typing(self._ours(to))

    def direct_address(self, sender: str) -> Address | None:
        """Return a person's private chat, whose id is theirs; they must have opened it."""
        if not sender.isdecimal():
            return None
        return Address(channel=self.name, account=self._account, chat=sender, direct=True)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """Get an attachment's bytes."""
        return await self._calls.download(attachment.reference, max_bytes=max_bytes)

    async def aclose(self) -> None:
        """Close every connection, and end `receive`."""
        self._is_closed = True
        await self._calls.aclose()

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


def capabilities(settings: TelegramSettings) -> Capabilities:
    """Return what an account can do, within the limits that are kept."""
    can = replace(
        CAPABILITIES,
        native_draft=settings.drafts == "native",
        can_lookup=settings.uncertain == "probe",
        may_repeat=settings.uncertain != "hold",
    )
    if settings.limits == "off":
        return replace(can, min_edit_interval_s=FASTEST_EDIT_S)
    return replace(
        can,
        min_edit_interval_s=EDIT_INTERVAL_S,
        chat_budget=CHAT,
        group_budget=GROUP,
        account_budget=ACCOUNT,
    )


def _number_of(key: str) -> int:
    """Return a draft's number, which is the same whoever asks; 0 is none."""
    return crc32(key.encode()) % MOST_DRAFTS + 1
