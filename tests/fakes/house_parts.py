"""What a house of tests is made of besides its rooms: who lives there, its log, its threads."""

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
    """Return where everything is of a house in a directory of its own, without a configuration."""
    return Places(
        config=None,
        data=directory / "data",
        workspaces=directory / "workspaces",
        models=directory / "models",
    )


class NoSettings(BaseModel):
    """What a platform of these tests is configured with."""


class MadePart(ChannelPart):
    """A channel that is made by a function."""

    maker: Callable[[ChannelContext], Channel]

    def make(self, context: ChannelContext) -> Channel:
        """Make it."""
        return self.maker(context)


def part_of(name: str, *, local: bool, make: Callable[[ChannelContext], Channel]) -> ChannelPart:
    """Return a channel that is ready to be made, of a kind of its own."""
    return MadePart(
        name=name,
        manifest=ChannelManifest(kind=name, adapter="", settings="", local_operator=local),
        settings=NoSettings(),
        secrets={"password": f"of {name}"},
        maker=make,
    )


def checked_of(config: Config, part: Callable[[str], ChannelPart]) -> CheckedConfig:
    """Return what checking brings to light; raises `ConfigError` for a faulty statement."""
    return CheckedConfig(
        statements=configured(config.policy.statement),
        channels=tuple(part(name) for name in config.channels),
        redactor=Redactor((SECRET,)),
    )


class Facts:
    """What rooms and channels wrote into the log, in order."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, object]]] = []

    def __call__(self, event: str, /, **fields: object) -> None:
        self.seen.append((event, fields))

    def events(self) -> list[str]:
        return [event for event, _ in self.seen]


class QuietControl(Control):
    """The control socket without a socket; `ask` calls what was registered."""

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
    """One thread, and whether it was given something since it was last waited for."""

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self._given = 0
        self._done = 0

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[T]:
        self._given += 1
        return super().submit(fn, *args, **kwargs)

    def has_news(self) -> bool:
        return self._given != self._done

    async def catch_up(self) -> None:
        """Wait for all that it was given so far; the loop has heard of each before this returns."""
        given = self._given + 1  # and this; what is given meanwhile is news
        await asyncio.get_running_loop().run_in_executor(self, lambda: None)
        self._done = given
