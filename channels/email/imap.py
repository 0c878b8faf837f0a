"""One connection to a mailbox; when it is lost, every pending wait ends.

aioimaplib lets waits hang for ever when a connection is lost (2.0.3: `connection_lost` only calls
a callback, which `IMAP4_SSL` does not even accept; read 2026-11). So each call runs under a timeout
that `connection_lost` reschedules to now. Where the library starts tasks without an owner, this
module uses its lower level: to connect, to be greeted, and for IDLE. Its log contains mails and tokens
at DEBUG, so its level is set to WARNING.

The library returns server errors as values (`Response.result`); here they are raised as our errors.
"""

import asyncio
import logging
import re
import ssl
from collections.abc import Awaitable
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from aioimaplib import AioImapException
from aioimaplib.aioimaplib import Command, IdleCommand, IMAP4ClientProtocol, Response, quoted

from channels._remote.fields import utc
from channels.email.decode import Fetched
from channels.email.logins import Login, Logins
from zeroclaw import ChannelUnauthorized, ChannelUnavailable

CALL_S = 60.0
MAIL_S = 3_600.0
"""Limit for a whole mail; some of it has to arrive within each `CALL_S`."""
CONNECT_S = 30.0
CLOSE_S = 2.0
_UID = re.compile(rb"[( ]UID (\d+)")
_SIZE = re.compile(rb"RFC822\.SIZE (\d+)")
_DATE = re.compile(rb'INTERNALDATE "([^"]{10,40})"')
_OPENED = re.compile(rb"\[(UIDVALIDITY|UIDNEXT) (\d+)\]")
_NEWS = re.compile(rb"\* \d+ EXISTS", re.IGNORECASE)
# RFC 5530: codes for errors that the operator must fix; without a code it is also a refusal.
_REFUSED = re.compile(
    r"^(?!\[)|\[(?:AUTHENTICATIONFAILED|AUTHORIZATIONFAILED|EXPIRED|PRIVACYREQUIRED|CONTACTADMIN"
    r"|NONEXISTENT|NOPERM|CANNOT|TRYCREATE)\]",
    re.IGNORECASE,
)
T = TypeVar("T")

logging.getLogger("aioimaplib").setLevel(logging.WARNING)


class Protocol(IMAP4ClientProtocol):
    """The library's protocol, which also notices new mail in the answers to other commands.

    A server announces each mail once, within its next response. The library drops that unless it is
    idle, and the mail would go unnoticed until the next one.

    A server that refuses an access token expects one more line before it says so (Google, "XOAUTH2
    Mechanism", read 2026-11). The library sends none, and both would wait.

    The library answers a greeting in a task of its own, under a lock that its `wait` needs even to end:
    where the connection was lost before that answer, neither ended, not even when cancelled.

    Attributes:
        news: Set when the server announces new mail; the user clears it.
        idling: Set when the server has begun to idle; the library's own event stays set for ever.
        lost: Set when the connection has ended.
        limit: The timeout of the pending or last wait, which ends with the connection.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.news, self.idling, self.lost = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.limit: asyncio.Timeout | None = None
        self._greeting: asyncio.Future[bytes] = loop.create_future()

    async def greeted(self) -> None:
        """Wait for the greeting, and ask what the server can do."""
        await self.welcome(await self._greeting)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the pending wait; called by the transport, once."""
        self.lost.set()
        with suppress(RuntimeError):  # it has ended, or is just ending
            if self.limit is not None:
                self.limit.reschedule(0)
        super().connection_lost(exc)

    def _handle_line(self, line: bytes, current_cmd: Command | None) -> Command | None:
        if self.state != "CONNECTED":
            return super()._handle_line(line, current_cmd)
        if line and not self._greeting.done():
            self._greeting.set_result(line)
        return None

    def _untagged_response(self, line: bytes) -> Command | None:
        if _NEWS.match(line):
            self.news.set()
        return super()._untagged_response(line)

    def _continuation(self, line: bytes) -> None:
        waiting = self.pending_sync_command
        if waiting is not None and waiting.name == "AUTHENTICATE":
            self.send("")
        elif waiting is not None and waiting.name == "IDLE":
            self.idling.set()
        super()._continuation(line)


class _NoQueue:
    """Discards what a server says while idle; the library's own queue is unbounded."""

    def put_nowait(self, _lines: list[bytes]) -> None:
        """Discard the lines: the protocol has already noticed what matters."""


class Mailbox:
    """One connection, for one user at a time.

    Attributes:
        validity: The UIDVALIDITY of the open mailbox.
        newest: The UID of the newest mail when it was opened, or of one that is gone; 0 for none.
    """

    def __init__(self, protocol: Protocol, channel: str) -> None:
        """Use a connection that `connected` has made."""
        self._protocol = protocol
        self._channel = channel
        self.validity = self.newest = 0

    async def _within(self, call: Awaitable[T], limit_s: float) -> T:
        """Wait for a call, at most as long as the limit and the connection last.

        Raises:
            ChannelUnavailable: The connection is lost or does not answer; it can't be used again.
        """
        protocol, why = self._protocol, f"gave no answer within {limit_s:g} s"
        try:
            protocol.limit = asyncio.timeout(0 if protocol.lost.is_set() else limit_s)
            async with protocol.limit:
                return await call
        except (AioImapException, OSError, UnicodeDecodeError) as error:
            if not isinstance(error, TimeoutError):
                why = "failed"
            elif protocol.lost.is_set():
                why = "was lost"
            message = f"`{self._channel}`: the connection to the mailbox {why}"
            raise ChannelUnavailable(message) from error

    async def _asked(
        self, call: Awaitable[Response], limit_s: float = CALL_S, *, refused: str = ""
    ) -> list[bytes | bytearray]:
        """Return the lines of a response.

        Raises:
            ChannelUnavailable: The server can't do it now, or refuses what it never should.
            ChannelUnauthorized: The server refuses it, and `refused` says what that means.
        """
        response = await self._within(call, limit_s)
        if response.result == "OK":
            return response.lines
        why = " ".join(bytes(response.lines[-1]).decode("utf-8", "replace").split())[:120]
        is_final = refused and _REFUSED.search(why)
        what = refused if is_final else "the mailbox refused a command"
        message = f"`{self._channel}`: {what} ({why.lower()})"
        raise ChannelUnauthorized(message) if is_final else ChannelUnavailable(message)

    async def login(self, login: Login) -> None:
        """Log in, once the server is ready.

        Raises:
            ChannelUnauthorized: The server does not accept the login.
        """
        protocol, name, secret = self._protocol, login.username, login.secret
        await self._within(protocol.greeted(), CONNECT_S)
        # The library quotes a password, but not the name before it.
        call = protocol.xoauth2 if login.is_token else protocol.login
        said = call(name if login.is_token else quoted(name), secret)
        try:
            what = f"the mailbox does not accept the {login.called}"
            await self._asked(said, CONNECT_S, refused=what)
        except ValueError as error:  # one of them contains a line break, or is not ASCII
            why = f"a line break or another sign in the {login.called} can't be sent"
            message = f"`{self._channel}`: {why}"
            raise ChannelUnauthorized(message) from error

    async def open(self, mailbox: str) -> None:
        """Open a mailbox.

        Raises:
            ChannelUnauthorized: There is no mailbox of this name.
        """
        call = self._protocol.select(quoted(mailbox))
        lines = await self._asked(call, refused=f"there is no mailbox `{mailbox}`")
        told = dict(one for line in lines for one in _OPENED.findall(bytes(line)))
        self.validity = int(told.get(b"UIDVALIDITY", 0))
        newest = int(told.get(b"UIDNEXT", 0)) - 1
        self.newest = max(await self.search("ALL"), default=0) if newest < 0 else newest

    async def search(self, *criteria: str) -> list[int]:
        """Return the UIDs that a search finds, in order."""
        call = self._protocol.search(*criteria, charset=None, by_uid=True)
        lines = await self._asked(call)
        found = b" ".join(lines[:-1]).split()
        return sorted({int(one) for one in found if one.isdigit()})

    async def newer(self, uid: int) -> list[int]:
        """Return the UIDs of newer mails, in order; what the server announces from now on is news."""
        self._protocol.news.clear()
        # `*` is the newest mail, even if it is not newer.
        return [one for one in await self.search(f"UID {uid + 1}:*") if one > uid]

    async def fetch(self, uid: int, *, most: int) -> Fetched | None:
        """Return a mail, or at most `most` bytes of it; None if it is gone.

        `BODY.PEEK` sets no flag. The time limit per piece lets a large mail arrive on a slow line; with
        one limit for the whole, it would be started again and again.
        """
        parts = f"(UID RFC822.SIZE INTERNALDATE BODY.PEEK[]<0.{most}>)"
        call = self._protocol.fetch(str(uid), parts, by_uid=True, timeout=CALL_S)
        lines = await self._asked(call, MAIL_S)
        # Another client's changes may come in between; only the response for this mail has bytes.
        raw = next((bytes(one) for one in lines if isinstance(one, bytearray)), None)
        about = b" ".join(one for one in lines[:-1] if isinstance(one, bytes))
        known = {int(one) for one in _UID.findall(about)}
        if raw is None or uid not in known:
            return None
        size, date = _SIZE.search(about), _DATE.search(about)
        return Fetched(
            validity=self.validity,
            uid=uid,
            raw=raw,
            size_bytes=int(size[1]) if size else len(raw),
            at=_instant(date[1].decode("ascii", "replace")) if date else None,
        )

    async def flag(self, uid: int) -> None:
        """Mark a mail as seen."""
        call = self._protocol.store(str(uid), "+FLAGS.SILENT", r"(\Seen)", by_uid=True)
        await self._asked(call)

    async def idle(self, limit_s: float) -> bool:
        """Wait for news since the last `newer`, at most for `limit_s`.

        Returns:
            Whether the server announces new mail by itself; if not, it returns without waiting.
        """
        protocol = self._protocol
        if protocol.news.is_set() or "IDLE" not in protocol.capabilities:
            return protocol.news.is_set()
        # Like `IMAP4.idle_start`, without the three tasks that it leaves without an owner.
        command = IdleCommand(protocol.new_tag(), _NoQueue())
        protocol.pending_sync_command = command
        protocol.idling.clear()
        protocol.send(str(command))
        await self._within(protocol.idling.wait(), CONNECT_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._within(protocol.news.wait(), limit_s + 1)
        protocol.idle_done()
        await self._within(command.wait(), CONNECT_S)
        return True

    async def aclose(self) -> None:
        """Cut the connection, and wait until it is closed; may be called twice."""
        if self._protocol.transport is not None:
            self._protocol.transport.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._protocol.lost.wait()


async def connected(logins: Logins) -> Mailbox:
    """Connect with TLS from the first byte; the server's certificate is verified.

    Raises:
        ChannelUnavailable: Nothing answers there, or the server can't prove its name.
    """
    channel, host, port = logins.channel, logins.settings.imap_host, logins.settings.imap_port
    loop, tls = asyncio.get_running_loop(), await logins.trusted()
    try:
        async with asyncio.timeout(CONNECT_S):
            _, protocol = await loop.create_connection(lambda: Protocol(loop), host, port, ssl=tls)
    except OSError as error:  # includes a time-out
        why = f"no mailbox answers at `{host}` port {port}"
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"`{host}` can't prove its name ({error.verify_message.lower()})"
        message = f"`{channel}`: {why}"
        raise ChannelUnavailable(message) from error
    return Mailbox(protocol, channel)


def _instant(text: str) -> datetime | None:
    with suppress(ValueError):
        return utc(parsedate_to_datetime(text))
    return None
