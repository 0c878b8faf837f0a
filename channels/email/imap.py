"""One account's mailbox: connections to it, and lookups in addition to the reading of new mail.

When a connection is lost, every pending wait ends. In aioimaplib waits would hang (2.0.3:
`connection_lost` only calls a callback, which `IMAP4_SSL` does not even accept; read 2026-11). So each
call runs under a timeout that `connection_lost` reschedules to now. Where the library starts tasks
without an owner, this module uses its lower level: to connect, for the greeting, and for IDLE. The
library logs mails and tokens at DEBUG, so its level is set to WARNING.

The library returns server errors as values (`Response.result`); here they are raised as our errors.

The reading connection waits in IDLE most of the time and can't do anything else, so each lookup opens
a connection, and closes it: lookups are rare, and a connection that a router has dropped looks alive
until a minute has passed without an answer.
"""

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import TypeVar

from aioimaplib import AioImapException
from aioimaplib.aioimaplib import Command, IMAP4ClientProtocol, Response, quoted

from channels._remote.fields import utc_time
from channels.email import decode
from channels.email.identity import author
from channels.email.logins import Login, Logins
from channels.email.state import read_cursor
from zeroclaw import Address, ChannelUnauthorized, ChannelUnavailable, parse_mail

CALL_S = 60.0
MAIL_S = 3_600.0
"""Limit for fetching a mail; a part of it has to arrive within each `CALL_S`."""
CONNECT_S = 30.0
CLOSE_S = 2.0
PIECE_BYTES = 4_096
"""The library calls itself for each line of what it is given, so thousands of short ones would raise."""
MAX_HEADER_BYTES = 65_536
MAX_SEARCHED = 5
"""Newest mails of a thread whose headers are fetched to find a person's newest one."""
MAX_LOOKUPS = 4
"""Concurrent lookups; Gmail allows 15 connections per account, dovecot 10 (read 2026-11)."""
_DATE = re.compile(rb'INTERNALDATE "([^"]{10,40})"')
_VALIDITY = re.compile(rb"\[UIDVALIDITY (\d+)\]")
_EXISTS = re.compile(rb"\* \d+ EXISTS", re.IGNORECASE)
# RFC 5530: codes for errors that the operator must fix; without a code it is also a refusal, but not
# Exchange's for a mailbox that it can't reach (github.com/OfflineIMAP/offlineimap/issues/291; 2026-11).
# Gmail writes ALERT for a wrong kind of password (github.com/bberkay/openmail/issues/1, read 2026-11) and
# also for too many connections, which pass (github.com/jstedfast/MailKit/issues/377).
_PERMANENT = re.compile(
    r"(?i)^(?!\[|server unavailable)|\[(?:AUTHENTICATIONFAILED|AUTHORIZATIONFAILED|EXPIRED|PRIVACYREQUIRED|CONTACTADMIN"
    r"|NONEXISTENT|NOPERM|CANNOT|TRYCREATE)\]|\[WEBALERT|\[ALERT\] (?:application-specific|invalid|please log in)"
)
T = TypeVar("T")

logging.getLogger("aioimaplib").setLevel(logging.WARNING)


class Protocol(IMAP4ClientProtocol):
    """The library's protocol, which also notices new mail in the answers to other commands.

    A server announces each mail once, within its next response. The library drops the announcement
    unless it is idle, and the mail would go unnoticed until the next one.

    A server that refuses an access token expects one more line before it reports that (Google, "XOAUTH2
    Mechanism", read 2026-11). The library sends none, and both would wait.

    The library handles a greeting in a task without an owner, under a lock that its `wait` needs even to
    end: if the connection was lost before the greeting was handled, neither ended, even when cancelled.

    Attributes:
        new_mail: Set when the server announces new mail; `Mailbox.newer` clears it.
        idling: Set when the server has begun or refused to idle; the library sets it for the first.
        lost: Set when the connection has ended.
        limit: The timeout of the pending or last wait, which ends with the connection.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.new_mail, self.lost = asyncio.Event(), asyncio.Event()
        self.idling = self._idle_event = asyncio.Event()
        self.limit: asyncio.Timeout | None = None
        self._greeting: asyncio.Future[bytes] = loop.create_future()

    async def welcome(self, command: bytes) -> None:
        """Store the greeting; called in the library's task."""
        if not self._greeting.done():
            self._greeting.set_result(command)

    async def finish_greeting(self) -> None:
        """Wait for the greeting, and request the server's capabilities."""
        await super().welcome(await self._greeting)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the pending wait; called by the transport, once."""
        self.lost.set()
        with suppress(RuntimeError):  # it has ended, or is just ending
            if self.limit is not None:
                self.limit.reschedule(0)
        super().connection_lost(exc)

    def data_received(self, d: bytes) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  as the library names it
        """Take what arrived, in pieces if it has many lines; called by the transport."""
        # A long line is not cut: the library copies what it has of one with each piece.
        step = PIECE_BYTES if d.count(b"\n") > PIECE_BYTES // 16 else len(d)
        for at in range(0, len(d), step):
            super().data_received(d[at : at + step])

    def _untagged_response(self, line: bytes) -> Command | None:
        if _EXISTS.match(line):
            self.new_mail.set()
        # While idle no other response matters, and the library would keep all until the end.
        return None if self.has_pending_idle_command() else super()._untagged_response(line)

    def _response_done(self, line: bytes) -> None:
        super()._response_done(line)
        self.idling.set()  # in case the server refuses to idle

    def _continuation(self, line: bytes) -> None:
        command = self.pending_sync_command
        if command is not None and command.name == "AUTHENTICATE":
            self.send("")
        super()._continuation(line)


class CommandRefused(ChannelUnavailable):
    """Raised when the server refuses a command; the connection can be used again."""


class Mailbox:
    """One connection, for one caller at a time.

    Attributes:
        validity: The UIDVALIDITY of the open mailbox.
    """

    def __init__(self, protocol: Protocol, channel: str) -> None:
        """Use a connection that `connect` has made."""
        self._protocol, self._channel, self.validity = protocol, channel, 0

    async def _within(self, call: Awaitable[T], limit_s: float) -> T:
        """Wait for a call until the limit, or until the connection is lost.

        Raises:
            ChannelUnavailable: The connection is lost or does not answer; it can't be used again.
        """
        protocol, failure = self._protocol, f"gave no answer within {limit_s:g} s"
        try:
            protocol.limit = asyncio.timeout(0 if protocol.lost.is_set() else limit_s)
            async with protocol.limit:
                return await call
        except (AioImapException, OSError, ValueError) as error:
            if not isinstance(error, TimeoutError):
                failure = "failed"
            elif protocol.lost.is_set():
                failure = "was lost"
            message = f"`{self._channel}`: the connection to the mailbox {failure}"
            raise ChannelUnavailable(message) from error

    async def _run(
        self, call: Awaitable[Response], limit_s: float | None = None, *, meaning: str = ""
    ) -> list[bytes | bytearray]:
        """Return the lines of a response.

        Raises:
            ChannelUnavailable: There was no answer.
            CommandRefused: The server refuses the command for now, or the caller gave no `meaning`.
            ChannelUnauthorized: The server refuses it for good; `meaning` explains that.
        """
        response = await self._within(call, limit_s or CALL_S)
        if response.result == "OK":
            return response.lines
        text = " ".join(bytes(response.lines[-1]).decode("utf-8", "replace").split())[:120]
        # Exchange also answers BAD for a mailbox that it can't reach (github.com/mscdex/node-imap/issues/523).
        is_final = meaning and response.result == "NO" and _PERMANENT.search(text)
        cause = meaning if is_final else "the mailbox refused a command"
        message = f"`{self._channel}`: {cause} ({text.lower()})"
        raise ChannelUnauthorized(message) if is_final else CommandRefused(message)

    async def login(self, login: Login) -> None:
        """Log in, once the server is ready.

        Raises:
            ChannelUnauthorized: The server does not accept the login.
        """
        protocol, name, secret = self._protocol, login.username, login.secret
        await self._within(protocol.finish_greeting(), CONNECT_S)
        # The library quotes a password, but not the name before it.
        method = protocol.xoauth2 if login.is_token else protocol.login
        command = method(name if login.is_token else quoted(name), secret)
        await self._run(command, CONNECT_S, meaning=f"the mailbox does not accept the {login.kind}")
        await self._within(protocol.capability(), CONNECT_S)  # some can do more after the login

    async def open(self, mailbox: str) -> None:
        """Open a mailbox.

        Raises:
            ChannelUnauthorized: There is no mailbox of this name.
        """
        call = self._protocol.select(quoted(mailbox))
        lines = await self._run(call, meaning=f"there is no mailbox `{mailbox}`")
        match = _VALIDITY.search(b" ".join(lines))
        self.validity = int(match[1]) if match else 0

    async def search(self, *criteria: str) -> list[int]:
        """Return the UIDs that a search finds, in order."""
        lines = await self._run(self._protocol.search(*criteria, charset=None, by_uid=True))
        return sorted({int(word) for word in b" ".join(lines[:-1]).split() if word.isdigit()})

    async def newest(self) -> int:
        """Return the UID of the newest mail, 0 for none."""
        return max(await self.search("UID *"), default=0)

    async def newer(self, uid: int) -> list[int]:
        """Return the UIDs of newer mails, in order; later announcements end the next `idle`."""
        self._protocol.new_mail.clear()
        # `*` is the newest mail, even if it is not newer.
        return [newer_uid for newer_uid in await self.search(f"UID {uid + 1}:*") if newer_uid > uid]

    async def fetch(self, uid: int, *, max_bytes: int) -> decode.Fetched | None:
        """Return a mail, or its first `max_bytes`; None if the server returns none of it.

        `BODY.PEEK` sets no flag. The time limit per piece lets a large mail arrive on a slow line; with
        one limit for all of it, every attempt would end at that limit.
        """
        parts = f"(INTERNALDATE BODY.PEEK[]<0.{max_bytes}>)"
        call = self._protocol.fetch(str(uid), parts, by_uid=True, timeout=CALL_S)
        lines = await self._run(call, MAIL_S)
        # Another client's changes may arrive in between; only this mail's response is a bytearray.
        raw = next((bytes(line) for line in lines if isinstance(line, bytearray)), None)
        if raw is None:
            return None
        date = _DATE.search(b" ".join(line for line in lines[:-1] if isinstance(line, bytes)))
        at = utc_time(date[1].decode("ascii", "replace"), parsedate_to_datetime) if date else None
        return decode.Fetched(validity=self.validity, uid=uid, raw=raw, at=at)

    async def flag(self, uid: int) -> None:
        """Mark a mail as seen; it stays unread if the server refuses, as in a read-only mailbox."""
        call = self._protocol.store(str(uid), "+FLAGS.SILENT", r"(\Seen)", by_uid=True)
        with suppress(CommandRefused):
            await self._run(call)

    async def idle(self, limit_s: float) -> None:
        """Wait for new mail since the last `newer`, or `limit_s`; without IDLE always that long."""
        protocol = self._protocol
        # Like `IMAP4.idle_start`, without the three tasks that it leaves without an owner.
        command = Command("IDLE", protocol.new_tag())
        if "IDLE" in protocol.capabilities:
            protocol.pending_sync_command = command
            protocol.idling.clear()
            protocol.send(str(command))
            await self._within(protocol.idling.wait(), CONNECT_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._within(protocol.new_mail.wait(), limit_s + 1)
        if protocol.has_pending_idle_command():  # the server may have refused or ended it
            protocol.idle_done()
            await self._within(command.wait(), CONNECT_S)

    async def aclose(self) -> None:
        """Cut the connection, and wait until it is closed; safe twice."""
        self._protocol.transport.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._protocol.lost.wait()


class Account:
    """The mailbox of one account."""

    def __init__(self, logins: Logins) -> None:
        """Connect to nothing yet."""
        self._settings, self._logins = logins.settings, logins
        self._lookups, self._open = asyncio.Semaphore(MAX_LOOKUPS), set[Mailbox]()

    @asynccontextmanager
    async def mailbox(self) -> AsyncGenerator[Mailbox]:
        """Connect, log in and open the mailbox; cut the connection at the end."""
        mailbox = await connect(self._logins)
        self._open.add(mailbox)
        try:
            async with self._logins.lend() as login:
                await mailbox.login(login)
            await mailbox.open(self._settings.mailbox)
            yield mailbox
        finally:
            self._open.discard(mailbox)
            await mailbox.aclose()

    async def newest(self, to: Address) -> decode.Parent:
        """Return the newest mail of a person in a thread, or the thread's first if none is found."""
        # A reply refers to the thread's first mail, or to one of the bot's, whose id has the thread.
        prefix, first = decode.own_prefix(to.thread), decode.root_of(to.thread)
        headers = [("References", prefix), ("In-Reply-To", prefix)]
        if first.id:
            headers += [("References", f"{first.id}>"), ("Message-ID", f"{first.id}>")]
        terms = " ".join(f'HEADER {name} "<{value}"' for name, value in headers)
        async with self._lookups, self.mailbox() as mailbox:
            uids = await mailbox.search(f"{'OR ' * (len(headers) - 1)}{terms}")
            for uid in reversed(uids[-MAX_SEARCHED:]):
                fetched = await mailbox.fetch(uid, max_bytes=MAX_HEADER_BYTES)
                mail = parse_mail(fetched.raw if fetched else b"")
                sender = author(mail, self._settings)
                # A forged mail could set the subject and the thread of our answer.
                if sender is not None and sender.verified and sender.id == to.chat:
                    return decode.parent_of(mail)
        return first

    async def file(self, reference: str) -> bytes | None:
        """Return the file of a reference; None if the file or its mail was deleted."""
        cursor, _, number = reference.rpartition(":")
        position = read_cursor(cursor)
        if position is None or not number.isdecimal():
            return None
        async with self._lookups, self.mailbox() as mailbox:
            if mailbox.validity != position.validity:  # the UID may now be another mail's
                return None
            fetched = await mailbox.fetch(position.uid, max_bytes=self._settings.max_mail_bytes)
        return await asyncio.to_thread(_file_of, fetched.raw, int(number)) if fetched else None

    async def aclose(self) -> None:
        """Cut every connection, and wait for a requested token; safe twice."""
        for mailbox in tuple(self._open):
            await mailbox.aclose()
        await self._logins.aclose()


async def connect(logins: Logins) -> Mailbox:
    """Connect with TLS from the first byte; the server's certificate is verified.

    Raises:
        ChannelUnavailable: No server answers there, or its certificate can't be verified.
    """
    channel, host, port = logins.channel, logins.settings.imap_host, logins.settings.imap_port
    loop, tls = asyncio.get_running_loop(), await logins.tls_context()
    try:
        async with asyncio.timeout(CONNECT_S):
            _, protocol = await loop.create_connection(lambda: Protocol(loop), host, port, ssl=tls)
    except OSError as error:  # includes a time-out
        message = f"`{channel}`: no mailbox answers at `{host}` port {port}"
        if isinstance(error, ssl.SSLCertVerificationError):
            message = f"`{channel}`: `{host}` can't prove its name ({error.verify_message.lower()})"
        raise ChannelUnavailable(message) from error
    return Mailbox(protocol, channel)


def _file_of(raw: bytes, number: int) -> bytes | None:
    mail = parse_mail(raw)
    return mail.content(mail.parts[number]) if number < len(mail.parts) else None
