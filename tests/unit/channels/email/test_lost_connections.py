"""Mail servers that stop or cut the connection at any moment: no mail is lost or repeated.

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
"""Below the configurable minimum, so that tests do not wait."""


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[EmailPlace]:
    async with email_placed(tmp_path) as opened:
        yield opened


@asynccontextmanager
async def receiving_again(
    place: EmailPlace, desk: Desk, port: int, poll_s: float = POLL_S
) -> AsyncGenerator[asyncio.Queue[str]]:
    """Receive by one adapter after the other, as the runtime does; yields a queue of their
    errors."""
    settings = email_settings(place.mail, place.bot, imap_port=port)
    settings = settings.model_copy(update={"poll_s": poll_s})
    errors = asyncio.Queue[str](10)
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
                errors.put_nowait(str(exception))
        finally:
            await channel.aclose()

    async def lives() -> None:
        while True:
            await live()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(lives())
        await is_ready.wait()
        yield errors
        task.cancel()


MOMENTS: tuple[Moment, ...] = ("unheard", "unanswered", "half answered")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("command", [b"UID SEARCH", b"UID FETCH", b"UID STORE", b"IDLE", b"DONE"])
async def test_a_cut_connection_neither_loses_nor_repeats_mail(
    place: EmailPlace, command: bytes, moment: Moment
) -> None:
    """Each mail is stored once, in order, and finally marked as seen. P1, P2, S2-02."""
    desk = Desk()
    async with (
        relayed(place.mail.imaps, place.mail) as between,
        receiving_again(place, desk, between.port) as errors,
    ):
        await place.write("one")
        await desk.holds(1)
        between.cut(command, moment)
        await place.write("two")
        await place.write("three")
        await errors.get()  # all mail may be read before the command is repeated
        await desk.holds(3)
        await place.mail.wait_seen(place.bot, 3)
    assert [envelope.body for envelope in desk.stored] == [
        Said(text=text) for text in ("one", "two", "three")
    ]
    assert len(desk.arrived) == 3
    assert errors.empty()


async def test_a_server_that_stops_during_idle_is_noticed(
    place: EmailPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process is stopped and the connection stays open: no data arrive, and no end. P1."""
    monkeypatch.setattr(imap, "CONNECT_S", 2.0)
    desk, mail = Desk(), place.mail
    async with receiving_again(place, desk, mail.imaps) as errors:
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
    assert "gave no answer within 2 s" in errors.get_nowait()


@pytest.mark.parametrize("command", [b"UID SEARCH", b"UID FETCH", b"UID STORE", b"IDLE"])
async def test_a_server_that_stops_during_a_command_is_noticed(
    place: EmailPlace, command: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before the next poll is due. P1."""
    monkeypatch.setattr(imap, "CONNECT_S", 2.0)
    monkeypatch.setattr(imap, "CALL_S", 2.0)
    desk = Desk()
    async with (
        relayed(place.mail.imaps, place.mail) as between,
        receiving_again(place, desk, between.port, 1_500) as errors,
    ):
        await place.write("one")
        await desk.holds(1)
        between.cut(command, "silent")
        await place.write("two")
        await errors.get()
        await desk.holds(2)
        await place.mail.wait_seen(place.bot, 2)
    assert [envelope.body for envelope in desk.stored] == [Said(text="one"), Said(text="two")]
    assert errors.empty()


class Dying(imap.Protocol):
    async def select(self, mailbox: str = "INBOX") -> Never:
        # After the end of the wait for this.
        asyncio.get_running_loop().call_soon(self.connection_lost, None)
        while True:
            await asyncio.Event().wait()


async def test_a_connection_cut_as_its_wait_ends_is_only_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(imap, "CALL_S", 0.0)
    loop, faults = asyncio.get_running_loop(), list[object]()
    loop.set_exception_handler(lambda _, fault: faults.append(fault))
    with pytest.raises(ChannelUnavailable, match="was lost"):
        await imap.Mailbox(Dying(loop), "email").open("INBOX")
    loop.set_exception_handler(None)
    assert faults == []


async def test_a_lookup_keeps_no_connection_open(place: EmailPlace) -> None:
    """The next lookup would wait for its answer in vain."""
    settings = email_settings(place.mail, place.bot)
    channel = EmailChannel(
        email_context(settings, ManualClock(), positions={}, directory=place.directory)
    )
    with pytest.raises(ChannelRejected):
        await channel.fetch(
            Attachment(reference="1:2:3", name="a", media_type="a/b"), max_bytes=100
        )
    async with asyncio.timeout(START_S):
        while await asyncio.to_thread(place.mail.sessions, place.bot):
            pass
    await channel.aclose()


class Wire(asyncio.Transport):
    """A transport that ignores what is written."""

    def write(self, data: object) -> None:
        """Ignore the data."""

    def abort(self) -> None:
        """Do nothing."""


def wired() -> imap.Protocol:
    """Make a connection whose only data are what a test gives the protocol."""
    protocol = imap.Protocol(asyncio.get_running_loop())
    protocol.connection_made(Wire())
    return protocol


async def log_in(protocol: imap.Protocol, *server_lines: bytes) -> None:
    """Log in to a server that sends these lines before the connection is lost."""
    loop, tag = asyncio.get_running_loop(), protocol.new_tag().replace("0", "1").encode()
    for number, line in enumerate(server_lines):
        loop.call_later(number * 0.05, protocol.data_received, line.replace(b"TAG", tag))
    loop.call_later(0.2, protocol.connection_lost, None)
    login = Login(username="bot", secret="secret")
    await imap.Mailbox(protocol, "email").login(login)


@pytest.mark.parametrize(
    ("server_lines", "message"),
    [
        ((), "was lost"),
        ((b"* OK here\r\n",), "was lost"),
        ((b"* BYE too many\r\n",), "failed"),
        ((b"* OK here\r\n", b"* CAPABILITY \xff\r\nTAG OK\r\n"), "failed"),
    ],
)
def test_a_connection_that_is_lost_before_the_login_ends_the_wait(
    server_lines: tuple[bytes, ...], message: str
) -> None:
    """It used to wait for ever after the greeting, and blocked the daemon's end. P1."""

    async def greeted() -> set[str]:
        before = asyncio.all_tasks()
        with pytest.raises(ChannelUnavailable, match=message):
            await log_in(wired(), *server_lines)
        return {task.get_name() for task in asyncio.all_tasks() - before}

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(greeted()) == set()


async def capabilities(*, is_token: bool) -> set[str]:
    """Log in to a server that announces IDLE only after that; return the known capabilities."""
    loop, protocol = asyncio.get_running_loop(), wired()
    tag = protocol.new_tag()
    server_lines = (
        "* OK here\r\n",
        "* CAPABILITY IMAP4rev1\r\nTAG OK\r\n",
        "TAG OK logged in\r\n",
        "* CAPABILITY IMAP4rev1 IDLE\r\nTAG OK\r\n",
    )
    for number, line in enumerate(server_lines):
        data = line.replace("TAG", tag.replace("0", str(number))).encode()
        loop.call_later(number + 1, protocol.data_received, data)
    login = Login(username="bot", secret="secret", is_token=is_token)
    await imap.Mailbox(protocol, "email").login(login)
    return protocol.capabilities


@pytest.mark.parametrize("is_token", [False, True])
def test_a_server_may_announce_idle_only_after_the_login(*, is_token: bool) -> None:
    """Such a server used to be polled every two minutes. RFC 3501, 6.1.1."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert "IDLE" in runner.run(capabilities(is_token=is_token))


async def fetched(pieces: int, every_s: float) -> decode.Fetched | None:
    """Fetch a mail that arrives in this many pieces."""
    loop, protocol = asyncio.get_running_loop(), wired()
    protocol.state = "SELECTED"
    tag = protocol.new_tag().replace("0", "1")
    mail = b"Subject: it\r\n\r\n".ljust(pieces)
    header = f"* 1 FETCH (UID 7 BODY[]<0> {{{len(mail)}}}\r\n".encode()
    chunks = [
        header,
        *(mail[at : at + 1] for at in range(len(mail))),
        f")\r\n{tag} OK\r\n".encode(),
    ]
    for number, chunk in enumerate(chunks):
        loop.call_later(number * every_s, protocol.data_received, chunk)
    return await imap.Mailbox(protocol, "email").fetch(7, max_bytes=pieces)


async def opened() -> tuple[int, int]:
    """Open a mailbox, and return its UIDVALIDITY and the UID of its newest mail."""
    loop, protocol = asyncio.get_running_loop(), wired()
    protocol.state = "AUTH"
    tag = protocol.new_tag()
    server_lines = (
        "* 2 EXISTS\r\n* OK [UIDVALIDITY 7] it is\r\nTAG OK open\r\n",
        "* SEARCH 9\r\nTAG OK\r\n",
    )
    for number, line in enumerate(server_lines, start=1):
        data = line.replace("TAG", tag.replace("0", str(number))).encode()
        loop.call_later(number, protocol.data_received, data)
    mailbox = imap.Mailbox(protocol, "email")
    await mailbox.open("INBOX")
    return mailbox.validity, await mailbox.newest()


def test_a_mailbox_without_uidnext_is_not_read_from_its_first_mail() -> None:
    """It used to be, and all old mail was answered."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(opened()) == (7, 9)


@pytest.mark.parametrize(
    ("server_line", "error"),
    [
        (b"NO [UNAVAILABLE] later", imap.CommandRefused),
        (b"NO [NONEXISTENT] no such thing", ChannelUnauthorized),
        (b"NO no such thing", ChannelUnauthorized),
        (b"NO Server Unavailable. 15", imap.CommandRefused),
        (b"BAD User is authenticated but not connected.", imap.CommandRefused),
    ],
)
async def test_a_mailbox_that_can_not_be_opened_now_is_opened_later(
    server_line: bytes, error: type[Exception]
) -> None:
    """A fault of the server used to end the channel until an operator came. P10."""
    protocol = wired()
    protocol.state = "AUTH"
    tag = protocol.new_tag().replace("0", "1").encode()
    asyncio.get_running_loop().call_soon(protocol.data_received, tag + b" " + server_line + b"\r\n")
    with pytest.raises(error) as caught:
        await imap.Mailbox(protocol, "email").open("INBOX")
    assert type(caught.value) is error
    assert server_line.partition(b"] ")[2].decode() in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "error"),
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
    reply: str, error: type[Exception]
) -> None:
    """A wrong password used to be sent again endlessly, and Gmail locks accounts for that. P10."""

    async def refused() -> Exception:
        loop, protocol = asyncio.get_running_loop(), wired()
        tag = protocol.new_tag()
        server_lines = ("* OK Gimap ready", "* CAPABILITY IMAP4rev1\r\nTAG OK", f"TAG NO {reply}")
        for number, text in enumerate(server_lines):
            line = text.replace("TAG", tag.replace("0", str(number)))
            loop.call_later(number, protocol.data_received, f"{line}\r\n".encode())
        with pytest.raises(error) as caught:
            await imap.Mailbox(protocol, "email").login(Login(username="ann", secret="no"))
        return caught.value

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        refusal = runner.run(refused())
    assert type(refusal) is error
    assert reply[:110].lower() in str(refusal)


async def idled(lines: int) -> tuple[float, int]:
    """Wait for mail while a server reports other events; return its time, and the kept lines."""
    loop, protocol = asyncio.get_running_loop(), wired()
    protocol.state, protocol.capabilities = "SELECTED", {"IDLE"}
    tag = protocol.new_tag().replace("0", "1")
    server_lines = ("+ idling", *("* 1 FETCH (FLAGS (a))",) * lines, "* 2 EXISTS", f"{tag} OK done")
    for number, line in enumerate(server_lines, start=1):
        loop.call_later(number, protocol.data_received, f"{line}\r\n".encode())
    mailbox = imap.Mailbox(protocol, "email")
    idle = protocol.pending_sync_command
    async with asyncio.TaskGroup() as group:
        group.create_task(mailbox.idle(1_000))
        while idle is None:
            await asyncio.sleep(0)
            idle = protocol.pending_sync_command
    return loop.time(), len(idle.response.lines)


def test_lines_received_during_idle_are_not_kept() -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        began = runner.get_loop().time()
        ended_at, lines = runner.run(idled(50))
    assert (ended_at - began, lines) == (53, 1)


async def test_thousands_of_lines_at_once_are_read() -> None:
    """Another program that marked all mail as read used to break the connection."""
    protocol = wired()
    protocol.data_received(b"* OK here\r\n")
    protocol.state = "SELECTED"
    protocol.data_received(b"* 1 FETCH (FLAGS (a))\r\n" * 2_000 + b"* 2 EXISTS\r\n")
    assert protocol.new_mail.is_set()


async def refused(refusal: str) -> float:
    """Wait for mail on a server that refuses IDLE; return when the wait ended."""
    loop, protocol = asyncio.get_running_loop(), wired()
    protocol.state, protocol.capabilities = "SELECTED", {"IDLE"}
    tag = protocol.new_tag().replace("0", "1")
    loop.call_later(1, protocol.data_received, f"{tag} {refusal}\r\n".encode())
    await imap.Mailbox(protocol, "email").idle(1_000)
    return loop.time()


@pytest.mark.parametrize("refusal", ["NO [LIMIT] too many wait", "BAD no such command"])
def test_a_server_that_offers_and_refuses_idle_is_polled(refusal: str) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        began = runner.get_loop().time()
        assert runner.run(refused(refusal)) - began == 1_001


def test_a_large_mail_may_be_slow_but_not_stall() -> None:
    """A limit for the whole mail would make it start again for ever. P1."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        mail = runner.run(fetched(50, imap.CALL_S / 2))
        assert mail is not None
        assert (mail.uid, len(mail.raw)) == (7, 50)
        with pytest.raises(ChannelUnavailable):
            runner.run(fetched(50, imap.CALL_S + 1))
