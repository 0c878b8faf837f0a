"""People who write for as long as the soak lasts, and an operator who answers cards."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from channels.telegram.emulator import Actor, Chat, Message
from channels.telegram.emulator.people import Deed
from tests.journeys.telegram.bot import Bot
from tests.soak.owed import LOOK_BACK, Books, Owed
from zeroclaw.host.clock import SystemClock

T = TypeVar("T")
# Few ask: each takes two calls in the operator's chat, which bears one a second.
KINDS = (*("text",) * 9, *("slow",) * 4, *("look",) * 4, "long", "ask")
MOST_AT_ONCE = 3
PAUSES_S = (0.5, 8.0)
FRESH_EVERY = 30
"""Messages after which somebody begins a new conversation."""
KEPT_DEEDS = 200
"""The newest ones, of which some are delivered again."""


@dataclass(eq=False, kw_only=True)
class Crowd:
    """Everybody.

    Attributes:
        here: Where.
        chance: Decides what they write, and when.
        is_over: Nobody begins anything new once this holds.
        books: What they are owed.
        deeds: The newest things that they did.
    """

    here: Bot
    chance: random.Random
    is_over: Callable[[], bool]
    clock: SystemClock = field(default_factory=SystemClock)
    books: Books = field(default_factory=Books)
    deeds: list[Deed] = field(default_factory=list[Deed])

    async def write(self, who: Actor, name: str, chat: Chat | None = None) -> None:
        """Write one to three messages, wait for the answers, think, and begin again."""
        number = 0
        while not self.is_over():
            owed: list[Owed] = []
            for _ in range(self.chance.randint(1, MOST_AT_ONCE)):
                number += 1
                owed.append(self._say(who, f"{self.chance.choice(KINDS)} {name}.{number:04}", chat))
            await self._until(lambda owed=owed: all(one.is_answered() for one in owed))
            if number % FRESH_EVERY < MOST_AT_ONCE and chat is None:
                who.says("/new")
            await self.clock.sleep(self.chance.uniform(*PAUSES_S))

    def _say(self, who: Actor, key: str, chat: Chat | None) -> Owed:
        place = who.chat if chat is None else chat
        if chat is None and key.startswith("look") and self.chance.random() < 1 / 2:
            deed = who.sends("document", b"milk", name="a.txt", caption=key)
        else:
            deed = who.says(key if chat is None else f"@zero_bot {key}", chat=chat)
        one = Owed(key=key, chat=place, deed=deed)
        self.books.owed.append(one)
        self.deeds = [*self.deeds[-KEPT_DEEDS:], deed]
        return one

    async def operate(self) -> None:
        """Be Olga, who approves every card once."""
        pressed: set[int] = set()
        olga = self.here.olga
        while True:
            cards = await self._until(lambda: _open_cards(olga.chat, pressed))
            for card in cards:
                pressed.add(card.id)
                self.deeds.append(olga.presses(card, "Approve once"))

    async def _until(self, holds: Callable[[], T]) -> T:
        """Wait until something holds, however long that takes."""
        while True:
            changed = self.here.telegram.next_change()
            if found := holds():
                return found
            await changed.wait()


def _open_cards(chat: Chat, pressed: set[int]) -> list[Message]:
    newest = chat.messages[-LOOK_BACK:]
    return [one for one in newest if one.is_from_bot and one.buttons and one.id not in pressed]
