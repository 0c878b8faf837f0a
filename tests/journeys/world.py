"""The world of a journey: people on a platform, a model, a bench of tools, and the daemon.

    async with open_world(tmp_path) as world:
        world.model.say("hello ", "Ann")
        await world.say("ann", "hi")
        await world.expect("ann", "hello Ann")

Ann and Bob may write to the bot; Olga is an operator; Mallory is a stranger. The clock is the real
one, so journeys configure short times and wait for events, never for time.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from zeroclaw_test_platform.chats import Chat, Message
from zeroclaw_test_platform.event import Event
from zeroclaw_test_platform.platform import Platform

from tests.emulators.model_server import ModelServer
from tests.faults.fork_client import PRODUCT, fork
from tests.journeys.bench import Bench
from tests.journeys.daemon_process import PATIENCE_S, DaemonProcess, Launch
from tests.journeys.harness import ends_cleanly, open_harness, people
from zeroclaw import Choice

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class World:
    """One journey's people, model, tools and daemon."""

    platform: Platform
    model: ModelServer
    bench: Bench
    daemon: DaemonProcess
    directory: Path
    config: Path

    @property
    def data(self) -> Path:
        """The daemon's data directory."""
        return self.directory / "data"

    def chat(self, name: str) -> Chat:
        """Return a chat of the platform."""
        return self.platform.chat(name)

    async def say(
        self,
        person: str,
        text: str,
        *,
        chat: str = "",
        thread: str = "",
        files: Mapping[str, bytes] | None = None,
        claimed_bytes: int | None = None,
    ) -> Event:
        """Write as a person; the platform states `claimed_bytes` as the size of each file."""
        return await self.platform.say(
            person, text, chat=chat, thread=thread, files=files, claimed_bytes=claimed_bytes
        )

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait until `holds` returns a true value, and return it; fail when the daemon dies."""

        def check() -> T:
            self.daemon.check()
            return condition()

        return await self.platform.until(check)

    async def expect(self, chat: str, *texts: str) -> None:
        """Wait until the finished answers of a chat are exactly these; notes of waiting don't count."""

        def finished() -> list[str]:
            answers = self.chat(chat).answers
            return [text for text in answers if not text.startswith("Waiting for ")]

        await self.until(lambda: finished() == list(texts))

    async def card(self, chat: str = "olga") -> Message:
        """Wait for an open card in a chat, and return the newest."""
        return (await self.until(lambda: self.chat(chat).open_cards))[-1]

    async def press(
        self,
        person: str,
        card: Message,
        choice: Choice = "once",
        *,
        call: int = 0,
        reason: str = "",
    ) -> Event:
        """Press a button, and wait until the daemon has taken the press."""
        event = await self.platform.press(person, card, choice, call=call, reason=reason)
        await self.until(lambda: event.confirmed)
        return event

    async def second_daemon(self) -> DaemonProcess:
        """Start a second daemon with the same configuration."""
        second = self.daemon.twin(self.directory / "second.log")
        await second.start()
        return second

    def tool_results(self) -> list[str]:
        """Return the tool results in the newest model request."""
        return [
            str(message["content"])
            for message in self.model.requests[-1].messages
            if message["role"] == "tool"
        ]


@asynccontextmanager
async def open_world(
    directory: Path,
    *,
    platform: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    start: bool = True,
    command: tuple[str, ...] = PRODUCT,
    launch: Launch = fork,
    **config: object,
) -> AsyncGenerator[World]:
    """Open everything and start the daemon; at the end SIGTERM has to end it cleanly.

    Args:
        directory: An empty directory of this test's own.
        platform: The platform's abilities, as `LoopbackSettings`.
        environment: Added to the daemon's usual environment.
        start: Start the daemon and wait until it takes events.
        command: The program; tests of faults use composition roots of their own.
        launch: Starts the process.
        config: Tables of the configuration, merged over the usual ones.
    """
    async with (
        Platform(**(platform or {})) as platform_server,
        open_harness(directory, ModelServer(), platform_server.wake) as harness,
    ):
        platform_server.patience_s = PATIENCE_S
        daemon = harness.daemon(
            _platform_tables(platform_server),
            config,
            environment=environment or {},
            command=command,
            launch=launch,
        )
        world = World(
            platform=platform_server,
            model=harness.model,
            bench=harness.bench,
            daemon=daemon,
            directory=directory,
            config=directory / "zeroclaw.toml",
        )
        async with ends_cleanly(daemon, {}, platform_server.transcript):
            if start:
                await daemon.start()
                await world.until(lambda: platform_server.connected)
            yield world


def _platform_tables(platform: Platform) -> dict[str, object]:
    return {
        "people": people("loopback", olga="olga", ann="ann", bob="bob"),
        "channels": {
            "loopback": {
                "allowed_users": ["olga", "ann", "bob"],
                **platform.settings.model_dump(exclude_defaults=True),
            }
        },
    }
