"""Discord as the world of crash runs, read as people see it.

A bot does not acknowledge messages to Discord, so admissions are read from the store. A press that a
killed bot did not answer fails in the person's app, and the person presses again.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from simcord.backend.models import Message

from channels.discord import cards, decode
from channels.discord.emulator.server import DiscordServer, Fault, Json, Person, plain
from channels.discord.emulator.server import UserAction as Delivery
from tests.contract.discord_harness import standing
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
    read_up_to,
)
from tests.journeys.daemon_process import PATIENCE_S
from tests.journeys.discord.bot import Bot, bot
from zeroclaw import ApprovalId, Choice, Position

T = TypeVar("T")
_CALL = re.compile(r"\n\d+\\\. ")


@dataclass(frozen=True, slots=True)
class _Written:
    """A message, or an edit of one."""

    written: Message
    event: tuple[str, Json]
    text: str
    claim: str
    ledger: Ledger

    @property
    def confirmed(self) -> bool:
        return self.ledger.has_claimed(self.claim)

    @property
    def message(self) -> str:
        return str(self.written.id)


@dataclass(eq=False, slots=True, kw_only=True)
class _Press:
    """A press, repeated in each life of the bot while its button is shown."""

    discord: DiscordServer
    person: Person
    card: Message
    button: str
    deliveries: list[Delivery] = field(default_factory=list[Delivery])
    life: int = 0

    @property
    def confirmed(self) -> bool:
        return any(delivery.answers for delivery in self.deliveries) or not self._is_shown

    @property
    def message(self) -> str:
        return str(self.card.id)

    @property
    def text(self) -> str:
        return self.button

    @property
    def _is_shown(self) -> bool:
        return self.button in _buttons(self.card)

    def again(self) -> None:
        life = self.discord.identifies
        if life > self.life and self.discord.is_connected and self._is_shown:
            self.life = life
            pressed = self.person.presses(self.card.channel_id, self.card.id, self.button)
            self.deliveries.append(pressed)


def _buttons(message: Message) -> list[str]:
    return [str(button["custom_id"]) for row in message.components for button in row["components"]]


def _approvals(message: Message) -> tuple[ApprovalId, ...]:
    """Return the approvals of a message's buttons, each once; none if it is no open card."""
    found = filter(None, map(cards.read, _buttons(message)))
    return tuple(dict.fromkeys(approval for approval, _ in found))


def _card(message: Message, approvals: Sequence[ApprovalId]) -> Card:
    """Read a card as a person does."""
    _, *calls = _CALL.split(message.content)
    return read_card(str(message.id), approvals, calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chat:
    name: str
    channel: int
    discord: DiscordServer
    ledger: Ledger
    cards_by_id: Mapping[int, tuple[ApprovalId, ...]]
    texts: list[str] = field(default_factory=list[str])

    @property
    def messages(self) -> Sequence[BotMessage]:
        return [
            BotMessage(
                text=standing(message).text, draft=not self.ledger.knows_message(str(message.id))
            )
            for message in self.discord.from_bot(self.channel)
            if message.id not in self.cards_by_id
        ]

    @property
    def cards(self) -> Sequence[Card]:
        messages = self.discord.from_bot(self.channel)
        return [
            _card(message, self.cards_by_id[message.id])
            for message in messages
            if message.id in self.cards_by_id
        ]

    @property
    def ever(self) -> str:
        return "\n".join(self.texts)


class OnDiscord(WithDirectChats[_Chat]):
    """A `PlatformWorld`."""

    detects_repeats = True

    def __init__(self, world: Bot, directory: Path) -> None:
        self.discord = world.discord
        self.wake = world.discord.release
        self._people: dict[str, Person] = {"ann": world.ann, "bob": world.bob, "olga": world.olga}
        self._ledger = Ledger(directory / "data")
        self._cards_by_id: dict[int, tuple[ApprovalId, ...]] = {}
        self._presses: list[_Press] = []
        self._newest: tuple[str, Json] = ("", {})
        chats = {
            name: _Chat(
                name=name,
                channel=person.direct,
                discord=world.discord,
                ledger=self._ledger,
                cards_by_id=self._cards_by_id,
            )
            for name, person in self._people.items()
        }
        super().__init__(world, directory, chats)
        world.discord.backend.subscribers.append(self._on_event)

    @property
    def listening(self) -> bool:
        return self.discord.is_connected

    async def say(
        self, who: str, text: str, *, where: str = "", files: Mapping[str, bytes] | None = None
    ) -> Action:
        assert not where
        person = self._people[who]
        if not files:
            return self._written(person.says(person.direct, text))
        ((name, content),) = files.items()
        size = len(content)
        sent = person.sends(person.direct, name, content, claimed_bytes=size, text=text)
        return self._written(sent)

    async def edit(self, action: Action, text: str) -> Action:
        assert isinstance(action, _Written)
        message = action.written
        (person,) = [author for author in self._people.values() if author.id == message.author_id]
        person.edits(message, text)
        return self._written(message, version=f"/{message.edited_timestamp}")

    def _written(self, message: Message, version: str = "") -> _Written:
        what = "edit" if version else "message"
        claim = f"{what}/{message.channel_id}/{message.id}{version}"
        return _Written(
            written=message,
            event=self._newest,
            text=message.content,
            claim=f"{self._account}/{claim}",
            ledger=self._ledger,
        )

    @property
    def _account(self) -> str:
        return f"discord/{self.discord.bot}"

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Action:
        messages = self.discord.from_bot(self._chats[where].channel)
        (message,) = [posted for posted in messages if str(posted.id) == card.id]
        button = cards.data(ApprovalId(card.calls[call].approval), choice)
        person = self._people[who]
        press = _Press(discord=self.discord, person=person, card=message, button=button)
        self._presses.append(press)
        press.again()
        return press

    async def redeliver(self, action: Action) -> None:
        if isinstance(action, _Press):
            action.deliveries[-1].again()
        else:
            assert isinstance(action, _Written)
            self.discord.dispatch(*action.event)

    def refuse(self, where: str) -> None:
        missing = {"message": "Cannot send messages to this user", "code": 50007}
        path = rf"^/channels/{self._chats[where].channel}/messages$"
        fault = Fault(method="POST", path=path, status=403, body=missing, times=10**6)
        self.discord.will(fault)

    async def until(self, condition: Callable[[], T]) -> T:
        """Check outside the emulator's code, which must not read files."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not (found := self._check(condition)):
                    await self.discord.next_change().wait()
        except TimeoutError:
            message = f"waited {PATIENCE_S:g} s in vain\n{self.discord.transcript()}"
            raise AssertionError(message) from None
        return found

    def _check(self, condition: Callable[[], T]) -> T:
        self.daemon.check()
        for press in self._presses:
            press.again()
        return condition()

    async def store_positions(self) -> None:
        """Store positions as if everyone had written before; the bot reads back only known chats."""
        positions = (
            Position(
                scope=f"{decode.DIRECT}{person.id}",
                cursor=decode.cursor(str(person.direct), str(person.direct)),
            )
            for person in self._people.values()
        )
        await read_up_to(self.directory, self._account, positions)

    def _on_event(self, event: str, payload: Mapping[str, object]) -> None:
        if event not in {"MESSAGE_CREATE", "MESSAGE_UPDATE"}:
            return
        self._newest = event, plain(payload)
        channel = int(str(payload["channel_id"]))
        for chat in self._chats.values():
            for message in self.discord.from_bot(channel) if chat.channel == channel else ():
                if str(message.id) == payload["id"]:
                    chat.texts.append(message.content)
                    if event == "MESSAGE_CREATE" and (approvals := _approvals(message)):
                        self._cards_by_id[message.id] = approvals


def on_discord(*, channel: Mapping[str, object] | None = None) -> OpenWorld:
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
            adapted = OnDiscord(world, directory)
            await adapted.store_positions()
            yield adapted

    return open_world
