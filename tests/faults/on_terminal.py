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
from tests.faults.platform_world import (
    Action,
    BotMessage,
    Card,
    CardCall,
    OpenWorld,
    PlatformWorld,
    WithDirectChats,
)
from tests.journeys.bench import Bench
from tests.journeys.daemon_process import PATIENCE_S, DaemonProcess
from tests.journeys.harness import open_harness
from zeroclaw import Choice
from zeroclaw.cli.chat.connection import Line, Link
from zeroclaw.errors import NeedsOperator
from zeroclaw.host.clock import SystemClock

T = TypeVar("T")
PERSON = "ann"
RETRY_S = 0.05
OnLine = Callable[[Line], None]
OnLost = Callable[[], None]


class Client(Protocol):
    """A person's client, which keeps messages until the daemon has stored them.

    Attributes:
        pending: The messages that are not acknowledged yet, by id, the oldest first.
    """

    pending: dict[str, Line]

    def say(self, text: str, files: Mapping[str, bytes] | None = None) -> str: ...
    def press(self, approval: str, choice: str, card: str) -> str: ...
    def retry(self, key: str, line: Line) -> None: ...
    async def run(self, on_line: OnLine, on_lost: OnLost) -> None: ...


class _Terminal:
    """The client of `zeroclaw chat`, which reconnects to each new daemon."""

    def __init__(self, data: Path) -> None:
        numbers = itertools.count()
        self._link = Link(data, clock=SystemClock(), token=lambda: f"written-{next(numbers)}")
        self.pending = self._link.pending
        self.press = self._link.press

    def say(self, text: str, files: Mapping[str, bytes] | None = None) -> str:
        assert not files, "a terminal sends none"
        return self._link.say(text)

    def retry(self, key: str, line: Line) -> None:
        self.pending[key] = line
        self._link._send(line)  # pyright: ignore[reportPrivateUsage] - written once more at once

    async def run(self, on_line: OnLine, on_lost: OnLost) -> None:
        while True:
            try:
                await self._link.run(on_line, on_lost)
            except* NeedsOperator:
                await SystemClock().sleep(RETRY_S)


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
    texts: list[str] = field(default_factory=list[str])

    @property
    def messages(self) -> Sequence[BotMessage]:
        messages = [item for item in self.items.values() if item["kind"] == "bot"]
        return [BotMessage(text=str(item["text"]), draft=bool(item["draft"])) for item in messages]

    @property
    def cards(self) -> Sequence[Card]:
        return [_card(item) for item in self.items.values() if item["kind"] == "card"]

    @property
    def ever(self) -> str:
        return "\n".join(self.texts)


def _card(item: Line) -> Card:
    calls = cast("list[Line]", cast("Line", item["card"])["calls"])
    card_calls = [
        CardCall(
            approval=str(call["approval"]),
            text=str(call["arguments"]),
            outcome=str(cast("Line", call["ending"] or {}).get("how", "")),
        )
        for call in calls
    ]
    question = " ".join(call.approval for call in card_calls)
    return Card(id=str(item["id"]), question=question, calls=tuple(card_calls))


@dataclass(frozen=True, kw_only=True)
class _LocalJourney:
    model: ModelServer
    bench: Bench
    daemon: DaemonProcess


class OnLocal(WithDirectChats[_Chat]):
    """A `PlatformWorld`."""

    detects_repeats = True
    begins_anew_below_cards = False

    def __init__(
        self, world: _LocalJourney, directory: Path, changed: asyncio.Event, link: Client
    ) -> None:
        self._changed = changed
        self.wake = changed.set
        self._is_live = False
        self._link = link
        super().__init__(world, directory, {PERSON: _Chat(PERSON)})

    @property
    def listening(self) -> bool:
        return self._is_live and self.daemon.is_running

    def display_name(self, who: str) -> str:
        return "operator"

    def chat(self, name: str) -> _Chat:
        return self._chats[PERSON]

    async def say(
        self, who: str, text: str, *, where: str = "", files: Mapping[str, bytes] | None = None
    ) -> Action:
        return self._written(self._link.say(text, files), text)

    async def edit(self, action: Action, text: str) -> Action:
        raise AssertionError("what was written on a terminal stays as it is")

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Action:
        approval = card.calls[call].approval
        return self._written(self._link.press(approval, choice, card.id), approval)

    def _written(self, key: str, text: str) -> Action:
        return _Written(self._link, key, text, self._link.pending[key])

    async def redeliver(self, action: Action) -> None:
        assert isinstance(action, _Written)
        self._link.retry(action.message, action.line)

    def refuse(self, where: str) -> None:
        raise AssertionError("nothing on this machine refuses")

    async def until(self, condition: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not (found := self.daemon.check() or condition()):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            message = f"waited {PATIENCE_S:g} s in vain\n{self._chats[PERSON].ever}"
            raise AssertionError(message) from None
        return found

    async def follow(self) -> None:
        """Stay connected, also to later daemons, until cancelled."""
        await self._link.run(self._on_line, self._on_lost)

    def _on_lost(self) -> None:
        self._is_live = False
        self.wake()

    def _on_line(self, line: Line) -> None:
        chat = self._chats[PERSON]
        match line["type"]:
            case "snapshot":
                chat.items.clear()
            case "live":
                self._is_live = True
            case "item":
                chat.items[str(line["id"])] = line
                chat.texts.append(str(line["text"]))
            case "gone":
                chat.items.pop(str(line["id"]), None)
            case _:
                pass
        self.wake()


def on_terminal(*, channel: Mapping[str, object]) -> OpenWorld:
    """Return the opener of the terminal, with these keys of its configuration."""
    return on_local("terminal", _Terminal, channel)


def on_local(
    name: str, client: Callable[[Path], Client], channel: Mapping[str, object]
) -> OpenWorld:
    """Return the opener of a local channel.

    Args:
        name: The channel's name.
        client: Makes the person's client from the data directory.
        channel: Keys of the channel's configuration.
    """

    @asynccontextmanager
    async def open_world(
        directory: Path, environment: Mapping[str, str]
    ) -> AsyncGenerator[PlatformWorld]:
        changed = asyncio.Event()
        async with open_harness(directory, ModelServer(), changed.set) as harness:
            own = {"channels": {name: {"enabled": True, **channel}}}
            daemon = harness.daemon(own, environment=environment, command=COMMAND)
            world = _LocalJourney(model=harness.model, bench=harness.bench, daemon=daemon)
            world = OnLocal(world, directory, changed, client(directory / "data"))
            following = harness.group.create_task(world.follow())
            try:
                yield world
            finally:
                await daemon.kill()
                following.cancel()

    return open_world
