"""The parts of a test's daemon besides its rooms: its people, its log, its threads."""

import asyncio
import concurrent.futures
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from pydantic import BaseModel

from zeroclaw.channel import Capabilities, Channel, ChannelContext, ChannelManifest
from zeroclaw.config.model import ChannelSettings, Config, ContextSettings, PersonSettings
from zeroclaw.daemon.config_check import ChannelPart, CheckedConfig
from zeroclaw.gate.policy import configured
from zeroclaw.host.control import Call, Control, Serve, encoded
from zeroclaw.host.places import Places
from zeroclaw.redact import Redactor

P = ParamSpec("P")
T = TypeVar("T")

SECRET = "hunter2-and-then-some"
REDACTOR = Redactor((SECRET,))
"""Made once: it never changes, and to make it takes an eighth of the start of a test's daemon."""
CAPABILITIES = Capabilities(max_length=2000, can_edit=True, can_delete=True, has_buttons=True)
PEOPLE = (
    PersonSettings(name="ada", ids=("chat:ada",), roles=("operator",)),
    PersonSettings(name="ben", ids=("chat:ben",)),
)
CHAT = ChannelSettings(allowed_users=("ada", "ben", "cleo"))
CONFIG = Config(
    people=PEOPLE,
    channels={"chat": CHAT},
    # Reading files takes a thread, whose end a test would have to wait for in each turn.
    context=ContextSettings(file_tokens=0),
)


def places_in(directory: Path) -> Places:
    """Return the places of a daemon in a directory of its own."""
    return Places(
        config=directory / "config.toml",
        data=directory / "data",
        workspaces=directory / "workspaces",
        models=directory / "models",
    )


class NoSettings(BaseModel):
    """The settings of a platform in these tests: none."""


class MadePart(ChannelPart):
    """A channel that a function makes."""

    maker: Callable[[ChannelContext], Channel]

    def make(self, context: ChannelContext) -> Channel:
        """Make the channel."""
        return self.maker(context)


def part_of(name: str, *, local: bool, make: Callable[[ChannelContext], Channel]) -> ChannelPart:
    """Return a checked channel of a kind of its own."""
    return MadePart(
        name=name,
        manifest=ChannelManifest(kind=name, adapter="", settings="", local_operator=local),
        settings=NoSettings(),
        secrets={"password": f"of {name}"},
        maker=make,
    )


def checked_of(config: Config, part: Callable[[str], ChannelPart]) -> CheckedConfig:
    """Return a checked configuration; raises `ConfigError` for a faulty statement."""
    return CheckedConfig(
        statements=configured(config.policy.statement),
        channels=tuple(part(name) for name in config.channels),
        redactor=REDACTOR,
    )


class Facts:
    """The log of the rooms and channels, in order."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, object]]] = []

    def __call__(self, event: str, /, **fields: object) -> None:
        self.seen.append((event, fields))

    def events(self) -> list[str]:
        return [event for event, _ in self.seen]


class QuietControl(Control):
    """The control socket without a socket; `ask` calls the registered services."""

    def __init__(self, directory: Path, *, log: Facts) -> None:
        super().__init__(directory, log=log)
        self._registered: dict[str, Call] = {}
        self.streams: list[str] = []

    def stream(self, name: str, serve: Serve) -> None:
        self.streams.append(name)

    def call(self, name: str, answer: Call) -> None:
        self._registered[name] = answer

    async def serve(self, ready: Callable[[], None]) -> None:
        ready()
        await asyncio.get_running_loop().create_future()

    async def ask(self, name: str, **fields: object) -> dict[str, object]:
        answered: dict[str, object] = json.loads(encoded(await self._registered[name](fields)))
        return answered


class Threads(ThreadPoolExecutor):
    """One thread, which knows whether it got work since `catch_up`."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self._submitted = 0
        self._done = 0

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[T]:
        self._submitted += 1
        return super().submit(fn, *args, **kwargs)

    def has_news(self) -> bool:
        return self._submitted != self._done

    async def catch_up(self) -> None:
        """Wait for all work so far; the loop has handled each result before this returns."""
        submitted = self._submitted + 1  # counts this one; later work is news
        await asyncio.get_running_loop().run_in_executor(self, lambda: None)
        self._done = submitted
