"""Slack by Socket Mode, without limits of its own: what it refuses is planned."""

import asyncio
import random
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from channels.slack.emulator.server import APP, BOT, Fault, Json, Person, SlackServer, UserAction
from tests.contract.slack_harness import standing
from tests.soak.place import Place, Room, Tables, Trouble

KEPT = 50
FAULTS = (
    Fault(status=429, headers={"Retry-After": "1"}, body={"ok": False, "error": "ratelimited"}),
    Fault(status=502),
    Fault(is_lost=True),
)


@dataclass(eq=False, kw_only=True)
class Writer:
    """A `Line`."""

    on: "OnSlack"
    who: Person
    name: str
    chat: Room
    is_own: bool = True
    may_ask: bool = True

    async def says(self, text: str) -> UserAction:
        # A line that begins with a slash is no message there, but a command of Slack's own.
        message = await (self.who.commands(text[1:]) if text[0] == "/" else self.who.says(text))
        self.on.sent = [*self.on.sent[-KEPT:], message]
        return message

    def look(self) -> None:
        messages = [*self.on.slack.bot_messages.get(self.who.direct, {}).values()]
        self.chat.stand([standing(message, self.on.slack).text for message in messages])


@dataclass(eq=False, kw_only=True)
class OnSlack(Place):
    """A `Place`."""

    chance: random.Random
    name = "slack"
    slack: SlackServer = field(default_factory=SlackServer)
    sent: list[UserAction] = field(default_factory=list[UserAction])
    _pressed: set[str] = field(default_factory=set[str])
    _looked_at: int = -1

    async def open(
        self, stack: AsyncExitStack, group: asyncio.TaskGroup, people: int, directory: Path
    ) -> Tables:
        slack = await stack.enter_async_context(self.slack)
        self._olga = await slack.person()
        own = [await slack.person() for _ in range(people)]
        self._writers = [
            Writer(on=self, who=person, name=f"s{number}", chat=Room(f"slack {number}"))
            for number, person in enumerate(own)
        ]
        self.lines = self._writers
        channel = {
            "allowed_users": [person.id for person in (self._olga, *own)],
            "bot_token": {"env": "SOAK_SLACK_BOT"},
            "app_token": {"env": "SOAK_SLACK_APP"},
            "api_base_url": slack.url,
            "limits": "off",  # published ones bear less than these people write
        }
        return Tables(
            channel=channel,
            secrets={"SOAK_SLACK_BOT": BOT, "SOAK_SLACK_APP": APP},
            people=[person.id for person in own],
            operator=self._olga.id,
        )

    @property
    def is_connected(self) -> bool:
        return self.slack.is_connected

    async def look(self) -> None:
        if len(self.slack.calls) != self._looked_at:
            self._looked_at = len(self.slack.calls)
            for writer in self._writers:
                writer.look()

    async def operate(self) -> None:
        for card in [*self.slack.bot_messages.get(self._olga.direct, {}).values()]:
            for action, approval in _once(card):
                if approval not in self._pressed:
                    self._pressed.add(approval)
                    await self._olga.presses(str(card["ts"]), action, approval)

    def troubles(self) -> Mapping[str, Trouble]:
        return {
            "connections cut": self.slack.drop,
            "connections moved": self.slack.request_reconnect,
            "429, 502 or lost": self._fail,
            "more of that": self._fail,
            "repeats": self._again,
        }

    async def _fail(self) -> None:
        method = self.chance.choice(("chat.postMessage", "chat.update"))
        self.slack.will(method, self.chance.choice(FAULTS))

    async def _again(self) -> None:
        if self.sent:
            await self.chance.choice(self.sent).dispatch()


def _once(card: Json) -> Iterator[tuple[str, str]]:
    """Yield what the buttons carry that approve once: an action, and the call."""
    for block in cast("list[Json]", card["blocks"]):
        if block["type"] == "actions":
            for button in cast("list[Json]", block["elements"]):
                if cast("Json", button["text"])["text"] == "Approve once":
                    yield str(button["action_id"]), str(button["value"])
