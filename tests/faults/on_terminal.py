"""The channels of this machine as stages for scenes: what `zeroclaw chat` has below its screen, with the
real client, and in `on_web.py` the page.

One person is there, who is Ann, Bob and the operator. They keep what they have written until the
daemon says that it is stored, and write it again after a kill, as the program does.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar, cast

from tests.emulators.model_server import ModelServer
from tests.faults.fork_client import COMMAND
from tests.faults.stage import Asked, Card, Deed, Open, Shown, Stage, WithDirectChats
from tests.journeys.bench import Bench
from tests.journeys.daemon_process import PATIENCE_S, DaemonProcess
from tests.journeys.harness import open_harness
from zeroclaw import Choice
from zeroclaw.cli.chat.connection import Line, Link
from zeroclaw.errors import NeedsOperator
from zeroclaw.host.clock import SystemClock

T = TypeVar("T")
HERE = "ann"
AGAIN_S = 0.05
Heard = Callable[[Line], None]
Lost = Callable[[], None]


class Client(Protocol):
    """What a person writes with who keeps it until it is stored.

    Attributes:
        pending: What is not known to be stored, by its id, the oldest first.
    """

    pending: dict[str, Line]

    def say(self, text: str, files: Mapping[str, bytes] | None = None) -> str: ...
    def press(self, approval: str, choice: str, card: str) -> str: ...
    def again(self, key: str, line: Line) -> None: ...
    async def run(self, heard: Heard, lost: Lost) -> None: ...


class _Terminal:
    """The client of `zeroclaw chat`, connected to whichever daemon there is."""

    def __init__(self, data: Path) -> None:
        numbers = itertools.count()
        self._link = Link(data, clock=SystemClock(), token=lambda: f"written-{next(numbers)}")
        self.pending = self._link.pending
        self.press = self._link.press

    def say(self, text: str, files: Mapping[str, bytes] | None = None) -> str:
        assert not files, "a terminal sends none"
        return self._link.say(text)

    def again(self, key: str, line: Line) -> None:
        self.pending[key] = line
        self._link._send(line)  # pyright: ignore[reportPrivateUsage] - written once more at once

    async def run(self, heard: Heard, lost: Lost) -> None:
        while True:
            try:
                await self._link.run(heard, lost)
            except* NeedsOperator:
                await SystemClock().sleep(AGAIN_S)


@dataclass(frozen=True, slots=True)
class _Written:
    link: Client
    message: str
    text: str
    line: Line

    @property
    def confirmed(self) -> bool:
        return self.message not in self.link.pending


@dataclass(slots=True)
class _Chat:
    name: str
    items: dict[str, Line] = field(default_factory=dict[str, Line])
    said: list[str] = field(default_factory=list[str])

    @property
    def shown(self) -> Sequence[Shown]:
        bots = [one for one in self.items.values() if one["kind"] == "bot"]
        return [Shown(text=str(one["text"]), draft=bool(one["draft"])) for one in bots]

    @property
    def cards(self) -> Sequence[Card]:
        return [_card(one) for one in self.items.values() if one["kind"] == "card"]

    @property
    def ever(self) -> str:
        return "\n".join(self.said)


def _card(item: Line) -> Card:
    calls = cast("list[Line]", cast("Line", item["card"])["calls"])
    asked = [
        Asked(
            approval=str(one["approval"]),
            says=str(one["arguments"]),
            how=str(cast("Line", one["ending"] or {}).get("how", "")),
        )
        for one in calls
    ]
    question = " ".join(one.approval for one in asked)
    return Card(id=str(item["id"]), question=question, calls=tuple(asked))


@dataclass(frozen=True, kw_only=True)
class _Opened:
    model: ModelServer
    bench: Bench
    daemon: DaemonProcess


class OnLocal(WithDirectChats[_Chat]):
    """A `Stage`."""

    tells_repeats = True

    def __init__(
        self, here: _Opened, directory: Path, changed: asyncio.Event, link: Client
    ) -> None:
        self._changed = changed
        self.wake = changed.set
        self._is_live = False
        self._link = link
        super().__init__(here, directory, {HERE: _Chat(HERE)})

    @property
    def listening(self) -> bool:
        return self._is_live and self.daemon.is_running

    def named(self, who: str) -> str:
        return "operator"

    def chat(self, name: str) -> _Chat:
        return self._chats[HERE]

    async def say(
        self, who: str, text: str, *, where: str = "", files: Mapping[str, bytes] | None = None
    ) -> Deed:
        return self._written(self._link.say(text, files), text)

    async def edit(self, deed: Deed, text: str) -> Deed:
        raise AssertionError("what was written on a terminal stays as it is")

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Deed:
        approval = card.calls[call].approval
        return self._written(self._link.press(approval, choice, card.id), approval)

    def _written(self, key: str, text: str) -> Deed:
        return _Written(self._link, key, text, self._link.pending[key])

    async def again(self, deed: Deed) -> None:
        assert isinstance(deed, _Written)
        self._link.again(deed.message, deed.line)

    def refuse(self, where: str) -> None:
        raise AssertionError("nothing on this machine refuses")

    async def until(self, holds: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not (found := self.daemon.check() or holds()):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            message = f"waited {PATIENCE_S:g} s in vain\n{self._chats[HERE].ever}"
            raise AssertionError(message) from None
        return found

    async def follow(self) -> None:
        """Stay connected, whichever daemon there is, until cancelled."""
        await self._link.run(self._heard, self._lost)

    def _lost(self) -> None:
        self._is_live = False
        self.wake()

    def _heard(self, line: Line) -> None:
        chat = self._chats[HERE]
        match line["type"]:
            case "snapshot":
                chat.items.clear()
            case "live":
                self._is_live = True
            case "item":
                chat.items[str(line["id"])] = line
                chat.said.append(str(line["text"]))
            case "gone":
                chat.items.pop(str(line["id"]), None)
            case _:
                pass
        self.wake()


def on_terminal(*, channel: Mapping[str, object]) -> Open:
    """Return what opens it, with these keys of the channel's configuration."""
    return on_local("terminal", _Terminal, channel)


def on_local(name: str, client: Callable[[Path], Client], channel: Mapping[str, object]) -> Open:
    """Return what opens a channel of this machine.

    Args:
        name: The channel's.
        client: Makes what a person writes with, of the data directory.
        channel: Keys of the channel's configuration.
    """

    @asynccontextmanager
    async def opened(directory: Path, environment: Mapping[str, str]) -> AsyncGenerator[Stage]:
        changed = asyncio.Event()
        async with open_harness(directory, ModelServer(), changed.set) as harness:
            own = {"channels": {name: {"enabled": True, **channel}}}
            daemon = harness.daemon(own, environment=environment, command=COMMAND)
            here = _Opened(model=harness.model, bench=harness.bench, daemon=daemon)
            stage = OnLocal(here, directory, changed, client(directory / "data"))
            following = harness.group.create_task(stage.follow())
            try:
                yield stage
            finally:
                await daemon.kill()
                following.cancel()

    return opened
