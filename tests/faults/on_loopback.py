"""The test platform as the world of crash runs."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from zeroclaw_test_platform.chats import Chat as PlatformChat
from zeroclaw_test_platform.event import Event
from zeroclaw_test_platform.faults import Refuse

from tests.faults.fork_client import COMMAND, fork
from tests.faults.platform_world import Action, BotMessage, Card, CardCall, OpenWorld, PlatformWorld
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
    def messages(self) -> Sequence[BotMessage]:
        return [BotMessage(text=message.text, draft=message.draft) for message in self.chat.replies]

    @property
    def cards(self) -> Sequence[Card]:
        return [
            Card(
                id=card.id,
                question=card.request.key,
                calls=tuple(
                    CardCall(approval=call.approval, text=call.arguments, outcome=how)
                    for call, how in zip(card.request.calls, card.outcomes, strict=True)
                ),
            )
            for card in self.chat.cards
        ]

    @property
    def ever(self) -> str:
        return self.chat.ever


class OnLoopback:
    """A `PlatformWorld`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.model = world.model
        self.bench = world.bench
        self.daemon = world.daemon
        self.directory = world.directory
        self.detects_repeats = world.platform.settings.idempotent_send
        self.may_leave_drafts = not self.detects_repeats
        settings = world.platform.settings
        self.begins_anew_below_cards = settings.can_edit and settings.multi_message
        self.groups: Sequence[str] = ()
        self.wake = world.platform.wake

    def display_name(self, who: str) -> str:
        return who

    @property
    def listening(self) -> bool:
        return self._world.platform.connected

    def chats(self) -> Sequence[_Chat]:
        return [_Chat(chat) for chat in self._world.platform.backend.chats.values()]

    def chat(self, name: str) -> _Chat:
        return _Chat(self._world.chat(name))

    async def say(
        self, who: str, text: str, *, where: str = "", files: Mapping[str, bytes] | None = None
    ) -> Action:
        return _Done(await self._world.say(who, text, chat=where, files=files))

    async def edit(self, action: Action, text: str) -> Action:
        assert isinstance(action, _Done)
        return _Done(await self._world.platform.edit(action.event, text))

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Action:
        (message,) = [posted for posted in self._world.chat(where).cards if posted.id == card.id]
        return _Done(await self._world.platform.press(who, message, choice, call=call))

    async def redeliver(self, action: Action) -> None:
        assert isinstance(action, _Done)
        await self._world.platform.redeliver(action.event)

    def refuse(self, where: str) -> None:
        self._world.platform.will("send", Refuse(), chat=where, times=None)

    async def until(self, condition: Callable[[], T]) -> T:
        return await self._world.until(condition)


def on_loopback(
    *,
    platform: Mapping[str, object] | None = None,
    channel: Mapping[str, object] | None = None,
    provider: Mapping[str, object] | None = None,
    launch: Launch = fork,
) -> OpenWorld:
    """Return the opener of the platform.

    Args:
        platform: The platform's abilities.
        channel: Keys of the channel's configuration.
        provider: Keys of the provider's, over the usual ones.
        launch: Starts each daemon.
    """

    @asynccontextmanager
    async def open_platform(
        directory: Path, environment: Mapping[str, str]
    ) -> AsyncGenerator[PlatformWorld]:
        async with open_world(
            directory,
            platform=platform,
            environment=environment,
            start=False,
            command=COMMAND,
            launch=launch,
            channels={"loopback": dict(channel or {})},
            provider=dict(provider or {}),
        ) as world:
            yield OnLoopback(world)

    return open_platform
