"""Mail servers that stop or are cut off in the middle of anything: nothing is lost, none comes twice.

A real server and real sockets: what ends here is a connection, at a byte that a fake would choose.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Never

import pytest

from channels.email import decode, imap
from channels.email.adapter import EmailChannel
from channels.email.emulator.servers import START_S
from channels.email.logins import Login
from tests.contract.channel_suite import Desk, noting
from tests.contract.email_harness import EmailPlace, email_context, email_placed, email_settings
from tests.emulators.mail.relay import Moment, relayed
from tests.fakes.manual_clock import ManualClock, VirtualTimeLoop
from zeroclaw import Attachment, ChannelRejected, ChannelUnauthorized, ChannelUnavailable, Said

pytestmark = [pytest.mark.slow, pytest.mark.needs("dovecot", "postfix")]
POLL_S = 0.5
"""Less than may be configured, so that nobody waits for it."""


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[EmailPlace]:
    async with email_placed(tmp_path) as opened:
        yield opened


@asynccontextmanager
async def kept(
    place: EmailPlace, desk: Desk, port: int, poll_s: float = POLL_S
) -> AsyncGenerator[asyncio.Queue[str]]:
    """Receive by one adapter after the other, as the runtime does; gives why each has ended."""
    settings = email_settings(place.mail, place.bot, imap_port=port)
    settings = settings.model_copy(update={"poll_s": poll_s})
    ends = asyncio.Queue[str](10)
    is_ready = asyncio.Event()

    async def live() -> None:
        context = email_context(
            settings,
            ManualClock(),
            positions=desk.positions,
            log=noting(place.facts),
            directory=place.directory,
        )
        channel = EmailChannel(context)
        try:
            await channel.receive(desk.admit, is_ready.set)
        except* ChannelUnavailable as group:
            for exception in group.exceptions:
                ends.put_nowait(str(exception))
        finally:
            await channel.aclose()

    async def lives() -> None:
        while True:
            await live()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(lives())
        await is_ready.wait()
        yield ends
        task.cancel()


MOMENTS: tuple[Moment, ...] = ("unheard", "unanswered", "half answered")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("command", [b"UID SEARCH", b"UID FETCH", b"UID STORE", b"IDLE", b"DONE"])
async def test_a_connection_that_is_cut_loses_no_mail_and_doubles_none(
    place: EmailPlace, command: bytes, moment: Moment
) -> None:
    """Each mail is stored once, in order, and in the end marked as seen. P1, P2, S2-02."""
    desk = Desk()
    async with (
        relayed(place.mail.imaps, place.mail) as between,
        kept(place, desk, between.port) as ends,
    ):
        await place.write("one")
        await desk.holds(1)
        between.cut(command, moment)
        await place.write("two")
        await place.write("three")
        await ends.get()  # all mail may be read before the command is said again
        await desk.holds(3)
        await place.mail.wait_seen(place.bot, 3)
    assert [envelope.body for envelope in desk.stored] == [
        Said(text=one) for one in ("one", "two", "three")
    ]
    assert len(desk.arrived) == 3
    assert ends.empty()


async def test_a_server_that_stops_while_it_is_idle_is_noticed(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process is stopped and the connection stands: nothing comes, and no end of it either. P1."""
    monkeypatch.setattr(imap, "CONNECT_S", 2.0)
    desk, mail = Desk(), place.mail
    async with kept(place, desk, mail.imaps) as ends:
        await place.write("one")
        await desk.holds(1)
        await mail.wait_seen(place.bot, 1)
        [stopped] = await asyncio.to_thread(mail.sessions, place.bot)
        os.kill(stopped, signal.SIGSTOP)
        try:
            await place.write("two")
            await desk.holds(2)
        finally:
            os.kill(stopped, signal.SIGCONT)
    assert [envelope.body for envelope in desk.stored] == [Said(text="one"), Said(text="two")]
    assert "gave no answer within 2 s" in ends.get_nowait()


@pytest.mark.parametrize("command", [b"UID SEARCH", b"UID FETCH", b"UID STORE", b"IDLE"])
async def test_a_server_that_falls_silent_within_a_command_is_noticed(
    place: EmailPlace, command: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before a poll would be due. P1."""
    monkeypatch.setattr(imap, "CONNECT_S", 2.0)
    monkeypatch.setattr(imap, "CALL_S", 2.0)
    desk = Desk()
    async with (
        relayed(place.mail.imaps, place.mail) as between,
        kept(place, desk, between.port, 1_500) as ends,
    ):
        await place.write("one")
        await desk.holds(1)
        between.cut(command, "silent")
        await place.write("two")
        await ends.get()
        await desk.holds(2)
        await place.mail.wait_seen(place.bot, 2)
    assert [envelope.body for envelope in desk.stored] == [Said(text="one"), Said(text="two")]
    assert ends.empty()


class Dying(imap.Protocol):
    async def select(self, mailbox: str = "INBOX") -> Never:
        # Behind the end of the wait for this.
        asyncio.get_running_loop().call_soon(self.connection_lost, None)
        while True:
            await asyncio.Event().wait()


async def test_a_connection_that_is_cut_as_a_wait_for_it_ends_is_lost_and_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(imap, "CALL_S", 0.0)
    loop, faults = asyncio.get_running_loop(), list[object]()
    loop.set_exception_handler(lambda _, fault: faults.append(fault))
    with pytest.raises(ChannelUnavailable, match="was lost"):
        await imap.Mailbox(Dying(loop), "email").open("INBOX")
    loop.set_exception_handler(None)
    assert faults == []


async def test_a_look_up_keeps_no_connection_that_could_be_lost_without_a_word(
    place: EmailPlace,
) -> None:
    """The next one would wait for its answer in vain."""
    settings = email_settings(place.mail, place.bot)
    channel = EmailChannel(email_context(settings, ManualClock(), positions={}))
    with pytest.raises(ChannelRejected):
        await channel.fetch(
            Attachment(reference="1:2:3", name="a", media_type="a/b"), max_bytes=100
        )
    async with asyncio.timeout(START_S):
        while await asyncio.to_thread(place.mail.sessions, place.bot):
            pass
    await channel.aclose()


class Wire(asyncio.Transport):
    """Takes what is said."""

    def write(self, data: object) -> None:
        """Take it."""

    def abort(self) -> None:
        """Say nothing of it."""


def wired() -> imap.Protocol:
    """Hold a connection by which nothing comes but what the protocol is given."""
    protocol = imap.Protocol(asyncio.get_running_loop())
    protocol.connection_made(Wire())
    return protocol


async def log_in(protocol: imap.Protocol, *said: bytes) -> None:
    """Log in, where this is all that the server says before the connection is lost."""
    loop, tag = asyncio.get_running_loop(), protocol.new_tag().replace("0", "1").encode()
    for number, one in enumerate(said):
        loop.call_later(number * 0.05, protocol.data_received, one.replace(b"TAG", tag))
    loop.call_later(0.2, protocol.connection_lost, None)
    login = Login(username="bot", secret="secret")
    await imap.Mailbox(protocol, "email").login(login)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ((), "was lost"),
        ((b"* OK here\r\n",), "was lost"),
        ((b"* BYE too many\r\n",), "failed"),
        ((b"* OK here\r\n", b"* CAPABILITY \xff\r\nTAG OK\r\n"), "failed"),
    ],
)
def test_a_connection_that_is_lost_before_the_login_ends_the_wait(
    said: tuple[bytes, ...], why: str
) -> None:
    """It waited for ever once it was greeted, and held up the end of the daemon. P1."""

    async def greeted() -> set[str]:
        before = asyncio.all_tasks()
        with pytest.raises(ChannelUnavailable, match=why):
            await log_in(wired(), *said)
        return {task.get_name() for task in asyncio.all_tasks() - before}

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(greeted()) == set()


async def capabilities(*, is_token: bool) -> set[str]:
    """Log in at a server that names IDLE only then; return what it is known to do."""
    loop, protocol = asyncio.get_running_loop(), wired()
    tag = protocol.new_tag()
    told = (
        "* OK here\r\n",
        "* CAPABILITY IMAP4rev1\r\nTAG OK\r\n",
        "TAG OK logged in\r\n",
        "* CAPABILITY IMAP4rev1 IDLE\r\nTAG OK\r\n",
    )
    for number, one in enumerate(told):
        said = one.replace("TAG", tag.replace("0", str(number))).encode()
        loop.call_later(number + 1, protocol.data_received, said)
    login = Login(username="bot", secret="secret", is_token=is_token)
    await imap.Mailbox(protocol, "email").login(login)
    return protocol.capabilities


@pytest.mark.parametrize("is_token", [False, True])
def test_a_server_may_say_only_after_the_login_that_it_announces_mail(*, is_token: bool) -> None:
    """Such a one was asked every two minutes. RFC 3501, 6.1.1."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert "IDLE" in runner.run(capabilities(is_token=is_token))


async def fetched(pieces: int, every_s: float) -> decode.Fetched | None:
    """Fetch a mail that comes in so many pieces."""
    loop, protocol = asyncio.get_running_loop(), wired()
    protocol.state = "SELECTED"
    tag = protocol.new_tag().replace("0", "1")
    mail = b"Subject: it\r\n\r\n".ljust(pieces)
    begun = f"* 1 FETCH (UID 7 BODY[]<0> {{{len(mail)}}}\r\n".encode()
    said = [begun, *(mail[at : at + 1] for at in range(len(mail))), f")\r\n{tag} OK\r\n".encode()]
    for number, one in enumerate(said):
        loop.call_later(number * every_s, protocol.data_received, one)
    return await imap.Mailbox(protocol, "email").fetch(7, max_bytes=pieces)


async def opened() -> tuple[int, int]:
    """Open a mailbox, and return its UIDVALIDITY and the UID of its newest mail."""
    loop, protocol = asyncio.get_running_loop(), wired()
    protocol.state = "AUTH"
    tag = protocol.new_tag()
    told = (
        "* 2 EXISTS\r\n* OK [UIDVALIDITY 7] it is\r\nTAG OK open\r\n",
        "* SEARCH 9\r\nTAG OK\r\n",
    )
    for number, one in enumerate(told, start=1):
        said = one.replace("TAG", tag.replace("0", str(number))).encode()
        loop.call_later(number, protocol.data_received, said)
    mailbox = imap.Mailbox(protocol, "email")
    await mailbox.open("INBOX")
    return mailbox.validity, await mailbox.newest()


def test_a_mailbox_that_does_not_say_what_comes_next_is_not_read_from_its_first_mail() -> None:
    """It was, and all old mail answered."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(opened()) == (7, 9)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"NO [UNAVAILABLE] later", imap.CommandRefused),
        (b"NO [NONEXISTENT] no such thing", ChannelUnauthorized),
        (b"NO no such thing", ChannelUnauthorized),
        (b"NO Server Unavailable. 15", imap.CommandRefused),
        (b"BAD User is authenticated but not connected.", imap.CommandRefused),
    ],
)
async def test_a_mailbox_that_can_not_be_opened_now_is_opened_later(
    said: bytes, error: type[Exception]
) -> None:
    """It ended the channel until an operator came, for a fault of the server's. P10."""
    protocol = wired()
    protocol.state = "AUTH"
    tag = protocol.new_tag().replace("0", "1").encode()
    asyncio.get_running_loop().call_soon(protocol.data_received, tag + b" " + said + b"\r\n")
    with pytest.raises(error) as caught:
        await imap.Mailbox(protocol, "email").open("INBOX")
    assert type(caught.value) is error
    assert said.partition(b"] ")[2].decode() in str(caught.value)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("[AUTHENTICATIONFAILED] Invalid credentials (Failure)", ChannelUnauthorized),
        ("[ALERT] Invalid credentials (Failure)", ChannelUnauthorized),
        ("[ALERT] Application-specific password required: https://a.example", ChannelUnauthorized),
        ("[ALERT] Please log in via your web browser: https://a.example", ChannelUnauthorized),
        ("[WEBALERT https://a.example/?a=b] Web login required.", ChannelUnauthorized),
        ("[ALERT] Too many simultaneous connections. (Failure)", imap.CommandRefused),
        ("[ALERT] Account exceeded command or bandwidth limits.", imap.CommandRefused),
    ],
)
def test_a_login_that_gmail_refuses_is_tried_again_only_if_that_may_help(
    said: str, error: type[Exception]
) -> None:
    """A wrong password was sent again without end, and Gmail locks accounts for that. P10."""

    async def refused() -> Exception:
        loop, protocol = asyncio.get_running_loop(), wired()
        tag = protocol.new_tag()
        told = ("* OK Gimap ready", "* CAPABILITY IMAP4rev1\r\nTAG OK", f"TAG NO {said}")
        for number, one in enumerate(told):
            line = one.replace("TAG", tag.replace("0", str(number)))
            loop.call_later(number, protocol.data_received, f"{line}\r\n".encode())
        with pytest.raises(error) as caught:
            await imap.Mailbox(protocol, "email").login(Login(username="ann", secret="no"))
        return caught.value

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        refusal = runner.run(refused())
    assert type(refusal) is error
    assert said[:110].lower() in str(refusal)


async def idled(lines: int) -> tuple[float, int]:
    """Wait for news while a server tells of other things; return when they came, and what is kept."""
    loop, protocol = asyncio.get_running_loop(), wired()
    protocol.state, protocol.capabilities = "SELECTED", {"IDLE"}
    tag = protocol.new_tag().replace("0", "1")
    told = ("+ idling", *("* 1 FETCH (FLAGS (a))",) * lines, "* 2 EXISTS", f"{tag} OK done")
    for number, one in enumerate(told, start=1):
        loop.call_later(number, protocol.data_received, f"{one}\r\n".encode())
    mailbox = imap.Mailbox(protocol, "email")
    idle = protocol.pending_sync_command
    async with asyncio.TaskGroup() as group:
        group.create_task(mailbox.idle(1_000))
        while idle is None:
            await asyncio.sleep(0)
            idle = protocol.pending_sync_command
    return loop.time(), len(idle.response.lines)


def test_what_a_server_tells_of_while_it_is_idle_is_not_kept() -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        began = runner.get_loop().time()
        ended, lines = runner.run(idled(50))
    assert (ended - began, lines) == (53, 1)


async def refused(said: str) -> float:
    """Wait for news from a server that refuses to announce any; return when the wait ended."""
    loop, protocol = asyncio.get_running_loop(), wired()
    protocol.state, protocol.capabilities = "SELECTED", {"IDLE"}
    tag = protocol.new_tag().replace("0", "1")
    loop.call_later(1, protocol.data_received, f"{tag} {said}\r\n".encode())
    await imap.Mailbox(protocol, "email").idle(1_000)
    return loop.time()


@pytest.mark.parametrize("said", ["NO [LIMIT] too many wait", "BAD no such command"])
def test_a_server_that_offers_idle_and_refuses_it_is_asked_in_intervals(said: str) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        began = runner.get_loop().time()
        assert runner.run(refused(said)) - began == 1_001


def test_a_large_mail_may_take_long_but_never_stand_still() -> None:
    """A limit for the whole of it would let it be begun again for ever. P1."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        mail = runner.run(fetched(50, imap.CALL_S / 2))
        assert mail is not None
        assert (mail.uid, len(mail.raw)) == (7, 50)
        with pytest.raises(ChannelUnavailable):
            runner.run(fetched(50, imap.CALL_S + 1))
