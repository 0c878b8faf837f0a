"""All that a journey takes place in: people on a platform, a model, a bench of tools, the daemon.

    async with world(tmp_path) as here:
        here.model.say("hello ", "Ann")
        await here.say("ann", "hi")
        await here.until(lambda: here.chat("ann").answers == ["hello Ann"])

Ann and Bob may write to the bot; Olga is an operator; Mallory is a stranger. The clock is the real
one, so journeys configure short times and wait for what happens, never for time.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from zeroclaw_test_platform.chats import Chat, Message
from zeroclaw_test_platform.event import Event
from zeroclaw_test_platform.platform import Platform

from tests.emulators.model_server import ModelServer
from tests.faults.forked import PRODUCT, forked
from tests.journeys.bench import Bench
from tests.journeys.configuration import WITHOUT_DEFAULT_CHANNELS, merged, toml
from tests.journeys.daemon_process import (
    PATIENCE_S,
    DaemonProcess,
    Launch,
)
from zeroclaw import Choice

MODEL_KEY = "sk-journey-0123456789abcdefghij"
# Known only because its variable is named like a secret; no pattern would find it.
KNOWN_SECRET = "correct horse battery 7431"
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


@contextmanager
def one_failure() -> Generator[None]:
    """Let a lone failure inside a task group stand for itself."""
    try:
        yield
    except ExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise


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
    async with AsyncExitStack() as stack:
        stack.enter_context(one_failure())
        model = await stack.enter_async_context(ModelServer())
        server = await stack.enter_async_context(Platform(**(platform or {})))
        server.patience_s = PATIENCE_S
        bench = await stack.enter_async_context(Bench(server.wake))
        group = await stack.enter_async_context(asyncio.TaskGroup())
        path = directory / "zeroclaw.toml"
        usual = merged(usual_tables(directory, model), _of_platform(server))
        tables = merged(usual, config)
        path.write_text(toml(tables), encoding="utf-8")
        daemon = DaemonProcess(
            group=group,
            config=path,
            log=directory / "stderr.log",
            environment=daemon_environment(directory, bench) | dict(environment or {}),
            changed=server.wake,
            command=command,
            launch=launch,
        )
        here = World(
            platform=server,
            model=model,
            bench=bench,
            daemon=daemon,
            directory=directory,
            config=path,
        )
        try:
            if start:
                await daemon.start()
                await here.until(lambda: server.connected)
            yield here
            if daemon.is_running:
                assert await daemon.terminate() == 0, "told to end, it ends well, whatever is open"
        except AssertionError as error:
            error.add_note(f"{server.transcript()}\n{daemon.account()}")
            raise
        finally:
            await daemon.kill()


def usual_tables(directory: Path, model: ModelServer) -> dict[str, object]:
    """Return the configuration of every journey, without people; no channel is on."""
    return {
        "data_dir": str(directory / "data"),
        "workspace_dir": str(directory / "workspaces"),
        "provider": {
            "kind": "openai",
            "base_url": model.url,
            "model": "scripted",
            "api_key": {"env": "JOURNEY_MODEL_KEY"},
            "stall_s": 20.0,
        },
        "runtime": {"grace_s": 0.2, "call_timeout_s": 20.0},
        "approvals": {"timeout_s": 300.0},
        # People here write as fast as programs.
        "limits": {
            "person_per_minute": 6000,
            "person_burst": 10_000,
            "conversation_per_minute": 6000,
            "conversation_burst": 10_000,
        },
        "listener": {"port": 0},
        **WITHOUT_DEFAULT_CHANNELS,
    }


def _of_platform(platform: Platform) -> dict[str, object]:
    return {
        "people": [
            {"name": "olga", "ids": ["loopback:olga"], "roles": ["operator"]},
            {"name": "ann", "ids": ["loopback:ann"]},
            {"name": "bob", "ids": ["loopback:bob"]},
        ],
        "channels": {
            "loopback": {
                "allowed_users": ["olga", "ann", "bob"],
                **platform.settings.model_dump(exclude_defaults=True),
            }
        },
    }


def daemon_environment(directory: Path, bench: Bench) -> dict[str, str]:
    """The daemon finds the bench's tools as it finds everybody's: by their entry point."""
    installed = directory / "installed" / "journeys-0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: journeys\nVersion: 0\n")
    (installed / "entry_points.txt").write_text(
        "[zeroclaw.tools]\nbench = tests.journeys.bench_tools:tools\n"
    )
    return {
        "HOME": str(directory / "home"),
        "XDG_CONFIG_HOME": str(directory / "home" / "config"),
        "XDG_DATA_HOME": str(directory / "home" / "data"),
        "PYTHONPATH": os.pathsep.join((str(installed.parent), os.environ.get("PYTHONPATH", ""))),
        "JOURNEY_MODEL_KEY": MODEL_KEY,
        "JOURNEY_SIGNING_SECRET": KNOWN_SECRET,
        "JOURNEY_BENCH_PORT": str(bench.port),
    }
