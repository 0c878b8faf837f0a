"""The platform of the tests as a stage for scenes."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from zeroclaw_test_platform.chats import Chat as PlatformChat
from zeroclaw_test_platform.event import Event
from zeroclaw_test_platform.faults import Refuse

from tests.faults.fork_client import COMMAND, fork
from tests.faults.stage import Asked, Card, Deed, Open, Shown, Stage
from tests.journeys.daemon_process import Launch
from tests.journeys.world import World, open_world
from zeroclaw import Choice

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Done:
    event: Event

    @property
    def confirmed(self) -> bool:
        return self.event.confirmed

    @property
    def message(self) -> str:
        return self.event.message.id

    @property
    def text(self) -> str:
        return self.event.message.text


@dataclass(frozen=True, slots=True)
class _Chat:
    chat: PlatformChat

    @property
    def name(self) -> str:
        return self.chat.id

    @property
    def shown(self) -> Sequence[Shown]:
        return [Shown(text=one.text, draft=one.draft) for one in self.chat.replies]

    @property
    def cards(self) -> Sequence[Card]:
        return [
            Card(
                id=one.id,
                question=one.asked.key,
                calls=tuple(
                    Asked(approval=call.approval, says=call.arguments, how=how)
                    for call, how in zip(one.asked.calls, one.hows, strict=True)
                ),
            )
            for one in self.chat.cards
        ]

    @property
    def ever(self) -> str:
        return self.chat.ever


class OnLoopback:
    """A `Stage`."""

    def __init__(self, here: World) -> None:
        self._here = here
        self.model = here.model
        self.bench = here.bench
        self.daemon = here.daemon
        self.directory = here.directory
        self.tells_repeats = here.platform.settings.idempotent_send
        self.loses_drafts = not self.tells_repeats
        self.groups: Sequence[str] = ()
        self.wake = here.platform.wake

    def named(self, who: str) -> str:
        return who

    @property
    def listening(self) -> bool:
        return self._here.platform.connected

    def chats(self) -> Sequence[_Chat]:
        return [_Chat(one) for one in self._here.platform.desk.chats.values()]

    def chat(self, name: str) -> _Chat:
        return _Chat(self._here.chat(name))

    async def say(
        self, who: str, text: str, *, where: str = "", files: Mapping[str, bytes] | None = None
    ) -> Deed:
        return _Done(await self._here.say(who, text, chat=where, files=files))

    async def edit(self, deed: Deed, text: str) -> Deed:
        assert isinstance(deed, _Done)
        return _Done(await self._here.platform.edit(deed.event, text))

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Deed:
        (message,) = [one for one in self._here.chat(where).cards if one.id == card.id]
        return _Done(await self._here.platform.press(who, message, choice, call=call))

    async def again(self, deed: Deed) -> None:
        assert isinstance(deed, _Done)
        await self._here.platform.redeliver(deed.event)

    def refuse(self, where: str) -> None:
        self._here.platform.will("send", Refuse(), chat=where, times=None)

    async def until(self, holds: Callable[[], T]) -> T:
        return await self._here.until(holds)


def on_loopback(
    *,
    platform: Mapping[str, object] | None = None,
    channel: Mapping[str, object] | None = None,
    provider: Mapping[str, object] | None = None,
    launch: Launch = fork,
) -> Open:
    """Return what opens it.

    Args:
        platform: What the platform can do.
        channel: Keys of the channel's configuration.
        provider: Keys of the provider's, over the usual ones.
        launch: How each daemon is started.
    """

    @asynccontextmanager
    async def opened(directory: Path, environment: Mapping[str, str]) -> AsyncGenerator[Stage]:
        async with open_world(
            directory,
            platform=platform,
            environment=environment,
            start=False,
            command=COMMAND,
            launch=launch,
            channels={"loopback": dict(channel or {})},
            provider=dict(provider or {}),
        ) as here:
            yield OnLoopback(here)

    return opened
