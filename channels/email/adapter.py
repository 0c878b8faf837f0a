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

from channels._remote.cards import carried
from channels._remote.incoming import Skipped
from channels._remote.intake import ShortAnswers, until
from channels._remote.limits import check_size, unknown
from channels.email import CAPABILITIES, EmailSettings, decode, identity, render
from channels.email.decode import Bot, Decoded, Fetched, Parent
from channels.email.imap import Account, CommandRefused, Mailbox
from channels.email.kept import KeptText, Read, read_cursor
from channels.email.logins import Logins
from channels.email.render import Words
from channels.email.robots import MAIL_NOT_GIVEN, NOTICES, Caps
from channels.email.smtp import Sender
from zeroclaw import (
    Accepted,
    Address,
    Admission,
    Admit,
    Answered,
    Attachment,
    Card,
    ChannelContext,
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

AGAIN_S = 1.0
"""Seconds before retrying a mail that could not be stored."""
MOST_REFUSED, TOLD_AFTER, REFUSED_S = 10, 5, 60.0
"""Tries of a mail that the server does not give, the try after which operators are told, and the
seconds after the first one; each further wait is twice as long, which makes nine hours in all."""
RENUMBERED = timedelta(days=2)
"""How far back to read again if the mailbox's UIDs have changed."""
UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors that the standard library's parsers raise on odd mails. Such a mail stays unread, for people:
if it ended the channel, it would end it again at each start."""
MOST_REMEMBERED = 500
"""Threads whose parent mail is remembered for an answer; used codes of cards; and sent mails."""
MOST_KNOWN = 20
"""The bot's last texts in a thread that a mail is compared with, in case it repeats them."""


class EmailChannel:
    """One mail account."""

    def __init__(self, context: ChannelContext) -> None:
        """Connect to nothing yet.

        Raises:
            ChannelUnauthorized: The password is not set.
        """
        settings = context.settings_as(EmailSettings)
        self.name = context.name
        self.capabilities = CAPABILITIES
        self._context = context
        self._settings = settings
        directory, now = context.directory, context.clock.monotonic
        logins = Logins(context.name, settings, context.secrets, directory, now)
        self._account, self._sender = Account(logins), Sender(logins)
        self._noted, self._holds = KeptText(directory, "read-up-to"), KeptText(directory, "held")
        self._held: dict[int, tuple[int, float]] = {}
        self._me = Bot(channel=context.name, settings=settings)
        self._caps = Caps(of_sender=settings.sender_per_hour, of_all=settings.account_per_hour)
        self._parents: Recent[str, Parent] = Recent(MOST_REMEMBERED)
        self._pressed: Recent[str, bool] = Recent(MOST_REMEMBERED)
        self._sent: Recent[str, bool] = Recent(MOST_REMEMBERED)
        self._toasts = ShortAnswers(context.log, "mail_not_answered")
        self._group: asyncio.TaskGroup | None = None
        self._answered, self._key = KeptText(directory, "answered"), KeptText(directory, "code-key")
        self._keying = asyncio.Lock()

    # --- inward ----------------------------------------------------------------------------------

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        """Read new mail until cancelled or closed; see `Channel.receive`."""
        with until(self._sender.closed):
            async with self._account.mailbox() as mailbox, asyncio.TaskGroup() as self._group:
                read = await self._begun(mailbox)
                ready()
                while True:
                    read = await self._read_on(mailbox, read, admit)
                    with suppress(ChannelUnavailable):  # what is read again is known by its keys
                        await self._note(read)
                        await self._keep_held(mailbox)
                    await mailbox.idle(self._settings.poll_s)  # recent news ends it at once

    async def _begun(self, mailbox: Mailbox) -> Read:
        """Return how far the mailbox has been read; mail from before the first start counts as read."""
        committed, validity = self._committed(), mailbox.validity
        cursor, _, name = (await self._noted.read()).strip().partition(" ")
        noted = read_cursor(cursor) if name == self._settings.mailbox else None
        known = [one for one in (committed, noted) if one is not None]
        place = re.escape(f" {validity} {self._settings.mailbox}")
        held = re.findall(rf"(?m)^(\d+) (\d+){place}$", await self._holds.read())
        later = self._now() + REFUSED_S
        # Any connection may break once, so what was asked for once is asked for first.
        self._held = {int(uid): (int(n), later if n > "1" else 0.0) for uid, n in held}
        if committed is not None and committed.uid and committed.validity == validity:
            await mailbox.flag(committed.uid)  # in case a kill or a lost connection prevented it
        if mine := [one.uid for one in known if one.validity == validity]:
            return Read(validity=validity, uid=max(mine))
        newest = await mailbox.newest()
        if known:
            # The UIDs mean other mails now. Answered mails are recognised by their Message-ID.
            since = format_datetime(self._context.clock.now() - RENUMBERED)[5:16]
            recent = await mailbox.search(f"SINCE {since.replace(' ', '-')}")
            newest = min(recent, default=newest + 1) - 1
            self._context.log("mailbox_renumbered", read_again=len(recent), level="warning")
        read = Read(validity=validity, uid=newest)
        await self._note(read)
        return read

    def _committed(self) -> Read | None:
        """Return the position that the runtime committed last, None if there is none."""
        return read_cursor(self._context.positions.get(self._settings.mailbox, ""))

    async def _note(self, read: Read) -> None:
        """Note how far the mailbox was read, unless the committed position says it."""
        if read != self._committed():
            await self._noted.keep(f"{read.validity}:{read.uid} {self._settings.mailbox}\n")

    async def _read_on(self, mailbox: Mailbox, read: Read, admit: Admit) -> Read:
        """Read the new mails and those that are held, one at a time; return how far it got."""
        for uid in sorted({*await mailbox.newer(read.uid), *self._held}):
            if self._held.get(uid, (0, 0.0))[1] <= self._now():
                fetched = await self._fetched(mailbox, uid)
                while fetched is not None and not await self._take(mailbox, fetched, admit):
                    await self._context.clock.sleep(AGAIN_S)
            read = replace(read, uid=max(uid, read.uid))
        return read

    async def _fetched(self, mailbox: Mailbox, uid: int) -> Fetched | None:
        """Return a mail; None if it is gone, or if the server does not give it now.

        Servers have mails that they can't read themselves, and say so or pass them over
        (github.com/jstedfast/MailKit/issues/358 and 908, read 2026-11), or break the connection. Such a
        mail is held: later ones go on, it is asked for again, and in the end it is given up.

        Raises:
            ChannelUnavailable: The connection is lost, which counts; or the disk does not take what
                is held, so no later mail may be stored.
        """
        tries, lost, why = self._held.pop(uid, (0, 0.0))[0] + 1, None, "it is passed over"
        try:
            fetched = await mailbox.fetch(uid, most=self._settings.max_mail_bytes)
            if fetched is not None or not await mailbox.search(f"UID {uid}"):
                return fetched
        except ChannelUnavailable as error:
            lost, why = None if isinstance(error, CommandRefused) else error, str(error)
        if tries < MOST_REFUSED:
            self._held[uid] = (tries, self._now() + REFUSED_S * 2 ** (tries - 1))
        self._context.log("mail_not_given", uid=uid, tries=tries, why=why, level="warning")
        if tries == TOLD_AFTER:
            await self._context.tell(MAIL_NOT_GIVEN.about(channel=self.name))
        await self._keep_held(mailbox)
        if lost is not None:
            raise lost
        return None

    async def _keep_held(self, mailbox: Mailbox) -> None:
        place, held = f"{mailbox.validity} {self._settings.mailbox}", self._held.items()
        await self._holds.keep("".join(f"{uid} {n} {place}\n" for uid, (n, _) in held))

    async def _take(self, mailbox: Mailbox, fetched: Fetched, admit: Admit) -> bool:
        """Decode a mail and pass it to the ingress; False if it could not be stored, for a retry.

        Raises:
            ChannelStopped: So many mails are answered that it must be a loop.
        """
        try:
            event = await self._decoded(fetched)
            if isinstance(event, Skipped):
                self._context.log("mail_passed_over", why=event.reason, uid=fetched.uid)
                for to in decode.returned_to(fetched.raw, await self._me_with_key()):
                    await self._tell_once("returned", to)
                return True
            sender = event.envelope.sender
            counts = sender.verified and self._counts(event)
            state = self._caps.state(sender.id, self._now()) if counts else "free"
            if state == "capped":
                self._context.log("sender_capped", uid=fetched.uid, level="warning")
                await self._tell_once("capped", sender.id)
                return True
            admission = await admit(event.envelope) if state == "free" else None
        except ZeroclawError as error:
            self._context.log("event_not_admitted", why=str(error), level="warning")
            return False
        if admission is None:
            message = (
                f"`{self.name}`: {self._settings.account_per_hour} mails within an hour look like "
                "a loop; see who writes, and start it again in an hour"
            )
            raise ChannelStopped(message)
        await self._follow(mailbox, fetched.uid, event, admission)
        return True

    async def _decoded(self, fetched: Fetched, said: Sequence[str] = ()) -> Decoded | Skipped:
        """Decode a mail, comparing it with what the bot said in its thread if necessary.

        A mail that can't be read is passed over.
        """
        me = await self._me_with_key()

        def read() -> Decoded | Skipped:
            # A mail program may quote either part of a mail.
            known = {*said, *(render.markdown(one).plain for one in said)}
            return decode.decoded(fetched, me, known)

        try:
            event = await asyncio.to_thread(read)
        except UNREADABLE as error:
            kind = type(error).__name__
            self._context.log("mail_not_read", kind=kind, uid=fetched.uid, level="warning")
            return Skipped(reason="it can't be read")
        if isinstance(event, Decoded) and event.may_quote and not said:
            known = await self._context.transcript(event.envelope.address, "")
            if said := [one.text for one in known if one.kind != "person"][-MOST_KNOWN:]:
                return await self._decoded(fetched, said)
        return event

    async def _follow(
        self, mailbox: Mailbox, uid: int, event: Decoded, admission: Admission
    ) -> None:
        """Mark a mail as seen on the server, and send its sender a short answer if there is one."""
        if isinstance(admission, Ignored):
            return
        if isinstance(admission, Accepted | Answered):
            if self._counts(event):
                self._caps.count(event.envelope.sender.id, self._now())
                await self._keep_counts()
            elif isinstance(body := event.envelope.body, Pressed):
                self._pressed[carried(body.approval, body.choice)] = True
        to = event.envelope.address
        self._parents[to.key()] = event.parent
        await mailbox.flag(uid)
        if isinstance(admission, Answered) and self._group:
            words = partial(render.letter_by_letter, admission.text)
            key = f"toast {event.envelope.message}"
            self._toasts.begin(self._group, partial(self._post, to, key, words, event.parent))

    def _counts(self, event: Decoded) -> bool:
        """Return whether a mail counts towards the caps; the first answer to a card does not.

        People have only the codes that the bot gave them, and no cap may delay an approval. A robot
        that replies to the result would send the same code again, which counts.
        """
        body = event.envelope.body
        return not isinstance(body, Pressed) or carried(body.approval, body.choice) in self._pressed

    async def _tell_once(self, notice: str, person: str) -> None:
        """Give operators a notice of a person, once until the person is answered again."""
        if not self._caps.is_told(notice, person):
            count = self._settings.sender_per_hour
            says = NOTICES[notice].about(channel=self.name, sender=person, count=count)
            await self._context.tell(says)
            self._caps.note_told(notice, person)
            await self._keep_counts()

    async def _keep_counts(self) -> None:
        """Keep whom the caps count; what a full disk does not take is in memory, and kept later."""
        with suppress(ChannelUnavailable):
            await self._answered.keep(self._caps.kept(self._now()))

    async def _me_with_key(self) -> Bot:
        """Return the decoding context with the key of the codes; creates the key once and keeps it."""
        async with self._keying:
            if not self._me.key:
                self._caps.remember(await self._answered.read(), self._now())
                key = kept if _KEY.fullmatch(kept := await self._key.read()) else token_hex(32)
                await self._key.keep(key)
                self._me = replace(self._me, key=bytes.fromhex(key))
        return self._me

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
        words = partial(render.answer, outgoing, is_folded=self._settings.receipts == "folded")
        return await self._post(to, outgoing.key, words, await self._parent(to))

    async def send_file(self, to: Address, file: OutgoingFile) -> MessageRef:
        """Send a file with its caption."""
        check_size(self.name, len(file.content), CAPABILITIES.max_file_bytes)
        words = partial(render.letter_by_letter, file.caption, file)
        return await self._post(to, file.key, words, await self._parent(to))

    async def ask(self, to: Address, card: Card) -> MessageRef:
        """Send a card with the links to answer it."""
        me = await self._me_with_key()
        id_ = decode.own_id(to, card.key, me)
        words = partial(render.card, card, id=id_, to=to.chat, me=me)
        return await self._post(to, card.key, words, decode.root_of(to.thread))

    async def settle(self, ref: MessageRef, outcome: Outcome) -> None:
        """Send how a card ended, as a reply to the card."""
        ended = " ".join(sorted(one.approval for one in outcome.endings))
        card = Parent(id=ref.message, subject=render.title(outcome.card))
        words = partial(render.ended, outcome)
        await self._post(ref.address, f"ended {ref.message} {ended}", words, card)

    def _refuse(self, *_what: object, **_more: object) -> NoReturn:
        """Refuse what mail does not allow: only the recipient sees a mail that a server has accepted.

        So a mail can't be looked up, changed or deleted, and nobody watches while it is written.
        """
        message = f"`{self.name}` sends mails, and can do nothing else with them"
        raise NotSupported(message)

    mark = lookup = edit = delete = preview = typing = _refuse

    def direct_address(self, sender: str) -> Address | None:
        """Return a person's chat, without a thread; any valid address can be written to."""
        if identity.normalised(sender) != sender or sender == self._settings.address:
            return None
        return Address(channel=self.name, account=self._settings.address, chat=sender, direct=True)

    async def fetch(self, attachment: Attachment, *, max_bytes: int) -> bytes:
        """Return the bytes of a file from the mail that it came with."""
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
        with suppress(ChannelUnavailable):  # an answer is worth more than its subject
            return self._parents.get(to.key()) or await self._account.newest(to)
        return decode.root_of(to.thread)

    async def _post(
        self, to: Address, key: str, words: Callable[[], Words], parent: Parent
    ) -> MessageRef:
        """Send a mail, in the thread of its parent; one that was sent before is not sent again."""
        if identity.normalised(to.chat) != to.chat:
            raise unknown(self.name, "chat", to.chat)
        id_ = decode.own_id(to, key, await self._me_with_key())
        at, account = self._context.clock.now(), self._settings

        def mail() -> bytes:
            return render.mail(words(), parent, account, message_id=id_, to=to.chat, at=at)

        if id_ not in self._sent:
            await self._sender.send(await asyncio.to_thread(mail), to.chat)
            self._sent[id_] = True
        return MessageRef(address=to, message=id_)


async def check(settings: EmailSettings, secrets: Mapping[str, str]) -> str:
    """Log in at both servers, open the mailbox and begin a mail; changes, voids and sends nothing.

    Raises:
        ChannelRejected: The sending server takes no mail from this address.
        ChannelUnauthorized: A login is not accepted, or there is no such mailbox.
        ChannelUnavailable: A server can't be reached.
        ConfigError: All is well, and no sender can be genuine.
    """
    logins, own = Logins("email", settings, secrets), settings.address
    # A server may take each refresh token once, and the daemon holds a newer one.
    reads = f"{own} has a refresh token, which the daemon alone tries"
    if not settings.refresh_token:
        async with Account(logins).mailbox() as mailbox:
            reads = f"{own} reads `{settings.mailbox}` from mail {await mailbox.newest() + 1:,} on"
            await Sender(logins).try_login()
    if not settings.authserv_id:
        message = f"{reads}, and answers nobody: everybody is a stranger until `authserv_id` is set"
        raise ConfigError((message,))
    return f"{reads}; senders are who `{settings.authserv_id}` says they are"


_KEY = re.compile(r"[0-9a-f]{64}")
