"""Slack as a stage for scenes, read as people see it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from channels.slack.decode import ACTIONS
from channels.slack.emulator.server import Json, Person, SlackServer
from channels.slack.emulator.server import UserAction as Delivery
from tests.contract.slack_harness import standing
from tests.faults.fork_client import COMMAND
from tests.faults.ledger import Ledger
from tests.faults.platform_world import (
    Action,
    BotMessage,
    Card,
    OpenWorld,
    PlatformWorld,
    WithDirectChats,
    read_card,
)
from tests.journeys.daemon_process import PATIENCE_S
from tests.journeys.slack.bot import Bot, bot
from zeroclaw import Choice

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Done:
    delivery: Delivery

    @property
    def confirmed(self) -> bool:
        return self.delivery.confirmed.is_set()

    @property
    def message(self) -> str:
        return self.delivery.ts

    @property
    def text(self) -> str:
        return str(cast("Json", self.delivery.payload.get("event", {})).get("text", ""))


def _approvals(message: Json) -> list[str]:
    """Return the approvals of a message's first buttons, each once; none if it is no card."""
    rows = [
        element for element in cast("list[Json]", message["first"]) if element["type"] == "actions"
    ]
    buttons = [element for row in rows for element in cast("list[Json]", row["elements"])]
    return list(dict.fromkeys(str(element["value"]) for element in buttons))


def _card(message: Json) -> Card:
    """Read a card as a person does: three texts per call, below a heading."""
    approvals = _approvals(message)
    blocks = [
        block for block in cast("list[Json]", message["blocks"]) if block["type"] == "rich_text"
    ]
    texts = [standing({"blocks": [block]}).text for block in blocks[1:]]
    calls = ["\n".join(texts[at : at + 3]) for at in range(0, len(texts), 3)]
    return read_card(str(message["ts"]), approvals, calls)


@dataclass(frozen=True, slots=True)
class _Chat:
    name: str
    channel: str
    slack: SlackServer
    ledger: Ledger

    @property
    def _messages(self) -> list[Json]:
        return [*self.slack.bot_messages.get(self.channel, {}).values()]

    @property
    def messages(self) -> Sequence[BotMessage]:
        return [
            BotMessage(
                text=standing(message, self.slack).text,
                draft=not self.ledger.knows_message(str(message["ts"])),
            )
            for message in self._messages
            if not _approvals(message)
        ]

    @property
    def cards(self) -> Sequence[Card]:
        return [_card(message) for message in self._messages if _approvals(message)]

    @property
    def ever(self) -> str:
        return "\n".join(self.slack.history.get(self.channel, []))


class OnSlack(WithDirectChats[_Chat]):
    """A `PlatformWorld`."""

    detects_repeats = True

    def __init__(self, world: Bot, directory: Path) -> None:
        self.slack = world.slack
        self.wake = world.slack.wake
        self._people: dict[str, Person] = {"ann": world.ann, "bob": world.bob, "olga": world.olga}
        ledger = Ledger(directory / "data")
        chats = {
            name: _Chat(name, person.direct, world.slack, ledger)
            for name, person in self._people.items()
        }
        super().__init__(world, directory, chats)

    @property
    def listening(self) -> bool:
        return self.slack.is_connected

    async def say(
        self, who: str, text: str, *, where: str = "", files: Mapping[str, bytes] | None = None
    ) -> Action:
        assert not where
        person = self._people[who]
        if not files:
            return _Done(await person.says(text))
        ((name, content),) = files.items()
        return _Done(await person.sends(name, content, claimed_bytes=len(content), text=text))

    async def edit(self, action: Action, text: str) -> Action:
        assert isinstance(action, _Done)
        user = cast("Json", action.delivery.payload["event"])["user"]
        (person,) = [author for author in self._people.values() if author.id == user]
        return _Done(await person.edits(action.delivery, text))

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Action:
        card_call, place = card.calls[call], self._chats[where].channel
        action = f"{ACTIONS[choice]}:{call + 1}"
        delivery = await self._people[who].presses(
            card.id, action, card_call.approval, channel=place
        )
        return _Done(delivery)

    async def redeliver(self, action: Action) -> None:
        assert isinstance(action, _Done)
        await action.delivery.dispatch()

    def refuse(self, where: str) -> None:
        self.slack.closed_chats.add(self._chats[where].channel)

    async def until(self, condition: Callable[[], T]) -> T:
        """Check outside the emulator's code, which must not read files."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not (found := self.daemon.check() or condition()):
                    await self.slack.next_change().wait()
        except TimeoutError:
            message = f"waited in vain\n{self.slack.calls}\n{self.slack.bot_messages}"
            raise AssertionError(message) from None
        return found


def on_slack(*, channel: Mapping[str, object] | None = None) -> OpenWorld:
    """Return the opener of the platform.

    Args:
        channel: Keys of the channel's configuration.
    """

    @asynccontextmanager
    async def open_world(
        directory: Path, environment: Mapping[str, str]
    ) -> AsyncGenerator[PlatformWorld]:
        async with bot(
            directory, environment=environment, start=False, command=COMMAND, channel=channel
        ) as world:
            yield OnSlack(world, directory)

    return open_world
