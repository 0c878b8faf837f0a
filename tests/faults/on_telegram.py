"""Telegram as the world of crash runs: its emulator, read as people see it."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from channels.telegram.emulator import Actor, Message, Refuse
from channels.telegram.emulator import Chat as TelegramChat
from channels.telegram.emulator import UserAction as Update
from channels.telegram.emulator.chats import buttons_of
from tests.faults.fork_client import COMMAND, fork
from tests.faults.ledger import Ledger
from tests.faults.platform_world import (
    Action,
    BotMessage,
    Card,
    OpenWorld,
    PlatformWorld,
    read_card,
)
from tests.journeys.daemon_process import PATIENCE_S
from tests.journeys.telegram.bot import Bot, bot
from zeroclaw import Choice

T = TypeVar("T")

TEAM = "team"
"""A supergroup with Ann and Bob in it."""
FAR_FROM_PRIVATE_IDS = 1_000_000
"""So that no message of the group has the id of another one."""
_CODES: Mapping[Choice, str] = {"once": "o", "deny": "d", "deny_with_reason": "r"}
_BUTTON = re.compile(r"[a-z]:([\w-]+)")
_CALL = re.compile(r"^\d+\. ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Done:
    update: Update

    @property
    def confirmed(self) -> bool:
        return self.update.update.confirmed

    @property
    def message(self) -> str:
        return str(self.update.sent.id)

    @property
    def text(self) -> str:
        return self.update.sent.text


def _approvals(message: Message) -> list[str]:
    """Return the approvals of a message's first buttons, each once; none if it is no card."""
    matches = [_BUTTON.fullmatch(button.data) for button in buttons_of(message.versions[0].markup)]
    return list(dict.fromkeys(button[1] for button in matches if button is not None))


def _is_aside(message: Message) -> bool:
    """Whether a message asks for a reason or confirms one; either may be lost."""
    return message.asks_for_reply or message.text.startswith("denied: ")


def _card(message: Message, approvals: Sequence[str]) -> Card:
    """Read a card as a person does."""
    _, *calls = _CALL.split(message.text)
    assert len(calls) == len(approvals), (message.texts, approvals)
    return read_card(str(message.id), approvals, calls)


@dataclass(frozen=True, slots=True)
class _Chat:
    name: str
    chat: TelegramChat
    ledger: Ledger

    @property
    def messages(self) -> Sequence[BotMessage]:
        return [
            BotMessage(text=message.text, draft=not self.ledger.knows_message(str(message.id)))
            for message in self.chat.from_bot
            if not _approvals(message) and not _is_aside(message)
        ]

    @property
    def cards(self) -> Sequence[Card]:
        found = [(message, _approvals(message)) for message in self.chat.from_bot]
        return [_card(message, approvals) for message, approvals in found if approvals]

    @property
    def ever(self) -> str:
        return self.chat.ever


class OnTelegram:
    """A `PlatformWorld`.

    Attributes:
        telegram: The emulator, for faults of Telegram.
    """

    def __init__(self, world: Bot, directory: Path, *, crowded: bool) -> None:
        self._world = world
        self.model = world.model
        self.bench = world.bench
        self.daemon = world.daemon
        self.directory = directory
        self.detects_repeats = not crowded
        self.may_leave_drafts = crowded
        self.begins_anew_below_cards = True
        self.groups = (TEAM,)
        self.telegram = world.telegram
        self.wake = world.telegram.release
        self._people: dict[str, Actor] = {"ann": world.ann, "bob": world.bob, "olga": world.olga}
        team = world.telegram.supergroup("Team", world.ann, world.bob)
        world.telegram.skip_ids(FAR_FROM_PRIVATE_IDS, team)
        chats = {name: actor.chat for name, actor in self._people.items()} | {TEAM: team}
        ledger = Ledger(directory / "data")
        self._chats = {name: _Chat(name, actor, ledger) for name, actor in chats.items()}

    def display_name(self, who: str) -> str:
        return self._people[who].person.first_name

    @property
    def listening(self) -> bool:
        return self.telegram.is_polled

    def chats(self) -> Sequence[_Chat]:
        return [*self._chats.values()]

    def chat(self, name: str) -> _Chat:
        return self._chats[name]

    async def say(
        self, who: str, text: str, *, where: str = "", files: Mapping[str, bytes] | None = None
    ) -> Action:
        person = self._people[who]
        if where:
            username = self.telegram.account.bot.username
            return _Done(person.says(f"@{username} {text}", chat=self._chats[where].chat))
        if not files:
            return _Done(person.says(text))
        ((name, content),) = files.items()  # a message of Telegram's carries one
        return _Done(person.sends("document", content, name=name, caption=text))

    async def edit(self, action: Action, text: str) -> Action:
        assert isinstance(action, _Done)
        message = action.update.sent
        (person,) = [actor for actor in self._people.values() if actor.person is message.sender]
        return _Done(person.edits(message, text))

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Action:
        message = self.telegram.message(self._chats[where].chat, int(card.id))
        data = f"{_CODES[choice]}:{card.calls[call].approval}"
        return _Done(self._people[who].presses(message, data=data))

    def questions(self, who: str) -> Sequence[Message]:
        """Return the messages that ask a person for a reason in their direct chat."""
        return [message for message in self._chats[who].chat.from_bot if message.asks_for_reply]

    async def reply(self, who: str, question: Message, text: str) -> Action:
        """Reply to a message of the bot."""
        return _Done(self._people[who].says(text, reply_to=question))

    async def redeliver(self, action: Action) -> None:
        assert isinstance(action, _Done)
        self.telegram.redeliver(action.update)
        self.telegram.redeliver(action.update, as_new=True)

    def refuse(self, where: str) -> None:
        self.telegram.will("sendMessage", Refuse(), chat=self._chats[where].chat, times=None)

    async def until(self, condition: Callable[[], T]) -> T:
        """Check outside the emulator's code, which must not read files."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                self.daemon.check()
                while not (found := condition()):
                    await self.telegram.next_change().wait()
                    self.daemon.check()
        except TimeoutError:
            message = f"waited {PATIENCE_S:g} s in vain\n{self.telegram.transcript()}"
            raise AssertionError(message) from None
        return found


def on_telegram(*, channel: Mapping[str, object] | None = None, crowded: bool = False) -> OpenWorld:
    """Return the opener of the platform.

    Args:
        channel: Keys of the channel's configuration.
        crowded: Many write at once, also while the daemon is down, so that a message may be beyond
            the reach of a lookup; then an answer may carry the note of a possible repeat.
    """

    @asynccontextmanager
    async def open_world(
        directory: Path, environment: Mapping[str, str]
    ) -> AsyncGenerator[PlatformWorld]:
        async with bot(
            directory,
            environment=environment,
            start=False,
            command=COMMAND,
            launch=fork,
            channel=channel,
        ) as world:
            yield OnTelegram(world, directory, crowded=crowded)

    return open_world
