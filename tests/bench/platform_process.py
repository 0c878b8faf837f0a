"""Discord, Slack or a mail server for the bench: the tests' stand-in and its people, in a process.

Run as `python -m tests.bench.platform_process discord|slack|email off PEOPLE`; for its orders see
`tests.bench.stage_process`. It ends with its input.
"""

import asyncio
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from email.utils import make_msgid
from pathlib import Path
from typing import cast

from tests.bench.stage_process import Exchange, Facts, Kind, Order, Shown, take_orders
from zeroclaw.host.clock import SystemClock

LOOKS_S = 0.01
"""How often is looked for what tells nobody."""


class Side(ABC):
    """The messages of a platform's process to the bench."""

    def __init__(self) -> None:
        """Begin with nothing that was shown."""
        self.shown: dict[str, list[tuple[Kind, float, str]]] = {}
        self.heard_at: list[float] = []

    @abstractmethod
    async def open(self, stack: AsyncExitStack, people: int) -> tuple[Facts, Sequence[str]]:
        """Open it; returns where it is, and the chat of each person."""

    @abstractmethod
    async def write(self, chat: str, text: str) -> None:
        """Write as the person of a chat; returns when the bot was sent it."""

    @abstractmethod
    def look(self) -> None:
        """Note in `shown` and `heard_at` what is new."""

    @abstractmethod
    async def until(self, condition: Callable[[], object]) -> object:
        """Wait until a condition holds; it is checked whenever something may be new."""

    async def wait_listening(self, since: float) -> float:
        """Wait until the bot has begun to listen, and return when."""

        def begun() -> list[float]:
            self.look()
            return [at for at in self.heard_at if at >= since]

        await self.until(begun)
        return begun()[0]

    def show(self, chat: str, kind: Kind, text: str, *, at: float = 0.0) -> None:
        """Note that a text is seen."""
        self.shown.setdefault(chat, []).append((kind, at or time.monotonic(), text))

    async def say(self, chats: Iterable[str], text: str, ends: str) -> list[Exchange]:
        """Let people write at once, and wait until all are answered."""
        exchanges = {chat: Exchange(sent=time.monotonic()) for chat in chats}
        read = {chat: len(self.shown.get(chat, ())) for chat in exchanges}
        waiting = set(exchanges)

        async def write(chat: str) -> None:
            await self.write(chat, text)
            exchanges[chat].delivered = time.monotonic()

        def is_over() -> bool:
            self.look()
            for chat in list(waiting):
                for kind, at, shown in self.shown.get(chat, [])[read[chat] :]:
                    read[chat] += 1
                    exchanges[chat].calls.append(Shown(kind=kind, at=at))
                    if ends in shown:
                        exchanges[chat].final, exchanges[chat].text = at, shown
                        waiting.discard(chat)
            return not waiting

        async with asyncio.TaskGroup() as group:
            for chat in exchanges:
                group.create_task(write(chat))
        await self.until(is_over)
        return [*exchanges.values()]


class Discord(Side):
    """simcord's, by the tests' front."""

    async def open(self, stack: AsyncExitStack, people: int) -> tuple[Facts, Sequence[str]]:
        from channels.discord.emulator.server import DiscordServer

        self._server = await stack.enter_async_context(DiscordServer(clock=SystemClock()))
        self._server.patience_s = 120.0
        self._server.backend.subscribers.append(self._on_event)
        persons = [self._server.person(f"p{number}") for number in range(people)]
        self._people = {str(person.direct): person for person in persons}
        self._identifies = 0
        channel = {
            "allowed_users": [str(person.id) for person in persons],
            "token": {"env": "BENCH_DISCORD"},
            "api_base_url": self._server.url,
            "limits": "off",
        }
        floor = [self._server.url, self._server.token]
        facts = Facts(channel=channel, secrets={"BENCH_DISCORD": self._server.token}, floor=floor)
        return facts, [*self._people]

    def _on_event(self, event: str, payload: Mapping[str, object]) -> None:
        if event not in {"MESSAGE_CREATE", "MESSAGE_UPDATE"}:
            return
        author = cast("Mapping[str, object]", payload["author"])
        if str(author["id"]) == str(self._server.bot):
            kind: Kind = "send" if event == "MESSAGE_CREATE" else "edit"
            self.show(str(payload["channel_id"]), kind, str(payload.get("content")))

    async def write(self, chat: str, text: str) -> None:
        self._people[chat].says(int(chat), text)

    def look(self) -> None:
        if self._server.identifies > self._identifies:
            self._identifies = self._server.identifies
            self.heard_at.append(time.monotonic())

    async def until(self, condition: Callable[[], object]) -> object:
        return await self._server.until(condition)


class Slack(Side):
    """emulate's, by the tests' front; what it needs for the people's own messages is not measured."""

    async def open(self, stack: AsyncExitStack, people: int) -> tuple[Facts, Sequence[str]]:
        from channels.slack.emulator.server import APP, BOT, SlackServer

        self._server = await stack.enter_async_context(SlackServer())
        persons = [await self._server.person() for _ in range(people)]
        self._people = {person.direct: person for person in persons}
        self._read = dict.fromkeys(self._people, 0)
        self._connections = 0
        secrets = {"BENCH_SLACK_BOT": BOT, "BENCH_SLACK_APP": APP}
        channel = {
            "allowed_users": [person.id for person in persons],
            "bot_token": {"env": "BENCH_SLACK_BOT"},
            "app_token": {"env": "BENCH_SLACK_APP"},
            "api_base_url": self._server.url,
            "limits": "off",
        }
        floor = [self._server.url, BOT, APP]
        return Facts(channel=channel, secrets=secrets, floor=floor), [*self._people]

    async def write(self, chat: str, text: str) -> None:
        await self._people[chat].says(text)

    def look(self) -> None:
        if self._server.connections > self._connections:
            self._connections = self._server.connections
            self.heard_at.append(time.monotonic())
        for chat, all_of_it in self._server.history.items():
            for text in all_of_it[self._read.get(chat, 0) :]:
                if '"blocks"' in text:
                    self.show(chat, "send", text)
            self._read[chat] = len(all_of_it)

    async def until(self, condition: Callable[[], object]) -> object:
        return await self._server.until(condition)


class Mail(Side):
    """dovecot and postfix, which report nothing: their files are polled."""

    async def open(self, stack: AsyncExitStack, people: int) -> tuple[Facts, Sequence[str]]:
        from channels.email.emulator.servers import AUTHSERV_ID, PASSWORD, servers

        self._servers = await asyncio.to_thread(servers)
        self._bot = self._servers.new_address("bot")
        addresses = [self._servers.new_address(f"p{number}") for number in range(people)]
        self._known: dict[str, set[str]] = {address: set() for address in addresses}
        self._log = self._servers.home / "dovecot.log"
        self._log_read = 0
        channel = {
            "address": self._bot,
            "password": {"env": "BENCH_MAIL"},
            "imap_host": "localhost",
            "imap_port": self._servers.imaps,
            "smtp_host": "localhost",
            "smtp_port": self._servers.submission,
            "ca_file": self._servers.ca_file,
            "authserv_id": AUTHSERV_ID,
            "sender_per_hour": 1_000,
            "account_per_hour": 10_000,
            "allowed_users": addresses,
        }
        ports = f"{self._servers.imaps},{self._servers.submission}"
        floor = [self._bot, PASSWORD, ports, self._servers.ca_file]
        return Facts(channel=channel, secrets={"BENCH_MAIL": PASSWORD}, floor=floor), addresses

    async def write(self, chat: str, text: str) -> None:
        from channels.email.emulator.servers import DOMAIN, VERDICT

        mail = EmailMessage()
        mail["Authentication-Results"] = VERDICT
        mail["From"], mail["To"], mail["Subject"] = f"Ann <{chat}>", self._bot, "hello"
        mail["Message-ID"] = make_msgid(domain=DOMAIN)
        mail.set_content(text)
        await self._servers.deliver(self._bot, mail.as_bytes(), sender=chat)

    def look(self) -> None:
        with self._log.open("rb") as log:
            log.seek(self._log_read)
            added = log.read()
        self._log_read += len(added)
        if f"Login: user=<{self._bot}>".encode() in added:
            self.heard_at.append(time.monotonic())
        ahead = time.monotonic() - time.time()  # files are dated by the wall clock
        for chat, known in self._known.items():
            new = self._servers.home / "mail" / chat / "new"
            for path in new.iterdir() if new.is_dir() else ():
                if path.name not in known:
                    known.add(path.name)
                    self.show(chat, "send", _words(path), at=path.stat().st_mtime + ahead)

    async def until(self, condition: Callable[[], object]) -> object:
        async with asyncio.timeout(120):
            while not (found := condition()):  # noqa: ASYNC110 - mail servers report nothing
                await asyncio.sleep(LOOKS_S)
        return found


def _words(file: Path) -> str:
    body = BytesParser(policy=default).parsebytes(file.read_bytes()).get_body(("plain",))
    return "" if body is None else str(body.get_content())


SIDES: Mapping[str, Callable[[], Side]] = {"discord": Discord, "slack": Slack, "email": Mail}


async def _main(platform: str, people: int) -> None:
    side = SIDES[platform]()
    async with AsyncExitStack() as stack:
        facts, chats = await side.open(stack, people)

        async def say(order: Order) -> list[Exchange]:
            return await side.say(chats[: order["people"]], order["say"], order["ends"])

        await take_orders(facts, side.wait_listening, say)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[3])))
