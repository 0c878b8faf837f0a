"""Discord, which holds the bot to its limits and refuses what is planned beside."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from simcord.backend.models import Message

from channels.discord.emulator.server import DiscordServer, Fault, Person, UserAction
from tests.contract.discord_harness import standing
from tests.soak.place import Place, Room, Tables, Trouble
from zeroclaw.host.clock import SystemClock

KEPT = 50
FAILED_S = 3.0
"""How long Discord waits for the answer to a press."""
SENDS = r"^/channels/\d+/messages$"
EDITS = r"^/channels/\d+/messages/\d+$"
TOO_MANY = {"message": "You are being rate limited.", "retry_after": 1.0, "global": False}


@dataclass(eq=False, kw_only=True)
class Writer:
    """A `Line`."""

    on: "OnDiscord"
    who: Person
    name: str
    chat: Room
    is_own: bool = True
    may_ask: bool = True

    async def says(self, text: str) -> Message:
        message = self.who.says(self.who.direct, text)
        self.on.sent = [*self.on.sent[-KEPT:], message]
        return message

    def look(self) -> None:
        messages = self.on.discord.from_bot(self.who.direct)
        self.chat.stand([standing(message).text for message in messages])


@dataclass(eq=False, kw_only=True)
class OnDiscord(Place):
    """A `Place`."""

    chance: random.Random
    name = "discord"
    discord: DiscordServer = field(default_factory=lambda: DiscordServer(clock=SystemClock()))
    sent: list[Message] = field(default_factory=list[Message])
    _clock: SystemClock = field(default_factory=SystemClock)
    _pressed: dict[str, tuple[float, UserAction]] = field(
        default_factory=dict[str, tuple[float, UserAction]]
    )
    _looked_at: int = -1

    async def open(
        self, stack: AsyncExitStack, group: asyncio.TaskGroup, people: int, directory: Path
    ) -> Tables:
        discord = await stack.enter_async_context(self.discord)
        discord.is_paced = True
        self._olga = discord.person("olga")
        own = [discord.person(f"d{number}") for number in range(people)]
        self._writers = [
            Writer(on=self, who=person, name=f"d{number}", chat=Room(f"discord {number}"))
            for number, person in enumerate(own)
        ]
        self.lines = self._writers
        channel = {
            "allowed_users": [str(person.id) for person in (self._olga, *own)],
            "token": {"env": "SOAK_DISCORD_TOKEN"},
            "api_base_url": discord.url,
        }
        return Tables(
            channel=channel,
            secrets={"SOAK_DISCORD_TOKEN": discord.token},
            people=[str(person.id) for person in own],
            operator=str(self._olga.id),
        )

    @property
    def is_connected(self) -> bool:
        return self.discord.is_connected

    async def look(self) -> None:
        if len(self.discord.calls) != self._looked_at:
            self._looked_at = len(self.discord.calls)
            for writer in self._writers:
                writer.look()

    async def operate(self) -> None:
        for card in self.discord.from_bot(self._olga.direct):
            for row in card.components:
                for button in row["components"]:
                    number = str(button["custom_id"])
                    if button["label"] == "Approve once" and self._may_press(number):
                        pressed = self._olga.presses(self._olga.direct, card.id, number)
                        self._pressed[number] = self._clock.monotonic(), pressed

    def _may_press(self, number: str) -> bool:
        """Whether it was not pressed, or in vain: then her app says that it failed."""
        at, pressed = self._pressed.get(number, (0.0, None))
        is_over = self._clock.monotonic() >= at + FAILED_S
        return pressed is None or (not pressed.answers and is_over)

    def troubles(self) -> Mapping[str, Trouble]:
        return {
            "sessions resumed": self.discord.drop,
            "sessions lost": self._forget,
            "429": self._refuse,
            "502 or lost, before or after": self._fail,
            "repeats": self._again,
        }

    def too_early(self, lives: Sequence[float]) -> tuple[int, Sequence[str]]:
        del lives
        return self.discord.buckets.refused, ()

    async def _forget(self) -> None:
        await self.discord.drop(forget=True)

    async def _refuse(self) -> None:
        self._will(status=429, body=TOO_MANY, headers={"Retry-After": "1"})

    async def _fail(self) -> None:
        status, is_done = self.chance.choice((0, 502)), self.chance.random() < 1 / 2
        self._will(status=status, body={"message": "bad gateway"}, carried_out=is_done)

    def _will(self, **more: object) -> None:
        method, path = self.chance.choice((("POST", SENDS), ("PATCH", EDITS)))
        self.discord.will(Fault(method=method, path=path, **more))  # pyright: ignore[reportArgumentType] - of its own fields

    async def _again(self) -> None:
        if self.sent:
            self.discord.dispatch_message(self.chance.choice(self.sent))
