"""One mail account: its logins, and what is looked up in its mailbox beside the reading of new mail.

Reading waits in IDLE most of the time, which nothing else can use, so each look-up has a connection
of its own. None is kept: they are seldom needed, and one that a router has forgotten meanwhile looks
as if it stood, until a minute has passed without an answer.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from channels.email import EmailSettings, imap, mime, smtp
from channels.email.decode import MOST_ID_CHARS, Fetched, Parent, is_plain_id, own_prefix, parent_of
from channels.email.identity import author, normalised
from channels.email.imap import Mailbox, Opened
from channels.email.kept import Kept
from channels.email.oauth import AccessTokens, Login
from zeroclaw import Address, ChannelRejected, ChannelUnauthorized, ChannelUnavailable, Clock

MOST_LOOKED_AT = 5
"""Mails of a thread whose headers are read to find the newest of one person."""
MOST_LOOKING = 4
"""Look-ups at once; Gmail takes 15 connections of an account, dovecot 10 (read 2026-11)."""


class Account:
    """The two servers of one account."""

    def __init__(
        self,
        channel: str,
        settings: EmailSettings,
        secrets: Mapping[str, str],
        *,
        directory: Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Open nothing yet.

        Raises:
            ChannelUnauthorized: The password is not set.
        """
        self._channel = channel
        self._settings = settings
        self.address = normalised(settings.address)
        self._username = settings.username or settings.address
        self._password = secrets.get("password", "")
        if settings.password and not self._password:
            message = f"`{channel}`: the password is not set"
            raise ChannelUnauthorized(message)
        kept = Kept(directory, "refresh-token")
        self._tokens = AccessTokens(channel, settings, secrets, kept=kept, clock=clock)
        self._sender = smtp.Sender(channel, settings)
        self._tls: ssl.SSLContext | None = None
        self._looking = asyncio.Semaphore(MOST_LOOKING)
        self._open: set[Mailbox] = set()

    @asynccontextmanager
    async def mailbox(self) -> AsyncGenerator[tuple[Mailbox, Opened]]:
        """Connect, log in, open the mailbox; and cut the connection at the end."""
        host, port = self._settings.imap_host, self._settings.imap_port
        async with AsyncExitStack() as stack:
            async with self._login() as login:
                mailbox = await imap.connected(self._channel, host, port, tls=login.tls)
                self._open.add(mailbox)
                stack.push_async_callback(self._cut, mailbox)
                await mailbox.login(login)
            yield mailbox, await mailbox.open(self._settings.mailbox)

    async def tried(self) -> Opened:
        """Log in at both servers, and return the mailbox as it was opened."""
        async with self.mailbox() as (_, opened), self._login() as login:
            await self._sender.try_login(login)
        return opened

    async def send(self, mail: bytes, to: str) -> None:
        """Send one mail to one person; see `smtp.Sender.send`."""
        async with self._login() as login:
            await self._sender.send(mail, login, sender=self.address, to=to)

    async def newest(self, to: Address, message: str, *, plus_tags: bool) -> Parent:
        """Return the newest mail of a person in a thread, an empty one where none is found.

        Args:
            to: The person's chat, and the thread.
            message: The one mail that is meant; empty for the newest.
            plus_tags: As in `author`.
        """
        if message and not is_plain_id(message):
            return Parent()
        # A reply names the thread's first mail, or one of ours, which carries it.
        named = [("References", own_prefix(to.thread)), ("In-Reply-To", own_prefix(to.thread))]
        if to.thread and is_plain_id(to.thread):
            named += [("References", f"{to.thread}>"), ("Message-ID", f"{to.thread}>")]
        if message:
            named = [("Message-ID", f"{message}>")]
        terms = " ".join(f'HEADER {name} "<{value}"' for name, value in named)
        async with self._looking, self.mailbox() as (mailbox, opened):
            found = await mailbox.search(f"{'OR ' * (len(named) - 1)}{terms}")
            for uid in reversed(found[-MOST_LOOKED_AT:]):
                most = mime.MOST_HEADER_BYTES
                fetched = await mailbox.fetch(opened.validity, uid, most=most)
                mail = mime.taken_apart(fetched.raw if fetched else b"")
                wrote = author(mail.headers.get("from", ()), plus_tags=plus_tags)
                if wrote is not None and wrote.address == to.chat:
                    return parent_of(mail)
        return Parent()

    async def read(self, validity: int, uid: int, message: str) -> Fetched:
        """Return a mail whose file is wanted.

        Raises:
            ChannelRejected: It is gone.
        """
        async with self._looking, self.mailbox() as (mailbox, opened):
            if opened.validity != validity:  # its number is another one's by now
                is_known = 0 < len(message) <= MOST_ID_CHARS and is_plain_id(message)
                found = await mailbox.search(f'HEADER Message-ID "<{message}>"') if is_known else []
                uid = found[0] if found else 0
            most = self._settings.max_mail_bytes
            fetched = await mailbox.fetch(opened.validity, uid, most=most) if uid else None
        if fetched is None:
            message = f"`{self._channel}`: the mail with the file is gone"
            raise ChannelRejected(message, gone=True)
        return fetched

    async def aclose(self) -> None:
        """Cut every connection; safe twice."""
        await self._sender.aclose()
        for one in tuple(self._open):
            await self._cut(one)

    @asynccontextmanager
    async def _login(self) -> AsyncGenerator[Login]:
        """Lend what proves who logs in."""
        tls = await self._trusted()
        if self._password:
            yield Login(username=self._username, secret=self._password, tls=tls)
            return
        token = await self._tokens.current(tls)
        try:
            yield Login(username=self._username, secret=token, tls=tls, is_token=True)
        except ChannelUnauthorized as error:
            if not self._tokens.was_refused():
                raise
            message = f"{error}; it did before, so the next attempt asks for another"
            raise ChannelUnavailable(message) from error
        self._tokens.was_accepted()

    async def _cut(self, mailbox: Mailbox) -> None:
        self._open.discard(mailbox)
        await mailbox.aclose()

    async def _trusted(self) -> ssl.SSLContext:
        """Return what servers are verified with; reading certificates takes a while."""
        if self._tls is None:
            ca_file = self._settings.ca_file or None
            try:
                self._tls = await asyncio.to_thread(ssl.create_default_context, cafile=ca_file)
            except OSError as error:
                message = f"`{self._channel}`: `ca_file` can't be read as certificates"
                raise ChannelUnauthorized(message) from error
        return self._tls


async def check(settings: EmailSettings, secrets: Mapping[str, str]) -> str:
    """Log in at both servers and open the mailbox; changes and sends nothing.

    Raises:
        ChannelUnauthorized: A login is not accepted, or there is no such mailbox.
        ChannelUnavailable: A server can't be reached.
    """
    account = Account("email", settings, secrets)
    opened = await account.tried()
    vouched = (
        f"senders are who `{settings.authserv_id}` says they are"
        if settings.authserv_id
        else "everybody is a stranger until `authserv_id` is set"
    )
    return (
        f"{settings.address} reads `{settings.mailbox}` from mail {opened.next_uid:,} on; {vouched}"
    )
