"""The world of a mail journey: real mail servers, a model, tools, the real daemon.

Ann and Bob may write to the bot; Olga is an operator; any other writer is a stranger. Ann has an
address more, to which no mail can be sent.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from threading import Event
from typing import TypeVar

from channels.email.emulator.servers import PASSWORD, Servers, servers
from tests.contract.email_harness import body, email_settings, mail_from
from tests.emulators.model_server import ModelServer
from tests.faults.fork_client import PRODUCT
from tests.journeys.bench import Bench
from tests.journeys.daemon_process import PATIENCE_S, DaemonProcess
from tests.journeys.harness import ends_cleanly, open_harness, people

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Mailing:
    """One journey."""

    mail: Servers
    model: ModelServer
    bench: Bench
    daemon: DaemonProcess
    bot: str
    ann: str
    unreachable: str
    bob: str
    olga: str

    async def write(self, sender: str, mail: EmailMessage) -> EmailMessage:
        """Deliver a mail to the bot's mailbox."""
        await self.mail.deliver(self.bot, mail.as_bytes(), sender=sender)
        return mail

    async def says(self, sender: str, text: str, *, subject: str = "", answers: str = "") -> None:
        """Write as a sender whom the server has verified."""
        mail = mail_from(sender, self.bot, text, subject=subject, in_reply_to=answers)
        await self.write(sender, mail)

    async def until(self, who: str, condition: Callable[[list[EmailMessage]], T]) -> T:
        """Wait until a condition holds for all mails of a person, by polling."""
        beat = Event()
        async with asyncio.timeout(PATIENCE_S):
            while not (found := condition(await self.mail.mails(who))):
                self.daemon.check()
                await asyncio.to_thread(beat.wait, 0.02)
        return found

    async def expect(self, who: str, *texts: str) -> list[EmailMessage]:
        """Wait until a person's mails are exactly these."""

        def are_there(mails: list[EmailMessage]) -> list[EmailMessage]:
            return mails if [body(mail) for mail in mails] == list(texts) else []

        return await self.until(who, are_there)


@asynccontextmanager
async def mailing(
    directory: Path,
    *,
    start: bool = True,
    command: tuple[str, ...] = PRODUCT,
    environment: Mapping[str, str] | None = None,
    channel: Mapping[str, object] | None = None,
    changed: Callable[[], None] = lambda: None,
) -> AsyncGenerator[Mailing]:
    """Open everything and start the daemon; then stop it and check that it ends.

    Args:
        directory: An empty directory of this test's own.
        start: Start the daemon and wait until it reads.
        command: What runs it; another composition root, for faults.
        environment: Of the daemon, beside the usual.
        channel: Keys of `[channels.email]` over the usual ones.
        changed: Called when a tool begins, and when the daemon sends; mail servers report nothing.
    """
    mail = await asyncio.to_thread(servers)
    async with open_harness(directory, ModelServer(), changed) as harness:
        names = ("bot", "ann", "gone", "bob", "olga")
        bot, ann, unreachable, bob, olga = map(mail.new_address, names)
        settings = email_settings(mail, bot).model_dump(exclude_defaults=True, mode="json")
        own = {
            "people": people("email", olga=olga, ann=(ann, unreachable), bob=bob),
            "channels": {
                "email": {
                    **settings,
                    "password": {"env": "JOURNEY_MAIL_PASSWORD"},
                    "allowed_users": [ann, unreachable, bob, olga],
                    **(channel or {}),
                }
            },
        }
        secrets = {"JOURNEY_MAIL_PASSWORD": PASSWORD}
        daemon = harness.daemon(own, environment=secrets | dict(environment or {}), command=command)
        world = Mailing(
            mail=mail,
            model=harness.model,
            bench=harness.bench,
            daemon=daemon,
            bot=bot,
            ann=ann,
            unreachable=unreachable,
            bob=bob,
            olga=olga,
        )
        async with ends_cleanly(daemon, secrets):
            if start:
                await daemon.start()
                await asyncio.to_thread(read_from, directory)
            yield world


def read_from(directory: Path) -> None:
    """Wait until it stands where reading began; mail from before the first start is left alone."""
    beat = Event()
    for _ in range(int(PATIENCE_S / 0.02)):
        if any(directory.glob("data/**/read-up-to")):
            return
        beat.wait(0.02)
