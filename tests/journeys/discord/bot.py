"""The world of a Discord journey: our own Discord, a model, tools, the real daemon.

Ann and Bob may write to the bot; Olga is an operator; Mallory is a stranger. As in
`tests/journeys/world.py` the clock is the real one, and nothing waits for time to pass.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from simcord.backend.models import Message

from channels.discord.emulator.server import DiscordServer, Person
from tests.emulators.model_server import ModelServer
from tests.faults.fork_client import PRODUCT
from tests.journeys.bench import Bench
from tests.journeys.daemon_process import PATIENCE_S, DaemonProcess
from tests.journeys.harness import ends_cleanly, open_harness, people
from zeroclaw.host.clock import SystemClock

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Bot:
    """One journey."""

    discord: DiscordServer
    model: ModelServer
    bench: Bench
    daemon: DaemonProcess
    general: int
    ann: Person
    bob: Person
    olga: Person
    mallory: Person

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait until a condition holds; fail when the daemon dies."""

        def check() -> T:
            self.daemon.check()
            return condition()

        return await self.discord.until(check)

    def texts(self, channel: int) -> list[str]:
        """The bot's messages of a chat, cards apart."""
        return [
            message.content
            for message in self.discord.from_bot(channel)
            if "**" not in message.content
        ]

    async def expect(self, channel: int, *texts: str) -> None:
        """Wait until the bot's messages of a chat are exactly these."""
        await self.until(lambda: self.texts(channel) == list(texts))

    async def card(self) -> Message:
        """Wait for a card that Olga can press, and return the newest."""
        found = await self.until(
            lambda: [
                message for message in self.discord.from_bot(self.olga.direct) if message.components
            ]
        )
        return found[-1]

    async def restart(self) -> None:
        """Kill the daemon with -9, start it again, and wait until it hears."""
        begun = self.discord.identifies
        await self.daemon.restart()
        await self.until(lambda: self.discord.identifies > begun)

    def button(self, card: Message, label: str) -> str:
        """The id of a card's button."""
        buttons = [button for row in card.components for button in row["components"]]
        return next(str(button["custom_id"]) for button in buttons if button["label"] == label)


@asynccontextmanager
async def bot(
    directory: Path,
    *,
    start: bool = True,
    command: tuple[str, ...] = PRODUCT,
    environment: Mapping[str, str] | None = None,
    channel: Mapping[str, object] | None = None,
    **config: object,
) -> AsyncGenerator[Bot]:
    """Open everything and start the daemon; then stop it and check that it ends.

    Args:
        directory: An empty directory of this test's own.
        start: Start the daemon and wait until it hears.
        command: What runs it; another composition root, for faults.
        environment: Of the daemon, beside the usual.
        channel: Keys of `[channels.discord]` over the usual ones.
        config: Tables of the configuration, laid over the usual ones.
    """
    async with (
        DiscordServer(clock=SystemClock()) as discord,
        open_harness(directory, ModelServer(), discord.release) as harness,
    ):
        discord.patience_s = PATIENCE_S
        ann, bob, olga, mallory = map(discord.person, ("ann", "bob", "olga", "mallory"))
        own = {
            "people": people("discord", olga=olga.id, ann=ann.id, bob=bob.id),
            "channels": {
                "discord": {
                    "allowed_users": [str(person.id) for person in (ann, bob, olga)],
                    "token": {"env": "JOURNEY_DISCORD_TOKEN"},
                    "api_base_url": discord.url,
                    "limits": "off",
                    **(channel or {}),
                }
            },
        }
        secrets = {"JOURNEY_DISCORD_TOKEN": discord.token}
        daemon = harness.daemon(
            own, config, environment=secrets | dict(environment or {}), command=command
        )
        world = Bot(
            discord=discord,
            model=harness.model,
            bench=harness.bench,
            daemon=daemon,
            general=discord.channel("general"),
            ann=ann,
            bob=bob,
            olga=olga,
            mallory=mallory,
        )
        async with ends_cleanly(daemon, secrets, discord.transcript):
            if start:
                await daemon.start()
                await world.until(lambda: discord.identifies)
            yield world
