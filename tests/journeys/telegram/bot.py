"""The world of a Telegram journey: our own Telegram, a model, tools, the real daemon.

Ann and Bob may write to the bot; Olga is an operator; Mallory is a stranger. As in
`tests/journeys/world.py` the clock is the real one, and nothing waits for time to pass.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from channels.telegram.emulator import Actor, Chat, Emulator, Limits, Message
from tests.emulators.model_server import ModelServer
from tests.faults.fork_client import PRODUCT, fork
from tests.journeys.bench import Bench
from tests.journeys.daemon_process import PATIENCE_S, DaemonProcess, Launch
from tests.journeys.harness import ends_cleanly, open_harness, people
from zeroclaw.host.clock import SystemClock

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Bot:
    """One journey."""

    telegram: Emulator
    model: ModelServer
    bench: Bench
    daemon: DaemonProcess
    ann: Actor
    bob: Actor
    olga: Actor
    mallory: Actor

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait until a condition holds; fail when the daemon dies."""

        def check() -> T:
            self.daemon.check()
            return condition()

        return await self.telegram.until(check)

    async def expect(self, chat: Chat, *texts: str) -> None:
        """Wait until the bot's messages of a chat are exactly these."""
        await self.until(lambda: chat.texts == list(texts))

    async def expect_once(self, *texts: str) -> None:
        """Wait until the bot's messages to Ann are exactly these, and nothing of them comes again.

        A next message stands behind all that was still on its way to her.
        """
        await self.expect(self.ann.chat, *texts)
        self.model.say("That is all.", key="is that all?")
        self.ann.says("is that all?")
        await self.expect(self.ann.chat, *texts, "That is all.")

    async def card(self) -> Message:
        """Wait for a card that Olga can press, and return the newest."""
        return (
            await self.until(
                lambda: [message for message in self.olga.chat.from_bot if message.buttons]
            )
        )[-1]

    async def restart(self) -> None:
        """Kill the daemon with -9 and start it again."""
        await self.daemon.restart()

    async def answers_once_what_comes_again(self) -> None:
        """Have a message come as itself, after a restart, and under a new number; then another."""
        self.model.say("hello Ann")
        action = self.ann.says("hi")
        await self.expect(self.ann.chat, "hello Ann")
        self.telegram.redeliver(action)
        await self.telegram.confirmed(action)
        await self.restart()
        self.telegram.redeliver(action)
        again = self.telegram.redeliver(action, as_new=True)
        await self.until(lambda: action.update.confirmed and again.confirmed)
        self.model.say("bye Ann", key="bye")
        self.ann.says("bye")
        await self.expect(self.ann.chat, "hello Ann", "bye Ann")


@asynccontextmanager
async def bot(
    directory: Path,
    *,
    limits: Limits | None = None,
    model: ModelServer | None = None,
    privacy: bool = False,
    start: bool = True,
    channel: Mapping[str, object] | None = None,
    command: tuple[str, ...] = PRODUCT,
    environment: Mapping[str, str] | None = None,
    launch: Launch = fork,
    **config: object,
) -> AsyncGenerator[Bot]:
    """Open everything and start the daemon; then stop it and check that it ends.

    Args:
        directory: An empty directory of this test's own.
        limits: What Telegram lets the bot do.
        model: Its model server, None for a scripted one.
        privacy: In groups the bot hears only what is meant for it.
        start: Start the daemon and wait until it polls.
        channel: Keys of `[channels.telegram]` over the usual ones.
        command: What runs it; another composition root, for faults.
        environment: Of the daemon, beside the usual.
        launch: How it is started.
        config: Tables of the configuration, laid over the usual ones.
    """
    async with (
        Emulator(clock=SystemClock(), limits=limits, privacy=privacy) as telegram,
        open_harness(directory, model or ModelServer(), telegram.release) as harness,
    ):
        telegram.patience_s = PATIENCE_S
        ann, bob, olga, mallory = map(telegram.person, ("Ann", "Bob", "Olga", "Mallory"))
        own = {
            "people": people("telegram", olga=olga.id, ann=ann.id, bob=bob.id),
            "channels": {
                "telegram": {
                    "allowed_users": [str(person.id) for person in (ann, bob, olga)],
                    "token": {"env": "JOURNEY_TELEGRAM_TOKEN"},
                    "api_base_url": telegram.url,
                    "limits": "published" if limits else "off",
                    **(channel or {}),
                }
            },
        }
        secrets = {"JOURNEY_TELEGRAM_TOKEN": telegram.token}
        daemon = harness.daemon(
            own,
            config,
            environment=secrets | dict(environment or {}),
            command=command,
            launch=launch,
        )
        world = Bot(
            telegram=telegram,
            model=harness.model,
            bench=harness.bench,
            daemon=daemon,
            ann=ann,
            bob=bob,
            olga=olga,
            mallory=mallory,
        )
        async with ends_cleanly(daemon, secrets, telegram.transcript):
            if start:
                await daemon.start()
                await world.until(lambda: telegram.is_polled)
            yield world
