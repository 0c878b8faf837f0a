"""People who write for as long as the soak lasts, and an operator who answers cards."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.soak.expected import Books, ExpectedAnswer
from tests.soak.place import Line, Place
from zeroclaw.host.clock import SystemClock

T = TypeVar("T")
# Few ask: each takes two calls in the operator's chat, which bears one a second on Telegram.
KINDS = (*("text",) * 9, *("slow",) * 4, *("look",) * 4, "long", "ask")
MAX_AT_ONCE = 3
PAUSES_S = (0.5, 8.0)
LOOKS_S = 0.05
FRESH_EVERY = 30
"""Messages after which somebody begins a new conversation."""


@dataclass(eq=False, kw_only=True)
class Crowd:
    """Everyone who writes.

    Attributes:
        places: Where they write.
        operator: Where Olga is; None where no call needs her approval.
        chance: Decides what they write, and when.
        is_over: Once true, no person begins anything new.
        books: The answers that they expect.
    """

    places: Sequence[Place]
    operator: Place | None
    chance: random.Random
    is_over: Callable[[], bool]
    clock: SystemClock = field(default_factory=SystemClock)
    books: Books = field(default_factory=Books)
    _refreshed: asyncio.Event = field(default_factory=asyncio.Event)

    async def look(self) -> None:
        """See what stands, again and again, and be Olga, who approves every card once."""
        while True:
            for place in self.places:
                await place.look()
            if self.operator is not None:
                await self.operator.operate()
            self._refreshed.set()
            self._refreshed = asyncio.Event()
            await self.clock.sleep(LOOKS_S)

    async def write(self, line: Line) -> None:
        """Write one to three messages, wait for the answers, think, and begin again."""
        number = 0
        may_ask = self.operator is not None and line.may_ask
        kinds = KINDS if may_ask else [kind for kind in KINDS if kind != "ask"]
        while not self.is_over():
            expected: list[ExpectedAnswer] = []
            for _ in range(self.chance.randint(1, MAX_AT_ONCE)):
                number += 1
                expected.append(
                    await self._say(line, f"{self.chance.choice(kinds)} {line.name}.{number:04}")
                )
            await self.until(
                lambda expected=expected: all(answer.is_answered() for answer in expected)
            )
            if number % FRESH_EVERY < MAX_AT_ONCE and line.is_own:
                await line.says("/new")
            await self.clock.sleep(self.chance.uniform(*PAUSES_S))

    async def _say(self, line: Line, key: str) -> ExpectedAnswer:
        expected = ExpectedAnswer(key=key, chat=line.chat, action=await line.says(key))
        self.books.expected.append(expected)
        return expected

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait until something holds, however long that takes; looks whenever all places were seen."""
        while not (found := condition()):
            await self._refreshed.wait()
        return found
