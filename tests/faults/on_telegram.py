"""Telegram as a stage for scenes: its emulator, read as people see it."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from channels.telegram.emulator import Actor, Message, Refuse
from channels.telegram.emulator import Chat as TelegramChat
from channels.telegram.emulator import Deed as Update
from channels.telegram.emulator.chats import buttons_of
from tests.faults.fork_client import COMMAND, fork
from tests.faults.ledger import Ledger
from tests.faults.stage import Card, Deed, Open, Shown, Stage, read_card
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
    deed: Update

    @property
    def confirmed(self) -> bool:
        return self.deed.update.confirmed

    @property
    def message(self) -> str:
        return str(self.deed.wrote.id)

    @property
    def text(self) -> str:
        return self.deed.wrote.text


def _approvals(message: Message) -> list[str]:
    """Return whose buttons stood under a message when it was sent, each once; none: no card."""
    found = [_BUTTON.fullmatch(one.data) for one in buttons_of(message.versions[0].markup)]
    return list(dict.fromkeys(one[1] for one in found if one is not None))


def _is_aside(message: Message) -> bool:
    """Whether a message asks for a reason, or says that one was taken; either may be lost."""
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
    def shown(self) -> Sequence[Shown]:
        return [
            Shown(text=one.text, draft=not self.ledger.knows_message(str(one.id)))
            for one in self.chat.from_bot
            if not _approvals(one) and not _is_aside(one)
        ]

    @property
    def cards(self) -> Sequence[Card]:
        found = [(one, _approvals(one)) for one in self.chat.from_bot]
        return [_card(one, approvals) for one, approvals in found if approvals]

    @property
    def ever(self) -> str:
        return self.chat.ever


class OnTelegram:
    """A `Stage`.

    Attributes:
        telegram: The emulator, for faults of its own.
    """

    def __init__(self, here: Bot, directory: Path, *, crowded: bool) -> None:
        self._here = here
        self.model = here.model
        self.bench = here.bench
        self.daemon = here.daemon
        self.directory = directory
        self.tells_repeats = not crowded
        self.loses_drafts = crowded
        self.groups = (TEAM,)
        self.telegram = here.telegram
        self.wake = here.telegram.release
        self._people: dict[str, Actor] = {"ann": here.ann, "bob": here.bob, "olga": here.olga}
        team = here.telegram.supergroup("Team", here.ann, here.bob)
        here.telegram.skip_ids(FAR_FROM_PRIVATE_IDS, team)
        chats = {name: one.chat for name, one in self._people.items()} | {TEAM: team}
        ledger = Ledger(directory / "data")
        self._chats = {name: _Chat(name, one, ledger) for name, one in chats.items()}

    def named(self, who: str) -> str:
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
    ) -> Deed:
        person = self._people[who]
        if where:
            username = self.telegram.account.me.username
            return _Done(person.says(f"@{username} {text}", chat=self._chats[where].chat))
        if not files:
            return _Done(person.says(text))
        ((name, content),) = files.items()  # a message of Telegram's carries one
        return _Done(person.sends("document", content, name=name, caption=text))

    async def edit(self, deed: Deed, text: str) -> Deed:
        assert isinstance(deed, _Done)
        message = deed.deed.wrote
        (person,) = [one for one in self._people.values() if one.person is message.sender]
        return _Done(person.edits(message, text))

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Deed:
        message = self.telegram.message(self._chats[where].chat, int(card.id))
        data = f"{_CODES[choice]}:{card.calls[call].approval}"
        return _Done(self._people[who].presses(message, data=data))

    def questions(self, who: str) -> Sequence[Message]:
        """Return what asks somebody for a reason in their own chat."""
        return [one for one in self._chats[who].chat.from_bot if one.asks_for_reply]

    async def reply(self, who: str, asked: Message, text: str) -> Deed:
        """Reply to a message of the bot."""
        return _Done(self._people[who].says(text, reply_to=asked))

    async def again(self, deed: Deed) -> None:
        assert isinstance(deed, _Done)
        self.telegram.redeliver(deed.deed)
        self.telegram.redeliver(deed.deed, as_new=True)

    def refuse(self, where: str) -> None:
        self.telegram.will("sendMessage", Refuse(), chat=self._chats[where].chat, times=None)

    async def until(self, holds: Callable[[], T]) -> T:
        """Look from here and not from inside the emulator, where nothing may read a file."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                self.daemon.check()
                while not (found := holds()):
                    await self.telegram.next_change().wait()
                    self.daemon.check()
        except TimeoutError:
            message = f"waited {PATIENCE_S:g} s in vain\n{self.telegram.transcript()}"
            raise AssertionError(message) from None
        return found


def on_telegram(*, channel: Mapping[str, object] | None = None, crowded: bool = False) -> Open:
    """Return what opens it.

    Args:
        channel: Keys of the channel's configuration.
        crowded: Many write at once, also while the daemon is dead, so that a message may stand
            further on than is looked; then an answer may say that it may be a repeat.
    """

    @asynccontextmanager
    async def opened(directory: Path, environment: Mapping[str, str]) -> AsyncGenerator[Stage]:
        async with bot(
            directory,
            environment=environment,
            start=False,
            command=COMMAND,
            launch=fork,
            channel=channel,
        ) as here:
            yield OnTelegram(here, directory, crowded=crowded)

    return opened
