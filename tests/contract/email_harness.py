"""E-mail under the contract suite: the real libraries against real dovecot and postfix.

A mail can't be changed, so a card's links can be followed after it has ended; `buttons` are those of
calls without an outcome in a later mail.
"""

import asyncio
import re
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from tempfile import mkdtemp

from channels.email import CAPABILITIES, EmailSettings
from channels.email.adapter import EmailChannel
from channels.email.emulator.letters import body, links, mail_from
from channels.email.emulator.servers import AUTHSERV_ID, DOMAIN, PASSWORD, START_S, Servers, servers
from tests.contract.channel_suite import (
    Adapter,
    Harness,
    Losable,
    Standing,
    nothing_to_open,
    noting,
    receiving,
)
from tests.emulators.mail.relay import A_MAIL, Relay, relayed
from tests.fakes.bare_context import bare_context, no_log
from tests.fakes.manual_clock import ManualClock
from zeroclaw import (
    Address,
    Admission,
    Admit,
    ApprovalId,
    Channel,
    ChannelContext,
    Choice,
    Envelope,
    Log,
    MessageRef,
    SecretReference,
    ZeroclawError,
)

AGAIN_S = 1.0
CODE = re.compile(r"\[zc:(\w):([^:]+):")
CODES: Mapping[Choice, str] = {"once": "o", "for_a_time": "t", "deny": "d", "deny_with_reason": "d"}


def email_settings(mail: Servers, bot: str, **overrides: object) -> EmailSettings:
    settings: dict[str, object] = {
        "address": bot,
        "password": SecretReference(env="MAIL_PASSWORD"),
        "imap_host": "localhost",
        "imap_port": mail.imaps,
        "smtp_host": "localhost",
        "smtp_port": mail.submission,
        "ca_file": mail.ca_file,
        "authserv_id": AUTHSERV_ID,
        "sender_per_hour": 1_000,
    }
    return EmailSettings.model_validate(settings | overrides)


def email_context(
    settings: EmailSettings,
    clock: ManualClock,
    *,
    positions: Mapping[str, str],
    log: Log = no_log,
    directory: Path,
    account: str = "",
) -> ChannelContext:
    return bare_context(
        "email",
        settings,
        secrets={"password": PASSWORD},
        clock=clock,
        log=log,
        positions=positions,
        account=account,
        directory=directory,
    )


class Delivered:
    """Signals when ingress is done with a mail, and counts them."""

    def __init__(self, admit: Admit) -> None:
        self._admit = admit
        self.came = asyncio.Event()
        self.newest: Envelope | None = None
        self.is_refused = False

    async def __call__(self, envelope: Envelope) -> Admission:
        self.newest = envelope
        try:
            admission = await self._admit(envelope)
        except ZeroclawError:
            self.is_refused = True
            self.came.set()
            raise
        self.is_refused = False
        self.came.set()
        return admission


@dataclass(kw_only=True)
class EmailHarness:
    """The mails between one person and the bot outside of any thread.

    Attributes:
        is_stranger: The bot leaves their mails unread.
    """

    mail: Servers
    ann: str
    bot: str
    context: ChannelContext
    clock: ManualClock
    settings: EmailSettings
    directory: Path
    relay: Relay
    channel: Channel = field(init=False)
    delivered: Delivered = field(init=False)
    seen: int = 0
    is_stranger: bool = False
    people: dict[str, str] = field(default_factory=dict[str, str])

    def make(self) -> Channel:
        self.channel = EmailChannel(self.context)
        return self.channel

    def door(self, admit: Admit) -> Admit:
        self.delivered = Delivered(admit)
        return self.delivered

    def present(self) -> AbstractAsyncContextManager[None]:
        return nothing_to_open()

    def keep_limits(self) -> Callable[[], int]:
        raise NotImplementedError

    async def turn_to(self, name: str) -> None:
        self.people.setdefault("ann", self.ann)
        if name not in self.people:
            self.people[name] = self.mail.new_address(name)
        self.ann = self.people[name]
        self.is_stranger = name == "mallory"

    async def gather(self) -> str:
        raise NotImplementedError

    async def cut(self) -> None:
        await self.mail.cut(self.bot)

    @property
    def address(self) -> Address:
        return Address(channel="email", account=self.bot, chat=self.ann, direct=True)

    @property
    def person(self) -> str:
        return self.ann

    async def say(self, text: str) -> bool:
        return await self.write(mail_from(self.ann, self.bot, text))

    async def write(self, mail: EmailMessage) -> bool:
        self.delivered.came.clear()
        await self.mail.deliver(self.bot, mail.as_bytes(), sender=self.ann)
        if self.is_stranger:
            await self.delivered.came.wait()
            return True
        return await self._wait_delivered(is_new=True)

    async def redeliver(self) -> bool:
        """Deliver a refused mail again; or a taken one, as after a kill before it was recorded."""
        self.delivered.came.clear()
        if self.delivered.is_refused:
            await self.clock.advance(AGAIN_S)
            return await self._wait_delivered(is_new=True)
        newest = self.delivered.newest
        assert newest is not None
        assert newest.position is not None
        validity, _, uid = newest.position.cursor.partition(":")
        before = {newest.position.scope: f"{validity}:{int(uid) - 1}"}
        # A directory of its own: the note of how far was read follows the mark that a mail was seen,
        # so the first adapter may write it at any moment from here on. The cards' codes have one key.
        again = Path(mkdtemp(dir=self.directory))
        shutil.copy(self.directory / "code-key", again)
        context = email_context(self.settings, self.clock, positions=before, directory=again)
        async with receiving(EmailChannel(context), self.delivered):
            return await self._wait_delivered(is_new=False)

    async def send_file(self, name: str, content: bytes, *, claimed_bytes: int) -> bool:
        mail = mail_from(self.ann, self.bot)
        mail.add_attachment(
            content, maintype="text", subtype="plain", filename=name, params={"charset": "utf-8"}
        )
        *_, part = mail.iter_attachments()
        part.replace_header(
            "Content-Disposition", f'attachment; filename="{name}"; size={claimed_bytes}'
        )
        return await self.write(mail)

    async def press(
        self, ref: MessageRef, approval: ApprovalId, choice: Choice, reason: str = ""
    ) -> bool:
        card = next(
            received
            for received in await self.mail.mails(ref.address.chat)
            if received["message-id"] == f"<{ref.message}>"
        )
        link = next(
            link
            for link in links(card)
            if (found := CODE.search(link)) and found.groups() == (CODES[choice], approval)
        )
        mail = mail_from(self.ann, self.bot, reason, subject=link, in_reply_to="")
        if ref.address.chat == self.ann:
            return await self.write(mail)
        # A useless code gets no answer, and the next mail is read after it.
        await self.mail.deliver(self.bot, mail.as_bytes(), sender=self.ann)
        return True

    def toasts(self) -> Sequence[str]:
        return ()

    async def messages(self) -> tuple[Standing, ...]:
        # Programs show one of those that have the same Message-ID.
        by_id = {str(mail["message-id"]): mail for mail in await self.mail.mails(self.ann)}
        mails = [mail for mail in by_id.values() if is_outside(mail)]
        text = "\n".join(body(mail) for mail in mails if "Re: " in mail["subject"])
        return tuple(standing(mail, ended=text) for mail in mails)

    async def sees_typing(self) -> bool:
        return False

    async def tools_seen(self) -> tuple[str, ...]:
        return ()

    async def sees_preview(self) -> str:
        return ""

    async def _wait_delivered(self, *, is_new: bool) -> bool:
        """Wait until a mail is marked as seen, or could not be stored."""
        try:
            async with asyncio.timeout(START_S):
                await self.delivered.came.wait()
        except TimeoutError:
            raise AssertionError(f"no mail came to the door within {START_S:g} s") from None
        if self.delivered.is_refused:
            return False
        self.seen += is_new
        await self.mail.wait_seen(self.bot, self.seen)
        return True


def is_outside(mail: EmailMessage) -> bool:
    return str(mail["message-id"]).startswith("<zc..")


def standing(mail: EmailMessage, *, ended: str) -> Standing:
    text, _, below = body(mail).partition("\n\n-- \n")
    files = [
        (str(part.get_filename()), part.get_payload(decode=True))
        for part in mail.iter_attachments()
    ]
    approvals = (CODE.search(link) for link in links(mail))
    return Standing(
        text=text,
        buttons=frozenset(
            ApprovalId(found[2])
            for found in approvals
            if found is not None and f"0000000{found[2].rpartition('-')[2]}" not in ended
        ),
        file=next(
            ((name, len(content)) for name, content in files if isinstance(content, bytes)), None
        ),
        receipts=tuple(below.split("\n")) if below else (),
    )


@asynccontextmanager
async def email_platform(directory: Path) -> AsyncGenerator[EmailHarness]:
    mail = await asyncio.to_thread(servers)
    clock = ManualClock()
    bot, ann = mail.new_address("bot"), mail.new_address("ann")
    async with relayed(mail.submission) as relay:
        settings = email_settings(mail, bot, smtp_port=relay.port)
        yield EmailHarness(
            mail=mail,
            ann=ann,
            bot=bot,
            context=email_context(settings, clock, positions={}, directory=directory),
            clock=clock,
            settings=settings,
            directory=directory,
            relay=relay,
        )


class EmailPlace:
    """One person's mail to a bot that comes and goes."""

    def __init__(self, mail: Servers, directory: Path) -> None:
        self.mail = mail
        self.bot, self.ann = mail.new_address("bot"), mail.new_address("ann")
        self.facts: list[str] = []
        self.secrets = (PASSWORD,)
        self.directory = directory
        self.clock = ManualClock()

    @asynccontextmanager
    async def life(
        self, admit: Admit, positions: Mapping[str, str], account: str = ""
    ) -> AsyncGenerator[Channel]:
        context = email_context(
            email_settings(self.mail, self.bot),
            self.clock,
            positions=positions,
            log=noting(self.facts),
            directory=self.directory,
            account=account,
        )
        channel = EmailChannel(context)
        async with receiving(channel, admit):
            yield channel

    async def write(self, text: str) -> None:
        await self.mail.deliver(
            self.bot, mail_from(self.ann, self.bot, text).as_bytes(), sender=self.ann
        )


@asynccontextmanager
async def email_placed(directory: Path) -> AsyncGenerator[EmailPlace]:
    yield EmailPlace(await asyncio.to_thread(servers), directory)


def lose(harness: Harness, _kind: Losable) -> None:
    assert isinstance(harness, EmailHarness)
    harness.relay.cut(A_MAIL)


EMAIL = Adapter(
    name="email",
    capabilities=CAPABILITIES,
    platform=email_platform,
    placed=email_placed,
    has_toasts=False,
    has_groups=False,
    loses=lose,
    thread=f"begun@{DOMAIN}",
    needs=("dovecot", "postfix"),
)
