"""The adapter with its servers: cuts, refusals, renumbering, losses, and caps."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path

import pytest
from aioimaplib.aioimaplib import Command as ImapCommand
from aioimaplib.aioimaplib import Response

from channels._remote.incoming import Skipped
from channels.email import MANIFEST, adapter, decode, imap, smtp
from channels.email.adapter import EmailChannel, check
from channels.email.emulator import letters
from channels.email.emulator.letters import links
from channels.email.emulator.servers import DOMAIN, PASSWORD, START_S, VERDICT
from channels.email.robots import HOUR_S
from tests.contract.channel_suite import Desk, noting, receiving
from tests.contract.channel_words import CARD, FIRST, call
from tests.contract.email_harness import (
    EmailPlace,
    body,
    email_context,
    email_placed,
    email_settings,
    mail_from,
)
from tests.emulators.mail.milter import deliver_from_outside, milter
from tests.emulators.mail.relay import relayed
from tests.fakes.manual_clock import ManualClock
from tests.fakes.tcp_server import serving
from zeroclaw import (
    Address,
    Admission,
    Answered,
    Attachment,
    Channel,
    ChannelContext,
    ChannelRejected,
    ChannelStopped,
    ChannelUnauthorized,
    ChannelUnavailable,
    Command,
    ConfigError,
    DeliveryUnknown,
    Envelope,
    Localized,
    Outgoing,
    Pressed,
    Said,
    TranscriptItem,
    ZeroclawError,
    replace,
)

ONE_CALL = replace(CARD, calls=(call(1),))
pytestmark = [pytest.mark.slow, pytest.mark.needs("dovecot", "postfix")]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[EmailPlace]:
    async with email_placed(tmp_path) as opened:
        yield opened


def context_of(
    place: EmailPlace, clock: ManualClock | None = None, **settings: float | str
) -> ChannelContext:
    """Return a context; `poll_s` may be below the configurable minimum."""
    polled = {name: settings.pop(name) for name in {"poll_s"} & settings.keys()}
    return email_context(
        email_settings(place.mail, place.bot, **settings).model_copy(update=polled),
        clock or ManualClock(),
        positions={},
        log=noting(place.facts),
        directory=place.directory,
    )


@asynccontextmanager
async def channel_of(place: EmailPlace, **settings: str | int) -> AsyncGenerator[Channel]:
    """A channel that only sends."""
    channel = EmailChannel(context_of(place, None, **settings))
    try:
        yield channel
    finally:
        await channel.aclose()


def chat_of(place: EmailPlace, thread: str | None = None) -> Address:
    return Address(channel="email", account=place.bot, chat=place.ann, thread=thread, direct=True)


def outgoing(channel: Channel, text: str, key: str = "k") -> Outgoing:
    return Outgoing(rendered=channel.render(text), key=key)


async def write(place: EmailPlace, mail: EmailMessage) -> None:
    await place.mail.deliver(place.bot, mail.as_bytes(), sender=place.ann)


async def press(place: EmailPlace, code: str) -> None:
    """Answer a card by a link in it."""
    await write(place, mail_from(place.ann, place.bot, subject=code, in_reply_to=""))


async def bob_writes(place: EmailPlace, text: str) -> None:
    bob = place.mail.new_address("bob")
    await place.mail.deliver(place.bot, mail_from(bob, place.bot, text).as_bytes(), sender=bob)


def texts(desk: Desk) -> list[str]:
    return [envelope.body.text for envelope in desk.stored if isinstance(envelope.body, Said)]


# --- reading -------------------------------------------------------------------------------------


class Quiet(imap.Protocol):
    """A connection to a server that announces no mail."""

    async def select(self, mailbox: str) -> Response:
        self.capabilities.discard("IDLE")
        return await super().select(mailbox)


@pytest.mark.parametrize("protocol", [imap.Protocol, Quiet])
async def test_a_server_that_disappears_during_idle_is_noticed_at_once(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch, protocol: type[imap.Protocol]
) -> None:
    """The library would wait for half an hour, and the next poll is due in two minutes."""
    monkeypatch.setattr(imap, "Protocol", protocol)
    channel, ready = EmailChannel(context_of(place)), asyncio.Event()

    async def receive() -> None:
        with pytest.raises(ExceptionGroup) as caught:
            await channel.receive(Desk().admit, ready.set)
        assert caught.group_contains(ChannelUnavailable, match="was lost")

    async with asyncio.TaskGroup() as group:
        group.create_task(receive())
        await ready.wait()
        await place.mail.cut(place.bot)
    await channel.aclose()


async def test_a_channel_that_is_closed_ends_without_an_error(place: EmailPlace) -> None:
    channel, ready = EmailChannel(context_of(place)), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(channel.receive(Desk().admit, ready.set))
        await ready.wait()
        await channel.aclose()


async def test_a_send_by_a_closed_channel_leaves_no_connection(place: EmailPlace) -> None:
    """As while its successor waits to connect: its lookup in the mailbox uses a separate
    connection."""
    async with relayed(place.mail.imaps) as relay:
        channel = EmailChannel(context_of(place, imap_port=relay.port))
        await channel.aclose()
        await channel.send(chat_of(place), outgoing(channel, "4"))
        await relay.is_free.wait()
    assert [body(mail) for mail in await place.mail.mails(place.ann)] == ["4"]


async def test_mail_from_before_the_first_start_is_left_alone(place: EmailPlace) -> None:
    desk = Desk()
    await place.write("old")
    async with place.life(desk.admit, {}):
        await place.write("new")
        await desk.holds(1)
    assert texts(desk) == ["new"]


async def test_mail_after_the_first_start_is_read_before_any_position_is_stored(
    place: EmailPlace,
) -> None:
    """The note in the channel's directory holds where reading began. P1."""
    desk = Desk()
    async with place.life(desk.admit, {}):
        pass
    await place.write("meanwhile")
    async with place.life(desk.admit, {}):
        await desk.holds(1)
    assert texts(desk) == ["meanwhile"]


async def test_the_reading_position_is_noted_if_no_position_is_stored(place: EmailPlace) -> None:
    """Only for this mailbox: another one's UIDs mean nothing."""
    desk, note = Desk(), place.directory / "read-up-to"
    committed: dict[str, str] = {}

    async def admit(envelope: Envelope) -> Admission:
        admission = await desk.admit(envelope)
        committed.update(desk.positions)
        return admission

    async with place.life(admit, committed):
        await place.write("one")
        await desk.holds(1)
        await place.mail.wait_seen(place.bot, 1)
        await place.write("two")
        await desk.holds(2)
    noted = note.read_text()
    assert noted.endswith(f":0 {place.bot} INBOX\n")
    note.write_text(noted.replace(f":0 {place.bot} INBOX", f":99 {place.bot} Other"))
    async with place.life(desk.admit, {}):
        await place.write("three")
        await desk.holds(3)
    assert texts(desk) == ["one", "two", "three"]


async def test_a_full_disk_does_not_end_a_running_channel(place: EmailPlace) -> None:
    """The position may be noted late, but not the beginning, or a kill would lose mails."""
    desk, full = Desk(), place.directory / "read-up-to.new"
    full.symlink_to("/dev/full")
    with pytest.raises(ExceptionGroup) as caught:
        async with place.life(desk.admit, {}):
            pass
    match = "can't be written now: no space left on device; make room there$"
    assert caught.group_contains(ChannelUnavailable, match=match)
    full.unlink()
    async with place.life(desk.admit, {}):
        full.symlink_to("/dev/full")
        robot = mail_from(place.ann, place.bot, "I am away")
        robot["Auto-Submitted"] = "auto-replied"
        await place.mail.deliver(place.bot, robot.as_bytes(), sender=place.ann)
        await place.write("one")
        await desk.holds(1)
        await place.mail.wait_seen(place.bot, 1)
        for name in ("answered", "code-key"):
            (place.directory / f"{name}.new").symlink_to("/dev/full")
        await place.write("two")
        await place.mail.wait_seen(place.bot, 2)
    async with place.life(desk.admit, {}):
        await place.write("three")
        await place.mail.wait_seen(place.bot, 3)
    assert texts(desk) == ["one", "two", "three"]


async def test_an_unreadable_note_is_not_taken_for_a_missing_one(place: EmailPlace) -> None:
    """Otherwise mail received meanwhile would count as read."""
    desk, note = Desk(), place.directory / "read-up-to"
    async with place.life(desk.admit, {}):
        await place.write("one")
        # The note follows a moment after the mail is seen.
        while not note.read_text().endswith(f":1 {place.bot} INBOX\n"):  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(0)
    before = note.read_text()
    await place.write("meanwhile")
    with unreadable(note), pytest.raises(ExceptionGroup) as caught:
        async with place.life(desk.admit, {}):
            pass
    match = f"`{note}` can't be read now: too many levels of symbolic links"
    assert caught.group_contains(ChannelUnavailable, match=re.escape(match))
    assert note.read_text() == before
    async with place.life(desk.admit, {}):
        await place.mail.wait_seen(place.bot, 2)
    assert texts(desk) == ["one", "meanwhile"]


async def test_a_renumbered_mailbox_repeats_no_mail(place: EmailPlace) -> None:
    """Admitted mail is known by its Message-ID and verified sender; new mail is read. S2-02."""
    desk = Desk()
    async with place.life(desk.admit, {}):
        for text in ("one", "two"):
            await place.write(text)
        await desk.holds(2)
    await place.mail.renumber(place.bot)
    await place.write("three")
    async with place.life(desk.admit, desk.positions):
        await place.write("four")
        await desk.holds(4)
    assert texts(desk) == ["one", "two", "three", "four"]
    assert any("mailbox_renumbered" in fact for fact in place.facts)


@pytest.mark.parametrize("scope", ["{} INBOX", "INBOX"])
async def test_the_progress_in_one_account_counts_for_no_other(
    place: EmailPlace, scope: str
) -> None:
    """After `address` was changed: at Gmail all inboxes have the same UIDVALIDITY. P1."""
    desk, old = Desk(), place.bot
    async with place.life(desk.admit, {}):
        for text in ("one", "two"):
            await place.write(text)
        await desk.holds(2)
        await place.mail.wait_seen(place.bot, 2)
    # Earlier versions stored no account in a position.
    positions = {scope.format(old): cursor for cursor in desk.positions.values()}
    note = place.directory / "read-up-to"
    note.write_text(note.read_text().replace(f"{old} INBOX", scope.format(old)))
    async with place.life(desk.admit, positions, account=old):
        await place.write("three")
        await desk.holds(3)
    for account, text in ((old, "four"), ("", "five")):  # then the positions are of two accounts
        place.bot = place.mail.new_address("bot")
        await place.write("from before the start")
        await place.mail.renumber(place.bot, like=old)
        other = Desk()
        async with place.life(other.admit, positions, account=account):
            await place.write(text)
            await other.holds(1)
        assert texts(other) == [text]
        positions |= other.positions
    assert texts(desk) == ["one", "two", "three"]


async def test_a_file_is_never_taken_from_another_mail_with_the_same_id(place: EmailPlace) -> None:
    """Anyone may reuse a Message-ID, so after a renumbering the file is not available."""
    desk = Desk()
    mail = mail_from(place.ann, place.bot, "see")
    mail.add_attachment(b"hers", maintype="application", subtype="x", filename="a.bin")
    forged = mail_from("eve@else.example", place.bot, "see")
    forged.replace_header("Message-ID", str(mail["Message-ID"]))
    forged.add_attachment(b"eve's", maintype="application", subtype="x", filename="a.bin")
    await write(place, forged)
    async with place.life(desk.admit, {}):
        await write(place, mail)
        await desk.holds(1)
        await place.mail.wait_seen(place.bot, 1)
    channel, [file] = EmailChannel(context_of(place)), desk.stored[0].attachments
    assert await channel.fetch(file, max_bytes=100) == b"hers"
    await place.mail.renumber(place.bot)
    for reference in (file.reference, "1:2:3", "", "1:2", "1:2:x", "²:2:3", "1:2:3:"):
        lost = Attachment(reference=reference, name="a", media_type="a/b")
        with pytest.raises(ChannelRejected):
            await channel.fetch(lost, max_bytes=100)
    await channel.aclose()


async def test_a_server_without_idle_is_polled(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second mail arrives after the search that found the first."""
    desk = Desk()
    monkeypatch.setattr(imap, "Protocol", Quiet)
    async with receiving(EmailChannel(context_of(place, poll_s=0.1)), desk.admit):
        for number, text in enumerate(("one", "two"), start=1):
            await place.write(text)
            await desk.holds(number)
    assert texts(desk) == ["one", "two"]


SKIPPED_MAILS = {
    "an answering machine": {"Auto-Submitted": "auto-replied"},
    "a list": {"List-Id": "<all.a.example>"},
    "two senders": {"From": f"a@{DOMAIN}, b@{DOMAIN}"},
}


async def test_automatic_mail_is_skipped_and_stays_unread(place: EmailPlace) -> None:
    desk = Desk()
    async with place.life(desk.admit, {}):
        for headers in SKIPPED_MAILS.values():
            mail = mail_from(place.ann, place.bot, "robot")
            for name, value in headers.items():
                del mail[name]
                mail[name] = value
            await write(place, mail)
        await place.mail.deliver(
            place.bot, mail_from(place.ann, place.bot, "bounce").as_bytes(), sender=""
        )
        await place.mail.deliver(place.bot, b"\xff\x00 no mail at all", sender=place.ann)
        await place.write("person")
        await desk.holds(1)
        await place.mail.wait_seen(place.bot, 1)
    assert texts(desk) == ["person"]
    skip_facts = [fact for fact in place.facts if "mail_skipped" in fact]
    assert ["not exactly one sender" in fact for fact in skip_facts].count(True) == 2
    assert not any("debug" in fact for fact in skip_facts)


async def test_a_mail_that_can_not_be_read_does_not_end_the_channel(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays unread, and is not fetched again."""
    desk = Desk()
    real = decode.decode

    def fail_once(
        fetched: decode.Fetched, bot: decode.Bot, bot_texts: Sequence[str]
    ) -> decode.Decoded | Skipped:
        if b"poison" in fetched.raw:
            raise RecursionError
        return real(fetched, bot, bot_texts)

    monkeypatch.setattr(decode, "decode", fail_once)
    async with place.life(desk.admit, {}):
        for text in ("poison", "hello"):
            await place.write(text)
        await desk.holds(1)
        await place.mail.wait_seen(place.bot, 1)
    assert texts(desk) == ["hello"]
    assert any("mail_not_read" in fact for fact in place.facts)


class Unreadable(imap.Protocol):
    """A connection to a server that can't read the first mail of a mailbox itself."""

    answer = Response("NO", [b"FETCH Server error while fetching messages"])

    async def execute(self, command: ImapCommand, scrub: str | None = None) -> Response:
        is_first = " UID FETCH 1 " in str(command)
        return self.answer if is_first else await super().execute(command, scrub)


class Silent(Unreadable):
    """A connection to a server that omits that mail."""

    answer = Response("OK", [b"FETCH completed."])


@pytest.mark.parametrize("protocol", [Unreadable, Silent])
async def test_a_mail_that_the_server_withholds_delays_no_other(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch, protocol: type[imap.Protocol]
) -> None:
    """Later mail used to wait five minutes for it. It is requested again, after a restart too.
    P1."""
    known, desk = imap.Protocol, Desk()
    monkeypatch.setattr(imap, "Protocol", protocol)
    async with place.life(desk.admit, {}):
        await place.write("one")
        await place.write("two")
        await desk.holds(1)
        await place.mail.wait_seen(place.bot, 1)
    assert texts(desk) == ["two"]
    monkeypatch.setattr(imap, "Protocol", known)
    await place.clock.advance(adapter.RETRY_S)
    async with place.life(desk.admit, desk.positions):
        await desk.holds(2)
        await place.mail.wait_seen(place.bot, 2)
        await place.write("three")
        await desk.holds(3)
        await place.mail.wait_seen(place.bot, 3)
    assert texts(desk) == ["two", "one", "three"]


async def test_a_mail_that_the_server_never_delivers_is_given_up_and_reported_once(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10."""
    desk = Desk()
    monkeypatch.setattr(imap, "Protocol", Unreadable)
    monkeypatch.setattr(adapter, "RETRY_S", 0.0)
    notices, facts, is_over = list[str](), list[str](), asyncio.Event()
    reasons = set[object]()

    async def tell(message: Localized) -> None:
        notices.append(message.to("en"))

    def log(event: str, /, **fields: object) -> None:
        facts.append(event)
        reasons.add(fields.get("reason"))
        if facts.count("mail_not_fetched") == adapter.MAX_TRIES:
            is_over.set()

    context = replace(context_of(place, poll_s=0.01), log=log, tell=tell)
    async with receiving(EmailChannel(context), desk.admit):
        await place.write("one")
        await is_over.wait()
        for number, text in enumerate(("two", "three"), start=1):
            await place.write(text)
            await desk.holds(number)
    assert texts(desk) == ["two", "three"]
    assert facts.count("mail_not_fetched") == adapter.MAX_TRIES
    assert reasons == {
        "`email`: the mailbox refused a command (fetch server error while fetching messages)"
    }
    assert ["does not hand over" in notice for notice in notices] == [True]
    assert (place.directory / "held").read_text() == ""


async def test_a_withheld_mail_does_not_wait_for_a_clock_that_was_ahead(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon started before the machine had asked for the time."""
    desk = Desk()
    monkeypatch.setattr(imap, "Protocol", Unreadable)
    clock, tries = ManualClock(), asyncio.Semaphore(0)

    def log(event: str, /, **_: object) -> None:
        if event == "mail_not_fetched":
            tries.release()

    context = replace(context_of(place, clock, poll_s=0.01), log=log)
    async with receiving(EmailChannel(context), desk.admit):
        await place.write("one")
        await tries.acquire()
        clock.leap(timedelta(days=-400))
        await clock.advance(adapter.RETRY_S)
        await tries.acquire()


class ReadOnly(imap.Protocol):
    """A connection to a server that refuses changes of a mail's flags."""

    async def store(self, *_args: str, by_uid: bool = False) -> Response:
        return Response("NO", [b"[NOPERM] the mailbox may only be read"])


async def test_a_server_that_refuses_to_mark_a_mail_as_seen_is_read_on(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to end the channel, and then each of its starts. P1."""
    desk = Desk()
    monkeypatch.setattr(imap, "Protocol", ReadOnly)
    async with place.life(desk.admit, {}):
        await place.write("one")
        await place.write("two")
        await desk.holds(2)
    async with place.life(desk.admit, desk.positions):
        await place.write("three")
        await desk.holds(3)
    assert texts(desk) == ["one", "two", "three"]


class Breaking(imap.Protocol):
    """A connection to a server that breaks on the first mail of a mailbox."""

    async def execute(self, command: ImapCommand, scrub: str | None = None) -> Response:
        if " UID FETCH 1 " in str(command):
            self.transport.abort()
        return await super().execute(command, scrub)


async def test_a_mail_that_breaks_the_connection_is_given_up(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to at each start. At first it is requested first, since any connection may break."""
    desk = Desk()
    monkeypatch.setattr(imap, "Protocol", Breaking)

    async def life(text: str) -> None:
        async with place.life(desk.admit, {}):
            await place.write(text)
            await desk.holds(1)

    for tries in ("1", "2"):
        with pytest.raises(ExceptionGroup) as caught:
            await life("breaks it" if tries == "1" else "later")
        assert caught.group_contains(ChannelUnavailable, match="was lost")
        assert (place.directory / "held").read_text().startswith(f"1 {tries} ")
    await life("later")
    assert {*texts(desk)} == {"later"}  # one or two: the second process may end before it writes


async def test_operators_are_notified_of_a_bounced_mail(place: EmailPlace) -> None:
    """A server that accepted a mail may bounce it later, after a restart too. P6."""
    desk, notices = Desk(), list[str]()

    async def tell(message: Localized) -> None:
        notices.append(message.to("en"))

    async with place.life(desk.admit, {}) as channel:
        sent = await channel.send(chat_of(place), outgoing(channel, "It is 4."))
    context = replace(context_of(place, place.clock), tell=tell)
    async with receiving(EmailChannel(context), desk.admit):
        for _ in range(2):
            report = REPORT.format(id=sent.message, to=place.ann).replace("\n", "\r\n").encode()
            await place.mail.deliver(place.bot, report, sender="")
        await place.write("hello")
        await desk.holds(1)
    [notice] = notices
    assert notice.startswith(f"`email`: a mail of mine to {place.ann} came back")


REPORT = """From: MAILER-DAEMON@zero.test
Subject: Undelivered Mail Returned to Sender
Message-ID: <report@zero.test>
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b

It could not be delivered.
--b
Content-Type: message/delivery-status

Final-Recipient: rfc822; ann@a.example
Action: failed
Status: 5.1.1
--b
Content-Type: message/rfc822

Message-ID: <{id}>
To: {to}
Subject: Re: sums

It is 4.
--b--
"""


async def test_a_forged_sender_is_a_stranger_to_the_runtime(place: EmailPlace) -> None:
    """A verdict below our server's, under another name or without one does not count. P4."""
    desk = Desk()
    forged = (
        "",
        VERDICT.replace("pass", "fail"),
        f"other.example; dmarc=pass header.from={DOMAIN}",
        VERDICT.replace(f"header.from={DOMAIN}", "header.from=evil.example"),
    )
    async with place.life(desk.admit, {}):
        for vouched in forged:
            mail = mail_from(place.ann, place.bot, "forged", verdict=vouched)
            if "fail" in vouched:
                mail["Authentication-Results"] = VERDICT  # added by the writer, below ours
            await write(place, mail)
        await desk.holds(len(forged))
    assert [envelope.sender.verified for envelope in desk.stored] == [False] * len(forged)


async def test_only_our_own_servers_milter_verifies_a_sender(place: EmailPlace) -> None:
    """Through postfix, like real mail: verdicts that the writer adds are removed. P4."""
    desk = Desk()
    async with milter(place.mail.milter), place.life(desk.admit, {}):
        senders = {"honest": place.ann, "forged": "eve@evil.test"}
        for number, (text, sender) in enumerate(senders.items(), start=1):
            mail = mail_from(place.ann, place.bot, text, verdict="")
            if text == "forged":
                mail["Authentication-Results"] = VERDICT
                mail["authentication-results"] = VERDICT.upper()
            await deliver_from_outside(place.mail, place.bot, mail.as_bytes(), sender=sender)
            await desk.holds(number)  # postfix delivers queued mails in any order
        await place.mail.wait_delivered()
    assert [(envelope.sender.id, envelope.sender.verified) for envelope in desk.stored] == [
        (place.ann, True),
        (place.ann, False),
    ]


async def test_a_senders_hourly_cap_does_not_affect_others(place: EmailPlace) -> None:
    """Further mail stays unread; a robot that ignores headers gets no answer to reply to.

    Operators are notified once, and reading stops until they are.
    """
    desk = Desk()
    notices, failed = list[str](), asyncio.Event()

    async def tell(message: Localized) -> None:
        notices.append(message.to("en"))
        if len(notices) == 1:
            failed.set()
            raise ZeroclawError("the store is full")

    clock = ManualClock()
    context = replace(context_of(place, clock, sender_per_hour=2), tell=tell)
    async with receiving(EmailChannel(context), desk.admit):
        for number in range(4):
            await place.write(f"robot {number}")
        await bob_writes(place, "bob")
        await failed.wait()
        await clock.advance(1)
        await desk.holds(3)
        await place.mail.wait_seen(place.bot, 3)
    assert texts(desk) == ["robot 0", "robot 1", "bob"]
    assert len(notices) == 2
    assert f"{place.ann} wrote 2 mails within an hour" in notices[-1]
    assert any("sender_capped" in fact for fact in place.facts)


async def test_answers_to_cards_do_not_count_towards_the_cap(place: EmailPlace) -> None:
    """An approver answers only codes that the bot sent; a repeated one may be a robot's. P5."""
    desk = Desk()
    channel = EmailChannel(context_of(place, sender_per_hour=2, account_per_hour=3))
    async with receiving(channel, desk.admit):
        await channel.ask(chat_of(place), ONE_CALL)
        [card] = await mails_to_ann(place, 1)
        codes = list(links(card))
        for code in (*codes, *codes[:1] * 3):
            await press(place, code)
        await bob_writes(place, "bob")
        await desk.holds(6)
    assert len(codes) == 3
    assert [isinstance(envelope.body, Pressed) for envelope in desk.stored] == [True] * 5 + [False]
    assert any("sender_capped" in fact for fact in place.facts)


async def test_a_restart_does_not_reset_the_hourly_counts(
    place: EmailPlace, tmp_path: Path
) -> None:
    """The counts are in a private file in the channel's directory; so is the stop."""
    desk, clock = Desk(), ManualClock()

    def opened() -> Channel:
        settings = email_settings(place.mail, place.bot, sender_per_hour=2)
        log, positions = noting(place.facts), desk.positions
        return EmailChannel(
            email_context(settings, clock, positions=positions, log=log, directory=tmp_path)
        )

    for number in (1, 2):
        async with receiving(opened(), desk.admit):
            await place.write(f"robot {number}")
            await desk.holds(number)
            await place.mail.wait_seen(place.bot, number)
    await clock.advance(HOUR_S / 2)
    assert (tmp_path / "answered").stat().st_mode & 0o777 == 0o600
    async with receiving(opened(), desk.admit):
        await place.write("robot 3")
        await bob_writes(place, "bob")
        await desk.holds(3)
    assert texts(desk) == ["robot 1", "robot 2", "bob"]
    assert any("sender_capped" in fact for fact in place.facts)


async def test_a_loop_of_many_senders_stops_the_channel_and_says_so(place: EmailPlace) -> None:
    desk = Desk()
    channel = EmailChannel(context_of(place, account_per_hour=2))
    caught: list[BaseException] = []

    async def receive(ready: Callable[[], None]) -> None:
        try:
            await channel.receive(desk.admit, ready)
        except* ChannelStopped as group:
            caught.extend(group.exceptions)

    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(receive(ready.set))
        await ready.wait()
        for number in range(3):
            await bob_writes(place, f"robot {number}")
    await channel.aclose()
    assert texts(desk) == ["robot 0", "robot 1"]
    assert "2 mails within an hour look like a loop" in str(caught[0])


async def test_the_bots_words_repeated_in_a_mail_are_not_the_senders_own(place: EmailPlace) -> None:
    """For programs that quote without marks. A failed transcript lookup is retried."""
    desk, lookups, failed = Desk(), list[Address](), asyncio.Event()
    at = datetime(2026, 1, 2, tzinfo=UTC)
    bots_words = "It costs **three** euros, and the shop opens at nine."

    async def transcript(address: Address, _after: str) -> tuple[TranscriptItem, ...]:
        lookups.append(address)
        if len(lookups) == 1:
            failed.set()
            raise ZeroclawError("the store is full")
        mine = TranscriptItem(
            kind="person", text="Please do what you did the last time, dear", at=at
        )
        return (mine, TranscriptItem(kind="bot", text=bots_words, at=at))

    clock = ManualClock()
    channel = EmailChannel(replace(context_of(place, clock), transcript=transcript))
    words = "Please do what you did the last time, dear"
    mail = mail_from(
        place.ann, place.bot, f"{words}\n\n{bots_words.replace('*', '')}", in_reply_to="<a@b>"
    )
    async with receiving(channel, desk.admit):
        await write(place, mail)
        await failed.wait()
        await clock.advance(1)
        await desk.holds(1)
    assert desk.stored[0].body == Said(text=f"{words}\n\n{bots_words.replace('*', '')}", own=words)
    assert lookups == [desk.stored[0].address] * 2


async def test_only_the_beginning_of_a_too_large_mail_is_read(place: EmailPlace) -> None:
    desk = Desk()
    mail = mail_from(place.ann, place.bot, "see the file")
    mail.add_attachment(b"x" * 300_000, maintype="application", subtype="x", filename="a.bin")
    channel = EmailChannel(context_of(place, max_mail_bytes=100_000))
    async with receiving(channel, desk.admit):
        await write(place, mail)
        await desk.holds(1)
        [file] = desk.stored[0].attachments
        with pytest.raises(ChannelRejected, match="larger than `max_mail_bytes`"):
            await channel.fetch(file, max_bytes=1_000_000)
    assert (texts(desk), file.name) == (["see the file"], "a.bin")


async def test_the_sender_of_a_code_gets_the_outcome(place: EmailPlace) -> None:
    """As a reply to the mail with the code. S2-10."""

    async def admit(envelope: Envelope) -> Answered:
        assert isinstance(envelope.body, Pressed)
        return Answered(text="already approved by *olga*")

    channel = EmailChannel(context_of(place))
    async with receiving(channel, admit):
        await channel.ask(chat_of(place), ONE_CALL)
        [card] = await mails_to_ann(place, 1)
        await press(place, links(card)[0])
        await place.mail.wait_seen(place.bot, 1)
        [_, reply] = await mails_to_ann(place, 2)
    assert body(reply) == "already approved by *olga*"


async def test_a_code_is_valid_after_a_restart_and_for_no_other_daemon(place: EmailPlace) -> None:
    """It depends on a private key in the channel's directory. S2-10, P5."""
    desk = Desk()
    async with place.life(desk.admit, {}) as channel:
        ref = await channel.ask(chat_of(place), ONE_CALL)
    [card] = await mails_to_ann(place, 1)
    once, _, deny = links(card)
    assert (place.directory / "code-key").stat().st_mode & 0o777 == 0o600
    async with place.life(desk.admit, desk.positions):
        await press(place, once)
        await desk.holds(1)
    (place.directory / "code-key").unlink()
    async with place.life(desk.admit, desk.positions):
        await press(place, deny)
        await desk.holds(2)
    first, second = (envelope.body for envelope in desk.stored)
    assert first == Pressed(approval=FIRST, choice="once", card=ref)
    assert second == Command(name="deny")


async def test_an_unreadable_key_is_not_replaced(place: EmailPlace) -> None:
    """A new one would void the codes of every open card. P5."""
    desk, key = Desk(), place.directory / "code-key"
    async with place.life(desk.admit, {}) as channel:
        ref = await channel.ask(chat_of(place), ONE_CALL)
        [card] = await mails_to_ann(place, 1)
    with (
        unreadable(key),
        pytest.raises(ChannelUnavailable, match=r"`.*/code-key` can't be read now"),
    ):
        await EmailChannel(context_of(place)).ask(chat_of(place), ONE_CALL)
    async with place.life(desk.admit, desk.positions):
        await press(place, links(card)[0])
        await desk.holds(1)
    assert desk.stored[0].body == Pressed(approval=FIRST, choice="once", card=ref)


@contextmanager
def unreadable(file: Path) -> Generator[None]:
    """Let a file exist without being readable, even by root."""
    aside = file.rename(file.with_name("aside"))
    file.symlink_to(file)
    yield
    aside.rename(file)


async def mails_to_ann(place: EmailPlace, number: int) -> Sequence[EmailMessage]:
    """Wait until Ann has this many mails."""
    async with asyncio.timeout(START_S):
        while len(mails := await place.mail.mails(place.ann)) < number:
            pass
    return mails


# --- answering -----------------------------------------------------------------------------------


async def test_an_answer_is_filed_in_its_thread(place: EmailPlace) -> None:
    """It has the subject and the ids of the thread, also after a restart. S2-19."""
    desk = Desk()
    first = mail_from(place.ann, place.bot, "2+2?", subject="the sums", in_reply_to="")
    root = str(first["Message-ID"])
    async with place.life(desk.admit, {}) as channel:
        await write(place, first)
        await desk.holds(1)
        to = desk.stored[0].address
        await channel.send(to, outgoing(channel, "4"))
        [answer] = await place.mail.mails(place.ann)
        again = mail_from(
            place.ann,
            place.bot,
            "and 3+3?",
            subject="Re: the sums",
            in_reply_to=str(answer["Message-ID"]),
        )
        await write(place, again)
        await desk.holds(2)
        assert desk.stored[1].address == to
    forged = {"subject": "Re: pay Eve", "in_reply_to": str(answer["Message-ID"]), "verdict": ""}
    await write(place, mail_from(place.ann, place.bot, "for whom nobody vouches", **forged))
    async with place.life(desk.admit, desk.positions) as channel:
        await channel.send(to, outgoing(channel, "6", "k2"))
    _, second = await place.mail.mails(place.ann)
    assert (answer["Subject"], second["Subject"]) == ("Re: the sums", "Re: the sums")
    assert (answer["In-Reply-To"], answer["References"]) == (root, root)
    assert second["In-Reply-To"] == again["Message-ID"]
    assert answer["Auto-Submitted"] == "auto-replied"
    assert (answer["From"], answer["To"]) == (place.bot, place.ann)


async def test_a_deleted_mail_is_answered_in_its_thread_all_the_same(place: EmailPlace) -> None:
    async with channel_of(place) as channel:
        await channel.send(chat_of(place, "gone@a.example"), outgoing(channel, "4"))
    [answer] = await place.mail.mails(place.ann)
    assert (answer["Subject"], answer["In-Reply-To"]) == ("Re: zeroclaw", "<gone@a.example>")


async def test_a_sent_mail_is_not_sent_again_by_the_same_channel(place: EmailPlace) -> None:
    """As when its record failed. P1."""
    async with channel_of(place) as channel:
        refs = [await channel.send(chat_of(place), outgoing(channel, "4")) for _ in range(2)]
    assert [body(mail) for mail in await place.mail.mails(place.ann)] == ["4"]
    assert refs[0] == refs[1]


async def test_a_chat_without_a_valid_address_is_refused(place: EmailPlace) -> None:
    async with channel_of(place) as channel:
        with pytest.raises(ChannelRejected):
            await channel.send(replaced_chat(place, "nobody"), outgoing(channel, "4"))
        assert channel.direct_address("Ann@zero.test") is None
        assert channel.direct_address(place.bot) is None


def replaced_chat(place: EmailPlace, chat: str) -> Address:
    return Address(channel="email", account=place.bot, chat=chat, direct=True)


async def test_a_check_logs_in_at_both_servers(place: EmailPlace) -> None:
    settings = email_settings(place.mail, place.bot)
    text = await check(settings, {"password": PASSWORD})
    assert f"{place.bot} reads `INBOX`" in text
    bare = email_settings(place.mail, place.bot, authserv_id="")
    with pytest.raises(ConfigError, match="but every sender is a stranger"):
        await check(bare, {"password": PASSWORD})
    assert MANIFEST.asks == ("authserv_id",)  # or `init` could not fix that


async def failing(place: EmailPlace, password: str = PASSWORD, **settings: object) -> str:
    configured = email_settings(place.mail, place.bot, **settings)
    with pytest.raises((ChannelUnauthorized, ChannelUnavailable)) as caught:
        await check(configured, {"password": password})
    text = str(caught.value)
    assert password not in text or not password
    assert "\n" not in text
    return f"{type(caught.value).__name__}: {text}"


async def test_certificates_are_found_below_a_home(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `check-config` finds them."""
    file = Path(place.mail.ca_file)
    monkeypatch.setenv("HOME", str(file.parent))
    configured = email_settings(place.mail, place.bot, ca_file=f"~/{file.name}")
    assert "reads `INBOX`" in await check(configured, {"password": PASSWORD})


async def test_faults_are_reported_in_one_line(place: EmailPlace) -> None:
    """The error's class says who must act, and its text has no password. P8, P10."""
    assert "ChannelUnauthorized: `email`: the mailbox does not accept" in await failing(
        place, "wrong"
    )
    assert "ChannelUnauthorized: `email`: the password is not set" in await failing(place, "")
    assert "line break" in await failing(place, "two\nlines")
    assert "there is no mailbox `Other`" in await failing(place, mailbox="Other")
    assert "no mailbox answers" in await failing(place, imap_port=1)
    # The port is closed there, but not where the library connects without a host.
    assert "ChannelUnavailable: `email`: `127.0.0.2` can't be reached" in await failing(
        place, smtp_host="127.0.0.2"
    )
    assert "can't prove its name" in await failing(place, imap_host="127.0.0.1")
    # They may be replaced or mounted later, so the channel tries again.
    assert (
        "ChannelUnavailable: `email`: `ca_file` can't be read as certificates: not a directory"
        in await failing(place, ca_file="/dev/null/none")
    )


# --- servers that fail ---------------------------------------------------------------------------


@asynccontextmanager
async def smtp_server(
    place: EmailPlace,
    commands: asyncio.Queue[str] | None = None,
    max_mails: int = 99,
    /,
    **answers: str,
) -> AsyncGenerator[int]:
    """An SMTP server with these answers to commands; an empty answer cuts the connection.

    It puts each command into the queue, an empty one at the end of a connection, and accepts
    `max_mails` by each connection.
    """
    defaults = {
        "EHLO": "250-here\r\n250 AUTH PLAIN",
        "AUTH": "235 in",
        "MAIL": "250 ok",
        "RCPT": "250 ok",
        "DATA": "354 go on",
        ".": "250 taken",
        "QUIT": "221 bye",
    }

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reply, is_data, accepted = "220 here", False, 0
        while reply:
            writer.write(f"{reply}\r\n".encode())
            line = (await reader.readline()).decode().strip()
            while is_data and line != "." and not reader.at_eof():
                line = (await reader.readline()).decode().strip()
            command = line.split(" ")[0]
            if commands is not None:
                commands.put_nowait(command)
            accepted += command == "."
            is_full = command == "MAIL" and accepted == max_mails
            reply = "421 enough" if is_full else (defaults | answers).get(command, "")
            is_data = reply.startswith("354")

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(place.mail.home / "cert.pem", place.mail.home / "key.pem")
    async with serving(serve, tls=tls) as port:
        yield port


async def until_ended(received: asyncio.Queue[str], connections: int) -> list[str]:
    """Return the commands received until this many connections have ended."""
    commands: list[str] = []
    while commands.count("") < connections:
        commands.append(await received.get())
    return commands


async def test_consecutive_mails_use_one_connection(place: EmailPlace) -> None:
    """It is closed with the channel."""
    received: asyncio.Queue[str] = asyncio.Queue(100)
    async with smtp_server(place, received) as port:
        channel = EmailChannel(context_of(place, smtp_port=port, smtp_security="tls"))
        for key in ("a", "b", "c"):
            await channel.send(chat_of(place), outgoing(channel, "4", key))
        await channel.aclose()
        commands = await until_ended(received, 1)
    assert commands == ["EHLO", "AUTH", *("MAIL", "RCPT", "DATA", ".") * 3, ""]


async def test_a_connection_that_accepts_no_more_mails_is_replaced(place: EmailPlace) -> None:
    """A server answers 421 to one mail too many and does not take it; the sender gets no error."""
    received: asyncio.Queue[str] = asyncio.Queue(100)
    async with smtp_server(place, received, 1) as port:
        channel = EmailChannel(context_of(place, smtp_port=port, smtp_security="tls"))
        for key in ("a", "b"):
            await channel.send(chat_of(place), outgoing(channel, "4", key))
        await channel.aclose()
        commands = await until_ended(received, 2)
    assert (commands.count("EHLO"), commands.count("."), received.qsize()) == (2, 2, 0)


async def test_an_idle_connection_waits_only_a_while_for_the_next_mail(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later mail is sent by a new one."""
    monkeypatch.setattr(smtp, "IDLE_S", 0)
    received: asyncio.Queue[str] = asyncio.Queue(100)
    async with smtp_server(place, received) as port:
        channel = EmailChannel(context_of(place, smtp_port=port, smtp_security="tls"))
        for key in ("a", "b"):
            await channel.send(chat_of(place), outgoing(channel, "4", key))
            commands = await until_ended(received, 1)
            assert commands == ["EHLO", "AUTH", "MAIL", "RCPT", "DATA", ".", ""]
        await channel.aclose()


FAILURES: dict[tuple[str, str], type[Exception]] = {
    (".", ""): DeliveryUnknown,
    (".", "it is taken"): DeliveryUnknown,
    (".", "451 later"): ChannelUnavailable,
    (".", "552 too large"): ChannelRejected,
    (".", "550 5.4.5 daily limit exceeded"): ChannelUnauthorized,
    ("DATA", "554 no"): ChannelRejected,
    ("RCPT", "550 nobody"): ChannelRejected,
    # A server's answer about one recipient, so it must not block the mails to others.
    ("RCPT", "550 5.4.5 undeliverable address"): ChannelRejected,
    ("RCPT", "450 later"): ChannelUnavailable,
    ("MAIL", ""): ChannelUnavailable,
    ("MAIL", "421 busy"): ChannelUnavailable,
    ("MAIL", "550 5.4.5 you've sent enough today"): ChannelUnauthorized,
    ("MAIL", "530 login first"): ChannelUnauthorized,
    ("AUTH", "535 wrong"): ChannelUnauthorized,
    ("AUTH", "534 5.7.9 application-specific password required"): ChannelUnauthorized,
    ("AUTH", "454 later"): ChannelUnavailable,
    ("EHLO", "250 here"): ChannelUnauthorized,
}


@pytest.mark.parametrize(("at", "error"), FAILURES.items())
async def test_a_failure_says_whether_a_mail_may_have_arrived(
    place: EmailPlace, at: tuple[str, str], error: type[Exception]
) -> None:
    """Only one whose final dot got no readable answer may have; it is repeated under the same id."""
    command, answer = at
    async with (
        smtp_server(place, **{command: answer}) as port,
        channel_of(place, smtp_port=port, smtp_security="tls") as channel,
    ):
        message = outgoing(channel, "4")
        with pytest.raises(error) as caught:
            await channel.send(chat_of(place), message)
        assert type(caught.value) is error
    assert "localhost" in str(caught.value) or error is DeliveryUnknown
    assert answer in str(caught.value) or answer == "250 here" or error is DeliveryUnknown


async def hold_silently(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Serve a connection by saying nothing until its client has gone."""
    await reader.read()


async def test_a_sending_server_that_says_nothing_got_no_mail(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This is known before the call ends as one of unknown outcome, of which there may be few. P1."""
    monkeypatch.setattr(smtp, "BEGIN_S", 0.2)
    async with serving(hold_silently) as port, channel_of(place, smtp_port=port) as channel:
        with pytest.raises(ChannelUnavailable, match="can't be reached to send a mail"):
            async with asyncio.timeout(8):
                await channel.send(chat_of(place), outgoing(channel, "hello"))


async def test_a_mailbox_that_says_nothing_does_not_hold_up_an_answer(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer only lacks the subject of its thread. P1."""
    monkeypatch.setattr(adapter, "PARENT_S", 0.2)
    async with serving(hold_silently) as port, channel_of(place, imap_port=port) as channel:
        async with asyncio.timeout(8):
            await channel.send(chat_of(place, "one@there"), outgoing(channel, "hello"))


async def test_a_server_without_starttls_gets_no_password(place: EmailPlace) -> None:
    lines: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 here\r\n")
        while line := await reader.readline():
            lines.append(line)
            writer.write(b"250 here\r\n" if line.startswith(b"EHLO") else b"502 no\r\n")

    async with serving(serve) as port, channel_of(place, smtp_port=port) as channel:
        with pytest.raises(ChannelUnauthorized, match="STARTTLS"):
            await channel.send(chat_of(place), outgoing(channel, "4"))
    assert not [line for line in lines if b"AUTH" in line]


async def test_a_check_reports_that_the_server_refuses_mail_of_this_address(
    place: EmailPlace,
) -> None:
    """As when a login is for another address; otherwise only the first answer would fail. P10."""
    async with smtp_server(place, MAIL="550 not yours") as port:
        configured = email_settings(place.mail, place.bot, smtp_port=port, smtp_security="tls")
        with pytest.raises(ChannelRejected, match="550 not yours"):
            await check(configured, {"password": PASSWORD})


# --- the page of `zeroclaw try email` ---------------------------------------------------------------


def test_the_page_shows_a_cards_links_as_buttons_and_a_press_by_its_subject() -> None:
    """Their code is only for the bot; receipts are below a rule."""
    link = "mailto:bot@zero.test?subject=Deny%3A%201%20%5Bzc%3Ad%3Ax%5D"
    card = mail_from("bot@zero.test", "olga@zero.test", f"1. shell\nDeny: {link}\n/deny 1\n")
    assert letters.visible_text(card) == "1. shell\n/deny 1"
    ((label, subject),) = letters.buttons(card)
    assert (label, subject) == ("Deny", "Deny: 1 [zc:d:x]")
    press = mail_from("olga@zero.test", "bot@zero.test", subject=subject)
    assert letters.visible_text(press) == letters.visible_subject(press) == "Deny: 1"
    answer = mail_from("bot@zero.test", "ann@zero.test", "done\n-- \n✅ receipt\n")
    assert letters.markdown(answer) == "done\n\n---\n\n✅ receipt"
