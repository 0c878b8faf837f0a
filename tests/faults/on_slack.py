"""Slack as a stage for scenes, read as people see it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from channels.slack.decode import ACTIONS
from channels.slack.emulator.server import Deed as Told
from channels.slack.emulator.server import Json, Person, SlackServer
from tests.contract.slack_harness import standing
from tests.faults.fork_client import COMMAND
from tests.faults.ledger import Ledger
from tests.faults.stage import Card, Deed, Open, Shown, Stage, WithDirectChats, read_card
from tests.journeys.daemon_process import PATIENCE_S
from tests.journeys.slack.bot import Bot, bot
from zeroclaw import Choice

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Done:
    told: Told

    @property
    def confirmed(self) -> bool:
        return self.told.confirmed.is_set()

    @property
    def message(self) -> str:
        return self.told.ts

    @property
    def text(self) -> str:
        return str(cast("Json", self.told.payload.get("event", {})).get("text", ""))


def _approvals(message: Json) -> list[str]:
    """Return whose buttons stood on a message when it was sent, each once; none: no card."""
    rows = [one for one in cast("list[Json]", message["first"]) if one["type"] == "actions"]
    buttons = [one for row in rows for one in cast("list[Json]", row["elements"])]
    return list(dict.fromkeys(str(one["value"]) for one in buttons))


def _card(message: Json) -> Card:
    """Read a card as a person does: three texts a call, below the line that heads it."""
    approvals = _approvals(message)
    blocks = [one for one in cast("list[Json]", message["blocks"]) if one["type"] == "rich_text"]
    texts = [standing({"blocks": [one]}).text for one in blocks[1:]]
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
        return [*self.slack.standing.get(self.channel, {}).values()]

    @property
    def shown(self) -> Sequence[Shown]:
        return [
            Shown(
                text=standing(one, self.slack).text,
                draft=not self.ledger.knows_message(str(one["ts"])),
            )
            for one in self._messages
            if not _approvals(one)
        ]

    @property
    def cards(self) -> Sequence[Card]:
        return [_card(one) for one in self._messages if _approvals(one)]

    @property
    def ever(self) -> str:
        return "\n".join(self.slack.ever.get(self.channel, []))


class OnSlack(WithDirectChats[_Chat]):
    """A `Stage`."""

    tells_repeats = True

    def __init__(self, here: Bot, directory: Path) -> None:
        self.slack = here.slack
        self.wake = here.slack.wake
        self._people: dict[str, Person] = {"ann": here.ann, "bob": here.bob, "olga": here.olga}
        ledger = Ledger(directory / "data")
        chats = {
            name: _Chat(name, one.direct, here.slack, ledger) for name, one in self._people.items()
        }
        super().__init__(here, directory, chats)

    @property
    def listening(self) -> bool:
        return self.slack.listening

    async def say(
        self, who: str, text: str, *, where: str = "", files: Mapping[str, bytes] | None = None
    ) -> Deed:
        assert not where
        person = self._people[who]
        if not files:
            return _Done(await person.says(text))
        ((name, content),) = files.items()
        return _Done(await person.sends(name, content, said_bytes=len(content), text=text))

    async def edit(self, deed: Deed, text: str) -> Deed:
        assert isinstance(deed, _Done)
        user = cast("Json", deed.told.payload["event"])["user"]
        (person,) = [one for one in self._people.values() if one.id == user]
        return _Done(await person.edits(deed.told, text))

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Deed:
        asked, place = card.calls[call], self._chats[where].channel
        action = f"{ACTIONS[choice]}:{call + 1}"
        told = await self._people[who].presses(card.id, action, asked.approval, channel=place)
        return _Done(told)

    async def again(self, deed: Deed) -> None:
        assert isinstance(deed, _Done)
        await deed.told.tell()

    def refuse(self, where: str) -> None:
        self.slack.refused.add(self._chats[where].channel)

    async def until(self, holds: Callable[[], T]) -> T:
        """Look from here and not from inside the emulator, where nothing may read a file."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not (found := self.daemon.check() or holds()):
                    await self.slack.next_change().wait()
        except TimeoutError:
            message = f"waited in vain\n{self.slack.calls}\n{self.slack.standing}"
            raise AssertionError(message) from None
        return found


def on_slack(*, channel: Mapping[str, object] | None = None) -> Open:
    """Return what opens it.

    Args:
        channel: Keys of the channel's configuration.
    """

    @asynccontextmanager
    async def opened(directory: Path, environment: Mapping[str, str]) -> AsyncGenerator[Stage]:
        async with bot(
            directory, environment=environment, start=False, command=COMMAND, channel=channel
        ) as here:
            yield OnSlack(here, directory)

    return opened
