"""All that a journey takes place in: people on a platform, a model, a bench of tools, the daemon.

    async with world(tmp_path) as here:
        here.model.say("hello ", "Ann")
        await here.say("ann", "hi")
        await here.until(lambda: here.chat("ann").answers == ["hello Ann"])

Ann and Bob may write to the bot; Olga is an operator; Mallory is a stranger. The clock is the real
one, so journeys configure short times and wait for what happens, never for time.
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
from tests.faults.forked import PRODUCT, forked
from tests.journeys.backstage import backstage, ending_well, people
from tests.journeys.bench import Bench
from tests.journeys.daemon_process import PATIENCE_S, DaemonProcess, Launch
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
        who: str,
        text: str,
        *,
        chat: str = "",
        thread: str = "",
        files: Mapping[str, bytes] | None = None,
        said_bytes: int | None = None,
    ) -> Event:
        """Write as a person, with files; `said_bytes` is a size that the platform makes up."""
        return await self.platform.say(
            who, text, chat=chat, thread=thread, files=files, said_bytes=said_bytes
        )

    async def until(self, holds: Callable[[], T]) -> T:
        """Wait until something holds on the platform or the bench; fail when the daemon dies."""

        def looked() -> T:
            self.daemon.check()
            return holds()

        return await self.platform.until(looked)

    async def answered(self, chat: str, *texts: str) -> None:
        """Wait until the finished answers of a chat are exactly these, notes of waiting apart."""

        def said() -> list[str]:
            answers = self.chat(chat).answers
            return [text for text in answers if not text.startswith("Waiting for ")]

        await self.until(lambda: said() == list(texts))

    async def carded(self, chat: str = "olga") -> Message:
        """Wait for a card with an open question in a chat, and return the newest."""
        return (await self.until(lambda: self.chat(chat).open_cards))[-1]

    async def press(
        self, who: str, card: Message, choice: Choice = "once", *, call: int = 0, reason: str = ""
    ) -> Event:
        """Press a button, and wait until the daemon has taken the press."""
        event = await self.platform.press(who, card, choice, call=call, reason=reason)
        await self.until(lambda: event.confirmed)
        return event

    async def another(self) -> DaemonProcess:
        """Start a second daemon with the same configuration."""
        second = self.daemon.twin(self.directory / "second.log")
        await second.start()
        return second

    def tool_results(self) -> list[str]:
        """Return what the model was told by tools, in the newest request."""
        return [
            str(message["content"])
            for message in self.model.requests[-1].messages
            if message["role"] == "tool"
        ]


@asynccontextmanager
async def world(
    directory: Path,
    *,
    platform: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    start: bool = True,
    command: tuple[str, ...] = PRODUCT,
    launch: Launch = forked,
    **config: object,
) -> AsyncGenerator[World]:
    """Open everything and start the daemon; at the end it is told to end, and does.

    Args:
        directory: An empty directory of this test's own.
        platform: What the platform can do, as `LoopbackSettings`.
        environment: Of the daemon, beside the usual.
        start: Start the daemon and wait until it takes events.
        command: What runs it; another composition root, for faults.
        launch: How it is started.
        config: Tables of the configuration, laid over the usual ones.
    """
    async with (
        Platform(**(platform or {})) as server,
        backstage(directory, ModelServer(), server.wake) as behind,
    ):
        server.patience_s = PATIENCE_S
        daemon = behind.daemon(
            _of_platform(server),
            config,
            environment=environment or {},
            command=command,
            launch=launch,
        )
        here = World(
            platform=server,
            model=behind.model,
            bench=behind.bench,
            daemon=daemon,
            directory=directory,
            config=directory / "zeroclaw.toml",
        )
        async with ending_well(daemon, {}, server.transcript):
            if start:
                await daemon.start()
                await here.until(lambda: server.connected)
            yield here


def _of_platform(platform: Platform) -> dict[str, object]:
    return {
        "people": people("loopback", olga="olga", ann="ann", bob="bob"),
        "channels": {
            "loopback": {
                "allowed_users": ["olga", "ann", "bob"],
                **platform.settings.model_dump(exclude_defaults=True),
            }
        },
    }
