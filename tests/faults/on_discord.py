"""Discord as a stage for scenes, read as people see it.

Discord tells nobody that a message was received, so what was admitted is read from the store. A press
that the bot did not live to answer has failed in its person's app, who presses again.
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
from channels.discord.emulator.server import Deed as Told
from channels.discord.emulator.server import DiscordServer, Fault, Json, Person, plain
from tests.contract.discord_harness import standing
from tests.faults.fork_client import COMMAND
from tests.faults.ledger import Ledger
from tests.faults.stage import (
    Card,
    Deed,
    Open,
    Shown,
    Stage,
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
class _Said:
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
    """A press, once more in each life of the bot in which its button stands."""

    discord: DiscordServer
    person: Person
    card: Message
    button: str
    told: list[Told] = field(default_factory=list[Told])
    life: int = 0

    @property
    def confirmed(self) -> bool:
        return any(one.answers for one in self.told) or not self._stands

    @property
    def message(self) -> str:
        return str(self.card.id)

    @property
    def text(self) -> str:
        return self.button

    @property
    def _stands(self) -> bool:
        return self.button in _buttons(self.card)

    def again(self) -> None:
        life = self.discord.identifies
        if life > self.life and self.discord.is_heard and self._stands:
            self.life = life
            pressed = self.person.presses(self.card.channel_id, self.card.id, self.button)
            self.told.append(pressed)


def _buttons(message: Message) -> list[str]:
    return [str(one["custom_id"]) for row in message.components for one in row["components"]]


def _approvals(message: Message) -> tuple[ApprovalId, ...]:
    """Return whose buttons stand on a message, each once; none: no card, or one that has ended."""
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
    asked: Mapping[int, tuple[ApprovalId, ...]]
    said: list[str] = field(default_factory=list[str])

    @property
    def shown(self) -> Sequence[Shown]:
        return [
            Shown(text=standing(one).text, draft=not self.ledger.knows_message(str(one.id)))
            for one in self.discord.from_bot(self.channel)
            if one.id not in self.asked
        ]

    @property
    def cards(self) -> Sequence[Card]:
        here = self.discord.from_bot(self.channel)
        return [_card(one, self.asked[one.id]) for one in here if one.id in self.asked]

    @property
    def ever(self) -> str:
        return "\n".join(self.said)


class OnDiscord(WithDirectChats[_Chat]):
    """A `Stage`."""

    tells_repeats = True

    def __init__(self, here: Bot, directory: Path) -> None:
        self.discord = here.discord
        self.wake = here.discord.release
        self._people: dict[str, Person] = {"ann": here.ann, "bob": here.bob, "olga": here.olga}
        self._ledger = Ledger(directory / "data")
        self._asked: dict[int, tuple[ApprovalId, ...]] = {}
        self._presses: list[_Press] = []
        self._newest: tuple[str, Json] = ("", {})
        chats = {
            name: _Chat(
                name=name,
                channel=one.direct,
                discord=here.discord,
                ledger=self._ledger,
                asked=self._asked,
            )
            for name, one in self._people.items()
        }
        super().__init__(here, directory, chats)
        here.discord.backend.subscribers.append(self._on_event)

    @property
    def listening(self) -> bool:
        return self.discord.is_heard

    async def say(
        self, who: str, text: str, *, where: str = "", files: Mapping[str, bytes] | None = None
    ) -> Deed:
        assert not where
        person = self._people[who]
        if not files:
            return self._said(person.says(person.direct, text))
        ((name, content),) = files.items()
        size = len(content)
        sent = person.sends(person.direct, name, content, said_bytes=size, text=text)
        return self._said(sent)

    async def edit(self, deed: Deed, text: str) -> Deed:
        assert isinstance(deed, _Said)
        message = deed.written
        (person,) = [one for one in self._people.values() if one.id == message.author_id]
        person.edits(message, text)
        return self._said(message, version=f"/{message.edited_timestamp}")

    def _said(self, message: Message, version: str = "") -> _Said:
        what = "edit" if version else "message"
        claim = f"{what}/{message.channel_id}/{message.id}{version}"
        return _Said(
            written=message,
            event=self._newest,
            text=message.content,
            claim=f"{self._account}/{claim}",
            ledger=self._ledger,
        )

    @property
    def _account(self) -> str:
        return f"discord/{self.discord.bot}"

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Deed:
        messages = self.discord.from_bot(self._chats[where].channel)
        (message,) = [one for one in messages if str(one.id) == card.id]
        button = cards.data(ApprovalId(card.calls[call].approval), choice)
        person = self._people[who]
        press = _Press(discord=self.discord, person=person, card=message, button=button)
        self._presses.append(press)
        press.again()
        return press

    async def again(self, deed: Deed) -> None:
        if isinstance(deed, _Press):
            deed.told[-1].again()
        else:
            assert isinstance(deed, _Said)
            self.discord.tell(*deed.event)

    def refuse(self, where: str) -> None:
        missing = {"message": "Cannot send messages to this user", "code": 50007}
        path = rf"^/channels/{self._chats[where].channel}/messages$"
        fault = Fault(method="POST", path=path, status=403, body=missing, times=10**6)
        self.discord.will(fault)

    async def until(self, holds: Callable[[], T]) -> T:
        """Look from here and not from inside the emulator, where nothing may read a file."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not (found := self._looked(holds)):
                    await self.discord.next_change().wait()
        except TimeoutError:
            message = f"waited {PATIENCE_S:g} s in vain\n{self.discord.transcript()}"
            raise AssertionError(message) from None
        return found

    def _looked(self, holds: Callable[[], T]) -> T:
        self.daemon.check()
        for press in self._presses:
            press.again()
        return holds()

    async def known(self) -> None:
        """Let everybody have written before: of a chat that is not known yet nothing is read back."""
        positions = (
            Position(
                scope=f"{decode.DIRECT}{one.id}",
                cursor=decode.cursor(str(one.direct), str(one.direct)),
            )
            for one in self._people.values()
        )
        await read_up_to(self.directory, self._account, positions)

    def _on_event(self, event: str, payload: Mapping[str, object]) -> None:
        if event not in {"MESSAGE_CREATE", "MESSAGE_UPDATE"}:
            return
        self._newest = event, plain(payload)
        channel = int(str(payload["channel_id"]))
        for chat in self._chats.values():
            for one in self.discord.from_bot(channel) if chat.channel == channel else ():
                if str(one.id) == payload["id"]:
                    chat.said.append(one.content)
                    if event == "MESSAGE_CREATE" and (approvals := _approvals(one)):
                        self._asked[one.id] = approvals


def on_discord(*, channel: Mapping[str, object] | None = None) -> Open:
    """Return what opens it.

    Args:
        channel: Keys of the channel's configuration.
    """

    @asynccontextmanager
    async def opened(directory: Path, environment: Mapping[str, str]) -> AsyncGenerator[Stage]:
        async with bot(
            directory, environment=environment, start=False, command=COMMAND, channel=channel
        ) as here:
            stage = OnDiscord(here, directory)
            await stage.known()
            yield stage

    return opened
