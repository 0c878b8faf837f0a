"""One mail account: its logins, and look-ups in its mailbox besides the reading of new mail.

The reading connection waits in IDLE most of the time and can't do anything else, so each look-up has
a connection of its own. None is kept open: they are seldom needed, and one that a router has
forgotten looks alive until a minute has passed without an answer.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from channels.email import EmailSettings, imap, smtp
from channels.email.decode import Fetched, Parent, is_plain_id, own_prefix, parent_of
from channels.email.identity import author, is_vouched_for
from channels.email.imap import Mailbox
from channels.email.kept import Kept
from channels.email.logins import Logins
from zeroclaw import Address, parse_mail

MOST_HEADER_BYTES = 65_536
MOST_LOOKED_AT = 5
"""Mails of a thread whose headers are searched for the newest of one person."""
MOST_LOOKING = 4
"""Concurrent look-ups; Gmail allows 15 connections per account, dovecot 10 (read 2026-11)."""


class Account:
    """The two servers of one account.

    Attributes:
        sender: Sends its mails.
    """

    def __init__(self, logins: Logins) -> None:
        """Connect to nothing yet."""
        self._settings, self._logins = logins.settings, logins
        self.sender = smtp.Sender(logins)
        self._looking = asyncio.Semaphore(MOST_LOOKING)
        self._open: set[Mailbox] = set()

    @asynccontextmanager
    async def mailbox(self) -> AsyncGenerator[Mailbox]:
        """Connect, log in and open the mailbox; cut the connection at the end."""
        mailbox = await imap.connected(self._logins)
        self._open.add(mailbox)
        try:
            async with self._logins.lend() as login:
                await mailbox.login(login)
            await mailbox.open(self._settings.mailbox)
            yield mailbox
        finally:
            self._open.discard(mailbox)
            await mailbox.aclose()

    async def newest(self, to: Address, message: str) -> Parent:
        """Return the newest mail of a person in a thread, an empty one if none is found.

        Args:
            to: The person's chat, and the thread.
            message: The id of a particular mail; empty for the newest.
        """
        if message and not is_plain_id(message):
            return Parent()
        # A reply refers to the thread's first mail, or to one of ours, whose id contains the thread.
        ours = own_prefix(to.thread)
        named = [("References", ours), ("In-Reply-To", ours)]
        if to.thread and is_plain_id(to.thread):
            named += [("References", f"{to.thread}>"), ("Message-ID", f"{to.thread}>")]
        if message:
            named = [("Message-ID", f"{message}>")]
        terms = " ".join(f'HEADER {name} "<{value}"' for name, value in named)
        async with self._looking, self.mailbox() as mailbox:
            found = await mailbox.search(f"{'OR ' * (len(named) - 1)}{terms}")
            for uid in reversed(found[-MOST_LOOKED_AT:]):
                fetched = await mailbox.fetch(uid, most=MOST_HEADER_BYTES)
                mail = parse_mail(fetched.raw if fetched else b"")
                wrote = author(mail.headers.get("from", ()), self._settings.plus_tags)
                said = mail.headers.get("authentication-results", ())
                is_theirs = wrote is not None and wrote.address == to.chat
                # Otherwise a forged mail could set the subject and the thread of our answer.
                if is_theirs and is_vouched_for(to.chat, said, self._settings.authserv_id):
                    return parent_of(mail)
        return Parent()

    async def read(self, validity: int, uid: int, message: str) -> Fetched | None:
        """Return the mail of a requested file, None if the mail is gone."""
        async with self._looking, self.mailbox() as mailbox:
            if mailbox.validity != validity:  # the UID may now be another mail's
                named = f'HEADER Message-ID "<{message}>"'
                uid = next(iter(await mailbox.search(named) if is_plain_id(message) else ()), 0)
            most = self._settings.max_mail_bytes
            return await mailbox.fetch(uid, most=most) if uid else None

    async def aclose(self) -> None:
        """Cut every connection; safe twice."""
        await self.sender.aclose()
        for one in tuple(self._open):
            await one.aclose()


async def check(settings: EmailSettings, secrets: Mapping[str, str]) -> str:
    """Log in at both servers, open the mailbox and begin a mail; changes and sends nothing.

    Raises:
        ChannelRejected: The sending server takes no mail from this address.
        ChannelUnauthorized: A login is not accepted, or there is no such mailbox.
        ChannelUnavailable: A server can't be reached.
    """
    account = Account(Logins("email", settings, secrets, Kept()))
    async with account.mailbox() as mailbox:
        await account.sender.try_login()
    vouched = "everybody is a stranger until `authserv_id` is set"
    if settings.authserv_id:
        vouched = f"senders are who `{settings.authserv_id}` says they are"
    newest = f"from mail {mailbox.newest + 1:,} on"
    return f"{settings.address} reads `{settings.mailbox}` {newest}; {vouched}"
