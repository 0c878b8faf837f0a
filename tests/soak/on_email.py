"""Mail, through dovecot and postfix; sessions are cut, and mails come twice."""

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import cast

from channels.email.emulator.servers import PASSWORD, Servers, servers
from tests.contract.email_harness import body, email_settings, mail_from
from tests.soak.place import Place, Room, Tables, Trouble

KEPT = 50
A_DAY = 10_000
"""More mails than are written in a soak; that the caps hold is shown elsewhere."""


@dataclass(eq=False, kw_only=True)
class Writer:
    """A `Line`."""

    on: "OnEmail"
    address: str
    name: str
    chat: Room
    is_own: bool = True
    may_ask: bool = True
    read: int = 0

    async def says(self, text: str) -> EmailMessage:
        mail = mail_from(self.address, self.on.bot, text)
        self.on.sent = [*self.on.sent[-KEPT:], (self.address, mail)]
        await self.on.deliver(self.address, mail)
        return mail

    async def look(self) -> None:
        count = await self.on.mail.count(self.address)
        if count > self.read:
            self.read = count
            mails = await self.on.mail.mails(self.address)
            self.chat.stand([body(mail).partition("\n\n-- \n")[0] for mail in mails])


@dataclass(eq=False, kw_only=True)
class OnEmail(Place):
    """A `Place`; Olga reads no mail."""

    chance: random.Random
    name = "email"
    sent: list[tuple[str, EmailMessage]] = field(default_factory=list[tuple[str, EmailMessage]])

    async def open(
        self, stack: AsyncExitStack, group: asyncio.TaskGroup, people: int, directory: Path
    ) -> Tables:
        self.mail: Servers = await asyncio.to_thread(servers)
        self.bot = self.mail.new_address("bot")
        own = [self.mail.new_address(f"e{number}") for number in range(people)]
        self._writers = [
            Writer(on=self, address=address, name=f"e{number}", chat=Room(address))
            for number, address in enumerate(own)
        ]
        self.lines = self._writers
        self._directory = directory
        settings = email_settings(
            self.mail, self.bot, sender_per_hour=1_000, account_per_hour=A_DAY
        )
        channel = {
            **settings.model_dump(exclude_defaults=True, mode="json"),
            "password": {"env": "SOAK_MAIL_PASSWORD"},
            "allowed_users": own,
        }
        return Tables(channel=channel, secrets={"SOAK_MAIL_PASSWORD": PASSWORD}, people=own)

    @property
    def is_connected(self) -> bool:
        """Whether it stands where reading began; mail from before the first start is left alone."""
        return any(self._directory.glob("data/**/read-up-to"))

    async def look(self) -> None:
        for writer in self._writers:
            await writer.look()

    async def deliver(self, sender: str, mail: EmailMessage) -> None:
        """Let a mail come to the bot."""
        await self.mail.deliver(self.bot, mail.as_bytes(), sender=sender)

    def order(self) -> Callable[[object], int]:
        """Return the UIDs: another order than its numbers a mailbox does not have, for any client.

        Dovecot gives them in another one than the mails came in: of 600 that were handed over one after
        the other, each when the one before was taken, beside one session that read them, it numbered 12
        before the mail that came before them (2.3, a maildir, 2026-11). One that comes while the list of
        numbers is in use gets its number at the next look, behind one that comes meanwhile.
        """
        uids = self.mail.uids(self.bot)

        def number(action: object) -> int:
            assert isinstance(action, EmailMessage)
            return uids[str(cast("EmailMessage", action)["message-id"])]

        return number

    def troubles(self) -> Mapping[str, Trouble]:
        return {"mailboxes cut": self._cut, "repeats": self._again}

    async def _cut(self) -> None:
        await self.mail.cut(self.bot)

    async def _again(self) -> None:
        if self.sent:
            await self.deliver(*self.chance.choice(self.sent))
