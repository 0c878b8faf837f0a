"""One mail account as a channel: reads new mail in order, and sends."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from email.utils import format_datetime
from functools import partial
from secrets import token_hex
from typing import NoReturn

from channels._remote.cards import button_data
from channels._remote.incoming import Skipped
from channels._remote.intake import ShortAnswers, until
from channels._remote.limits import check_size, unknown
from channels.email import CAPABILITIES, EmailSettings, decode, identity, render
from channels.email.decode import CUT, Bot, Decoded, Fetched, Parent
from channels.email.imap import Account, CommandRefused, Mailbox
from channels.email.logins import Logins
from channels.email.render import Parts
from channels.email.robots import MAIL_NOT_GIVEN, NOTICES, Caps
from channels.email.smtp import Sender
from channels.email.state import TextFile, read_cursor
from zeroclaw import (
    Accepted,
    Address,
    Admission,
    Admit,
    Answered,
    Attachment,
    Card,
    ChannelContext,
    ChannelRejected,
    ChannelStopped,
    ChannelUnavailable,
    ConfigError,
    Ignored,
    MessageRef,
    NotSupported,
    Outcome,
    Outgoing,
    OutgoingFile,
    Pressed,
    Recent,
    Rendered,
    ZeroclawError,
    replace,
)

STORE_RETRY_S = 1.0
"""Seconds before retrying a mail that could not be stored."""
PARENT_S = 10.0
"""Seconds to find the mail to answer, of the half minute that the runtime allows a send."""
MAX_TRIES, NOTIFY_AFTER, RETRY_S = 10, 5, 60.0
"""Fetches of a mail that the server does not deliver; the failure after which operators are notified;
and the seconds after the first one. Each further wait is twice as long: nine hours in all."""
LOOKBACK = timedelta(days=2)
"""How far back to read again when the server has renumbered the mailbox (a new UIDVALIDITY)."""
UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors that the standard library's parsers raise on odd mails. Such a mail stays unread, for people;
ending the channel instead would end it again at each start."""
MAX_REMEMBERED = 500
"""Size of each memory: threads' parent mails, used codes of cards, and sent mails."""
MAX_BOT_TEXTS = 20
"""The bot's latest texts in a thread with which a mail is compared, in case it quotes them."""


class EmailChannel:
    """One mail account."""

    def __init__(self, context: ChannelContext) -> None:
        """Connect to nothing yet.

        Raises:
            ChannelUnauthorized: The password is not set.
        """
        self._settings = settings = context.settings_as(EmailSettings)
        self._context, self.name, self.capabilities = context, context.name, CAPABILITIES
        directory, self._monotonic = context.directory, context.clock.monotonic
        logins = Logins(context.name, settings, context.secrets, directory, self._monotonic)
        self._account, self._sender = Account(logins), Sender(logins)
        self._progress_file = TextFile(directory, "read-up-to")
        self._retries_file = TextFile(directory, "held")
        self._retries: dict[int, tuple[int, float]] = {}
        self._bot = Bot(channel=context.name, settings=settings)
        # Earlier versions stored positions without the account.
        are_new = any(scope.endswith(f" {settings.mailbox}") for scope in context.positions)
        is_same_account = not are_new and context.account in {"", settings.address}
        self._scopes = (self._bot.scope, *((settings.mailbox,) if is_same_account else ()))
        self._caps = Caps(of_sender=settings.sender_per_hour, of_all=settings.account_per_hour)
        self._parents: Recent[str, Parent] = Recent(MAX_REMEMBERED)
        self._pressed: Recent[str, bool] = Recent(MAX_REMEMBERED)
        self._sent: Recent[str, bool] = Recent(MAX_REMEMBERED)
        self._toasts = ShortAnswers(context.log, "mail_not_answered")
        self._group: asyncio.TaskGroup | None = None
        self._counts_file = TextFile(directory, "answered")
        self._key_file, self._new_key = TextFile(directory, "code-key"), token_hex(32)

    # --- inward ----------------------------------------------------------------------------------

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Read new mail until cancelled or closed; see `Channel.receive`."""
        with until(self._sender.closed):
            async with self._account.mailbox() as mailbox, asyncio.TaskGroup() as self._group:
                newest = await self._resume(mailbox)
                ready()
                while True:
                    newest = await self._read_new(mailbox, newest, admit)
                    with suppress(ChannelUnavailable):  # ingress drops a mail that is read again
                        await self._save_progress(mailbox, newest)
                        await self._save_retries(mailbox)
                    await mailbox.idle(self._settings.poll_s)  # new mail ends it at once

    async def _resume(self, mailbox: Mailbox) -> int:
        """Load the counts, and return the newest mail read; mail before the first start counts as read."""
        self._caps.load(await self._counts_file.read(), self._now())
        committed, validity = read_cursor(self._committed_cursor()), mailbox.validity
        cursor, _, name = (await self._progress_file.read()).strip().partition(" ")
        noted = read_cursor(cursor) if name in self._scopes else None
        positions = [position for position in (committed, noted) if position is not None]
        scopes = "|".join(map(re.escape, self._scopes))
        line = rf"(?m)^(\d+) (\d+) {validity} (?:{scopes})$"
        rows = re.findall(line, await self._retries_file.read())
        retry_at = self._monotonic() + RETRY_S
        # Any connection may break once, so a mail that failed only once is fetched at once.
        self._retries = {int(uid): (int(n), retry_at if n > "1" else 0.0) for uid, n in rows}
        if committed is not None and committed.uid and committed.validity == validity:
            await mailbox.flag(committed.uid)  # in case a kill or a lost connection prevented it
        if uids := [position.uid for position in positions if position.validity == validity]:
            return max(uids)
        newest = await mailbox.newest()
        if positions:
            # The UIDs now mean other mails. Ingress recognises answered mails by their Message-ID.
            since = format_datetime(self._context.clock.now() - LOOKBACK)[5:16]
            recent = await mailbox.search(f"SINCE {since.replace(' ', '-')}")
            newest = min(recent, default=newest + 1) - 1
            self._context.log("mailbox_renumbered", read_again=len(recent), level="warning")
        await self._save_progress(mailbox, newest)
        return newest

    def _committed_cursor(self) -> str:
        """Return the cursor that the runtime committed last, empty if there is none."""
        return next(filter(None, map(self._context.positions.get, self._scopes)), "")

    async def _save_progress(self, mailbox: Mailbox, newest: int) -> None:
        """Save how far the mailbox was read, unless that is the committed position."""
        cursor = f"{mailbox.validity}:{newest}"
        if cursor != self._committed_cursor():
            await self._progress_file.write(f"{cursor} {self._bot.scope}\n")

    async def _read_new(self, mailbox: Mailbox, newest: int, admit: Admit) -> int:
        """Process new mails and due retries, one at a time, by UID; return the newest one."""
        for uid in sorted({*await mailbox.newer(newest), *self._retries}):
            if self._retries.get(uid, (0, 0.0))[1] <= self._monotonic():
                fetched = await self._fetch(mailbox, uid)
                while fetched is not None and not await self._process(mailbox, fetched, admit):
                    await self._context.clock.sleep(STORE_RETRY_S)
            newest = max(uid, newest)
        return newest

    async def _fetch(self, mailbox: Mailbox, uid: int) -> Fetched | None:
        """Return a mail; None if it was deleted, or if the server does not deliver it now.

        Servers store mails that they can't read themselves: they report an error, leave the mail out
        (github.com/jstedfast/MailKit/issues/358 and 908, read 2026-11), or break the connection. The
        channel retries such a mail while it reads later ones, and gives up after `MAX_TRIES`.

        Raises:
            ChannelUnavailable: The connection is lost, which counts as a try; or the disk refuses the
                list of retries, so no later mail may be stored.
        """
        tries, lost, reason = self._retries.pop(uid, (0, 0.0))[0] + 1, None, "it is passed over"
        try:
            fetched = await mailbox.fetch(uid, max_bytes=self._settings.max_mail_bytes)
            if fetched is not None or not await mailbox.search(f"UID {uid}"):
                return fetched
        except ChannelUnavailable as error:
            lost, reason = None if isinstance(error, CommandRefused) else error, str(error)
        if tries < MAX_TRIES:
            self._retries[uid] = (tries, self._monotonic() + RETRY_S * 2 ** (tries - 1))
        self._context.log("mail_not_fetched", uid=uid, tries=tries, reason=reason, level="warning")
        if tries == NOTIFY_AFTER:
            await self._context.tell(MAIL_NOT_GIVEN.about(channel=self.name))
        await self._save_retries(mailbox)
        if lost is not None:
            raise lost
        return None

    async def _save_retries(self, mailbox: Mailbox) -> None:
        suffix, retries = f"{mailbox.validity} {self._bot.scope}", self._retries.items()
        await self._retries_file.write("".join(f"{uid} {n} {suffix}\n" for uid, (n, _) in retries))

    async def _process(self, mailbox: Mailbox, fetched: Fetched, admit: Admit) -> bool:
        """Decode a mail and pass it to the ingress; False if it could not be stored, for a retry.

        Raises:
            ChannelStopped: The account reached its hourly cap, which means a loop.
        """
        try:
            event = await self._decode(fetched)
            if isinstance(event, Skipped):
                self._context.log("mail_skipped", reason=event.reason, uid=fetched.uid)
                for to in decode.returned_to(fetched.raw, await self._bot_with_key()):
                    await self._notify_once("returned", to)
                return True
            sender = event.envelope.sender
            counts = sender.verified and self._is_counted(event)
            state = self._caps.state(sender.id, self._now()) if counts else "free"
            if state == "capped":
                self._context.log("sender_capped", uid=fetched.uid, level="warning")
                await self._notify_once("capped", sender.id)
                return True
            admission = await admit(event.envelope) if state == "free" else None
        except ZeroclawError as error:
            self._context.log("event_not_admitted", reason=str(error), level="warning")
            return False
        if admission is None:
            message = (
                f"`{self.name}`: {self._settings.account_per_hour} mails within an hour look like "
                "a loop; see who writes, and start it again in an hour"
            )
            raise ChannelStopped(message)
        await self._flag(mailbox, fetched.uid, event, admission)
        return True

    async def _decode(self, fetched: Fetched, bot_texts: Sequence[str] = ()) -> Decoded | Skipped:
        """Decode a mail, comparing it with the bot's texts in its thread if it may quote them.

        A mail that the parsers can't read is passed over.
        """
        bot = await self._bot_with_key()

        def decode_mail() -> Decoded | Skipped:
            # A mail program may quote either part of a mail.
            repeatable = {*bot_texts, *(render.markdown(text).plain for text in bot_texts)}
            return decode.decode(fetched, bot, repeatable)

        try:
            event = await asyncio.to_thread(decode_mail)
        except UNREADABLE as error:
            kind = type(error).__name__
            self._context.log("mail_not_read", kind=kind, uid=fetched.uid, level="warning")
            return Skipped(reason="it can't be read")
        if isinstance(event, Decoded) and event.may_quote and not bot_texts:
            entries = await self._context.transcript(event.envelope.address, "")
            if texts := [entry.text for entry in entries if entry.kind != "person"]:
                return await self._decode(fetched, texts[-MAX_BOT_TEXTS:])
        return event

    async def _flag(self, mailbox: Mailbox, uid: int, mail: Decoded, admission: Admission) -> None:
        """Mark a mail as seen on the server, and send its sender a short answer if there is one."""
        if isinstance(admission, Ignored):
            return
        if isinstance(admission, Accepted | Answered):
            if self._is_counted(mail):
                self._caps.count(mail.envelope.sender.id, self._now())
                await self._save_counts()
            elif isinstance(body := mail.envelope.body, Pressed):
                self._pressed[button_data(body.approval, body.choice)] = True
        to = mail.envelope.address
        self._parents[to.key()] = mail.parent
        await mailbox.flag(uid)
        if isinstance(admission, Answered) and self._group:
            parts = partial(render.plain_text, admission.text)
            key = f"toast {mail.envelope.message}"
            self._toasts.begin(self._group, partial(self._post, to, key, parts, mail.parent))

    def _is_counted(self, mail: Decoded) -> bool:
        """Return whether a mail counts towards the caps; the first answer to a card does not.

        People have only the codes that the bot gave them, and no cap may delay an approval. The same
        code again counts, for a robot may send it without end.
        """
        b = mail.envelope.body
        return not isinstance(b, Pressed) or button_data(b.approval, b.choice) in self._pressed

    async def _notify_once(self, kind: str, person: str) -> None:
        """Notify operators about a person, once until the bot answers that person again."""
        key = (identity.digest(person), kind)
        if key not in self._caps.notified:
            count = self._settings.sender_per_hour
            notice = NOTICES[kind].about(channel=self.name, sender=person, count=count)
            await self._context.tell(notice)
            self._caps.notified[key] = True
            await self._save_counts()

    async def _save_counts(self) -> None:
        """Save the counts of the caps; if the disk is full they stay in memory for the next save."""
        with suppress(ChannelUnavailable):
            await self._counts_file.write(self._caps.dump(self._now()))

    async def _bot_with_key(self) -> Bot:
        """Return the account with the key of the codes, which is created once and stored."""
        if not self._bot.key:
            key = await self._key_file.read()
            key = key if _KEY.fullmatch(key) else self._new_key
            await self._key_file.write(key)
            self._bot = replace(self._bot, key=bytes.fromhex(key))
        return self._bot

    def _now(self) -> float:
        return self._context.clock.now().timestamp()

    # --- outward ---------------------------------------------------------------------------------

    def render(self, markdown: str) -> Rendered:
        """Return a text as rendered in a mail."""
        return render.markdown(markdown)

    def measure(self, rendered: Rendered) -> int:
        """Return the length in characters."""
        return len(rendered.body)

    async def send(self, to: Address, outgoing: Outgoing) -> MessageRef:
        """Send an answer."""
        check_size(self.name, len(outgoing.rendered.body), CAPABILITIES.max_length, "characters")
        parts = partial(render.answer, outgoing, is_folded=self._settings.receipts == "folded")
        return await self._post(to, outgoing.key, parts, await self._parent(to))

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Send a file with its caption."""
        check_size(self.name, len(file.content), CAPABILITIES.max_file_bytes)
        parts = partial(render.plain_text, file.caption, file)
        return await self._post(to, file.key, parts, await self._parent(to))

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Send a card with the links to answer it."""
        bot = await self._bot_with_key()
        id_ = decode.own_id(to, card.key, bot)
        parts = partial(render.card, card, id=id_, to=to.chat, bot=bot)
        return await self._post(to, card.key, parts, decode.root_of(to.thread))

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Send the outcome of a card, as a reply to the card."""
        approvals = " ".join(sorted(ending.approval for ending in outcome.endings))
        card = Parent(id=ref.message, subject=render.card_title(outcome.card))
        parts = partial(render.ended, outcome)
        await self._post(ref.address, f"ended {ref.message} {approvals}", parts, card)

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        """Refuse an operation that mail does not have: an accepted mail is out of the sender's reach.

        So it can't be looked up, edited or deleted, and mail programs show no draft or typing.
        """
        message = f"`{self.name}` sends mails, and can do nothing else with them"
        raise NotSupported(message)

    mark = lookup = edit = delete = preview = typing = _refuse

    def direct_address(self, sender: str) -> Address | None:
        """Return a person's chat, without a thread; the bot can write to any valid address."""
        if identity.normalised(sender) != sender or sender == self._settings.address:
            return None
        return Address(channel=self.name, account=self._settings.address, chat=sender, direct=True)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """Return the bytes of a file from the mail that it came with."""
        if attachment.reference.startswith(CUT):
            message = f"`{self.name}`: the mail is larger than `max_mail_bytes`"
            raise ChannelRejected(message)
        content = await self._account.file(attachment.reference)
        if content is None:
            raise unknown(self.name, "file", attachment.reference)
        check_size(self.name, len(content), max_bytes)
        return content

    async def aclose(self) -> None:
        """Close every connection, and end `receive`."""
        await self._sender.aclose()
        await self._account.aclose()

    # --- one mail --------------------------------------------------------------------------------

    async def _parent(self, to: Address) -> Parent:
        """Return the mail to answer: remembered, else found in the mailbox, else the thread's first."""
        with suppress(ChannelUnavailable, TimeoutError):  # an answer is worth more than its subject
            async with asyncio.timeout(PARENT_S):
                return self._parents.get(to.key()) or await self._account.newest(to)
        return decode.root_of(to.thread)

    async def _post(
        self, to: Address, key: str, parts: Callable[[], Parts], parent: Parent
    ) -> MessageRef:
        """Send a mail in the thread of its parent; skip one that was sent before."""
        if identity.normalised(to.chat) != to.chat:
            raise unknown(self.name, "chat", to.chat)
        id_ = decode.own_id(to, key, await self._bot_with_key())
        at, account = self._context.clock.now(), self._settings

        def mail() -> bytes:
            return render.mail(parts(), parent, account, message_id=id_, to=to.chat, at=at)

        if id_ not in self._sent:
            await self._sender.send(await asyncio.to_thread(mail), to.chat)
            self._sent[id_] = True
        return MessageRef(address=to, message=id_)


async def check(settings: EmailSettings, secrets: Mapping[str, str]) -> str:
    """Log in at both servers, open the mailbox and begin a mail; changes and sends nothing.

    Raises:
        ChannelRejected: The sending server takes no mail from this address.
        ChannelUnauthorized: A login is not accepted, or there is no such mailbox.
        ChannelUnavailable: A server can't be reached.
        ConfigError: Without `authserv_id` no sender can be verified.
    """
    logins, address = Logins("email", settings, secrets), settings.address
    # A server may accept each refresh token only once, and the daemon holds a newer one.
    summary = f"{address} has a refresh token, which the daemon alone tries"
    if not settings.refresh_token:
        async with Account(logins).mailbox() as mailbox:
            first = await mailbox.newest() + 1
            summary = f"{address} reads `{settings.mailbox}` from mail {first:,} on"
            await Sender(logins).try_login()
    if not settings.authserv_id:
        message = f"{summary}, but every sender is a stranger until `authserv_id` is set"
        raise ConfigError((message,))
    return f"{summary}; senders are who `{settings.authserv_id}` says they are"


_KEY = re.compile(r"[0-9a-f]{64}")
