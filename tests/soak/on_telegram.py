"""Our own Telegram with its published limits kept: the one place of which every call is known."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from channels.telegram.emulator import (
    Actor,
    BadGateway,
    Chat,
    Emulator,
    Limits,
    Lose,
    Message,
    TooMany,
)
from channels.telegram.emulator.faults import Call, Fault
from channels.telegram.emulator.people import UserAction
from tests.soak import place
from tests.soak.expected import LOOK_BACK, ExpectedAnswer
from tests.soak.histories import history
from tests.soak.place import Place, Tables, Trouble
from zeroclaw.host.clock import SystemClock

IN_A_TEAM = 3
FAULTS: tuple[Fault, ...] = (
    TooMany(retry_after_s=1),
    TooMany(retry_after_s=3),
    BadGateway(),
    BadGateway(carried_out=True),
    Lose(carried_out=False),
    Lose(carried_out=True),
)
AWAY_S = (0.2, 1.5)
SLOW_S = (0.02, 0.2)
MAX_ACTIONS = 200
"""The newest ones, of which some are delivered again."""
_TOLERANCE_S = 0.01
_NAMED = "retry after "


@dataclass(eq=False, kw_only=True)
class Writer:
    """A `Line`."""

    on: "OnTelegram"
    who: Actor
    name: str
    chat: place.Chat
    is_own: bool = True
    may_ask: bool = True

    async def says(self, text: str) -> UserAction:
        chat = self.chat
        assert isinstance(chat, Chat)
        if self.is_own and text.startswith("look") and self.on.chance.random() < 1 / 2:
            action = self.who.sends("document", b"milk", name="a.txt", caption=text)
        else:
            action = self.who.says(text if self.is_own else f"@zero_bot {text}", chat=chat)
        self.on.note(action)
        return action


class OnTelegram(Place):
    """A `Place`; also with a group."""

    name = "telegram"

    def __init__(self, chance: random.Random) -> None:
        """Open nothing yet."""
        self.chance = chance
        self._clock = SystemClock()
        self._telegram = Emulator(clock=self._clock, limits=Limits())
        self._actions: list[UserAction] = []
        self._pressed: set[int] = set()

    async def open(
        self, stack: AsyncExitStack, group: asyncio.TaskGroup, people: int, directory: Path
    ) -> Tables:
        telegram = await stack.enter_async_context(self._telegram)
        self._olga = telegram.person("Olga")
        own = [telegram.person(f"P{number}") for number in range(people)]
        members = [telegram.person(f"T{number}") for number in range(IN_A_TEAM)]
        team = telegram.supergroup("Team", *members)
        self.lines = [
            *(
                Writer(on=self, who=person, name=f"p{number}", chat=person.chat)
                for number, person in enumerate(own)
            ),
            *(
                Writer(on=self, who=person, name=f"t{number}", chat=team, is_own=False)
                for number, person in enumerate(members)
            ),
        ]
        channel = {
            "allowed_users": ["*"],
            "token": {"env": "SOAK_TELEGRAM_TOKEN"},
            "api_base_url": telegram.url,
            "limits": "published",
        }
        return Tables(
            channel=channel,
            secrets={"SOAK_TELEGRAM_TOKEN": telegram.token},
            people=[str(person.id) for person in own],
            operator=str(self._olga.id),
        )

    @property
    def is_connected(self) -> bool:
        return self._telegram.is_polled

    def note(self, action: UserAction) -> None:
        """Remember what a person sent."""
        self._actions = [*self._actions[-MAX_ACTIONS:], action]

    async def look(self) -> None:
        """Chats here always are what stands."""

    async def operate(self) -> None:
        for card in _open_cards(self._olga.chat, self._pressed):
            self._pressed.add(card.id)
            self.note(self._olga.presses(card, "Approve once"))

    # --- what goes wrong ---------------------------------------------------------------------------

    def troubles(self) -> Mapping[str, Trouble]:
        return {
            "cuts": self._cut,
            "outages": self._away,
            "slow spells": self._slow,
            "repeats": self._again,
            "more repeats": self._again,
            "repeats in a batch": self._twice,
        }

    def let_fail(self, befalls: Callable[[str], bool]) -> None:
        for fault in FAULTS:
            name = _name(fault)
            self._telegram.will("", fault, times=None, when=lambda _, name=name: befalls(name))

    async def _cut(self) -> None:
        self._telegram.cut()

    async def _away(self) -> None:
        await self._telegram.down()
        await self._clock.sleep(self.chance.uniform(*AWAY_S))
        await self._telegram.up()

    async def _slow(self) -> None:
        self._telegram.latency_s = self.chance.uniform(*SLOW_S)
        await self._clock.sleep(self.chance.uniform(*AWAY_S))
        self._telegram.latency_s = 0.0

    async def _again(self) -> None:
        if self._actions:
            action, as_new = self.chance.choice(self._actions), self.chance.random() < 1 / 2
            self._telegram.redeliver(action, as_new=as_new)

    async def _twice(self) -> None:
        """Let what waits stand twice in its batch."""
        waiting = self._telegram.account.updates.waiting
        if waiting:
            waiting.insert(0, waiting[0])

    # --- what came of it ---------------------------------------------------------------------------

    def too_early(self, lives: Sequence[float]) -> tuple[int, Sequence[str]]:
        calls = self._telegram.calls
        early = disobeyed(calls, lives)
        exceeding = [repr(call) for call in calls if is_exceeding(call)]
        return self._telegram.exceeded + len(early), [*early[:5], *exceeding[:20]]

    def history(
        self,
        key: str,
        chat: place.Chat,
        action: object,
        *,
        began: float,
        turns: Sequence[tuple[float, str]],
    ) -> list[str]:
        return history(
            self._telegram,
            ExpectedAnswer(key=key, chat=chat, action=action),
            began=began,
            turns=turns,
        )


def _open_cards(chat: Chat, pressed: set[int]) -> list[Message]:
    newest = chat.messages[-LOOK_BACK:]
    return [
        message
        for message in newest
        if message.is_from_bot and message.buttons and message.id not in pressed
    ]


def disobeyed(calls: list[Call], lives: Sequence[float]) -> list[str]:
    """Return calls that came into a chat before a wait was over that a refusal had named.

    A refusal is forgotten with the process that received it, so only calls of one life count.
    """
    found: list[str] = []
    until: dict[int, float] = {}
    starts = iter([*sorted(lives), float("inf")])
    next_start = next(starts)
    for call in calls:
        while call.at >= next_start:
            until.clear()
            next_start = next(starts)
        if call.method not in ("sendMessage", "editMessageText"):
            continue
        if call.at < until.get(call.chat, 0.0) - _TOLERANCE_S:
            found.append(f"{call!r}, {until[call.chat] - call.at:.2f} s too early")
        _, named, seconds = call.refusal.partition(_NAMED)
        if named:
            until[call.chat] = call.at + int(seconds)
    return found


def is_exceeding(call: Call) -> bool:
    """Whether a call was refused because it was one too many, without a planned fault."""
    return call.fault is None and _NAMED in call.refusal


def _name(fault: Fault) -> str:
    match fault:
        case TooMany():
            return "429"
        case BadGateway(carried_out=done) | Lose(carried_out=done):
            what = "502" if isinstance(fault, BadGateway) else "lost"
            return f"{what} after the effect" if done else f"{what} before it"
        case _:
            return type(fault).__name__
