"""The interface of a platform to crash runs, so that every platform plays and checks the same scenarios.

`tests/faults/on_loopback.py`, `tests/faults/on_telegram.py` and their siblings implement it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from tests.emulators.model_server import ModelServer
from tests.journeys.bench import Bench
from tests.journeys.daemon_process import DaemonProcess
from zeroclaw import Choice, Position
from zeroclaw.host.clock import SystemClock
from zeroclaw.inbound.ingress import POSITIONS
from zeroclaw.store import Commit, DurablePoint
from zeroclaw.stores.sqlite import open_store
from zeroclaw.value import Value

T = TypeVar("T")
C = TypeVar("C", bound="Chat")
OUTCOMES = {"✅": "approved", "⛔": "denied", "⌛": "expired", "⏹": "stopped"}
"""The outcome of a call, by the sign on its card."""
_SIGN = re.compile(f"[{''.join(OUTCOMES)}]")


class Action(Protocol):
    """An action of a person."""

    @property
    def confirmed(self) -> bool:
        """The bot has acknowledged it."""
        ...

    @property
    def message(self) -> str:
        """The platform's id of the message that was written, edited or pressed."""
        ...

    @property
    def text(self) -> str:
        """The written text, for the messages of failures."""
        ...


class CardCall(Value):
    """One call on a card.

    Attributes:
        text: Its displayed text, which contains its arguments.
        outcome: Its outcome, empty while it is open.
    """

    approval: str
    text: str
    outcome: str


class Card(Value):
    """A card, as people see it now.

    Attributes:
        id: Of its message, unique within the chat.
        question: Equal for all copies of one card.
    """

    id: str
    question: str
    calls: tuple[CardCall, ...]

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The outcomes of its calls, in order."""
        return tuple(call.outcome for call in self.calls)


def read_card(id_: str, approvals: Sequence[str], calls: Sequence[str]) -> Card:
    """Return a card whose calls are listed one per line, those that ended with a sign."""
    signs = [_SIGN.search(call) for call in calls]
    return Card(
        id=id_,
        question=" ".join(approvals),
        calls=tuple(
            CardCall(
                approval=approval, text=text, outcome="" if sign is None else OUTCOMES[sign[0]]
            )
            for approval, text, sign in zip(approvals, calls, signs, strict=True)
        ),
    )


class BotMessage(Value):
    """A message of the bot that is no card and was not deleted.

    Attributes:
        draft: It is the beginning of an answer.
    """

    text: str
    draft: bool = False


class Chat(Protocol):
    """One chat, as its people see it now."""

    @property
    def name(self) -> str:
        """The name of its person or group."""
        ...

    @property
    def messages(self) -> Sequence[BotMessage]:
        """The bot's messages, without cards and deleted ones."""
        ...

    @property
    def cards(self) -> Sequence[Card]:
        """The cards, in order."""
        ...

    @property
    def ever(self) -> str:
        """All texts that the bot ever showed in this chat, joined."""
        ...


def answers(chat: Chat) -> list[str]:
    """Return the texts of the finished messages of a chat."""
    return [message.text for message in chat.messages if not message.draft]


class PlatformWorld(Protocol):
    """A platform with Ann, Bob and the operator Olga, a model, a tool bench, and a daemon."""

    @property
    def model(self) -> ModelServer:
        """The model."""
        ...

    @property
    def bench(self) -> Bench:
        """The tools."""
        ...

    @property
    def daemon(self) -> DaemonProcess:
        """The daemon."""
        ...

    @property
    def directory(self) -> Path:
        """This test's own directory."""
        ...

    @property
    def detects_repeats(self) -> bool:
        """The bot can find out whether a send that is not on record was carried out."""
        ...

    @property
    def may_leave_drafts(self) -> bool:
        """The beginning of an answer may remain if its send is not on record."""
        ...

    @property
    def begins_anew_below_cards(self) -> bool:
        """The text above a card is a message of its own."""
        ...

    @property
    def groups(self) -> Sequence[str]:
        """The names of chats that contain both Ann and Bob."""
        ...

    def display_name(self, who: str) -> str:
        """Return the name that the bot uses for a person."""
        ...

    @property
    def listening(self) -> bool:
        """The bot takes events right now."""
        ...

    def chats(self) -> Sequence[Chat]:
        """Return every chat."""
        ...

    def chat(self, name: str) -> Chat:
        """Return a chat."""
        ...

    async def say(
        self, who: str, text: str, *, where: str = "", files: Mapping[str, bytes] | None = None
    ) -> Action:
        """Write as a person, in their own chat or in a group."""
        ...

    async def edit(self, action: Action, text: str) -> Action:
        """Edit a message."""
        ...

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Action:
        """Press a button of a card."""
        ...

    async def redeliver(self, action: Action) -> None:
        """Deliver an action to the bot once more."""
        ...

    def refuse(self, where: str) -> None:
        """Let the platform refuse every send to a chat."""
        ...

    async def until(self, condition: Callable[[], T]) -> T:
        """Wait until `holds` returns a true value, checked at each change."""
        ...

    def wake(self) -> None:
        """Check again what `until` waits for, after a change outside the platform."""
        ...


class JourneyWorld(Protocol):
    """A platform with a daemon, as the journeys open it."""

    @property
    def model(self) -> ModelServer: ...
    @property
    def bench(self) -> Bench: ...
    @property
    def daemon(self) -> DaemonProcess: ...


class WithDirectChats(Generic[C]):
    """The part of a `PlatformWorld` that all platforms with only direct chats share."""

    may_leave_drafts = False
    begins_anew_below_cards = True
    groups: Sequence[str] = ()

    def __init__(self, world: JourneyWorld, directory: Path, chats: Mapping[str, C]) -> None:
        self.model = world.model
        self.bench = world.bench
        self.daemon = world.daemon
        self.directory = directory
        self._chats = chats

    def display_name(self, who: str) -> str:
        return who

    def chats(self) -> Sequence[C]:
        return [*self._chats.values()]

    def chat(self, name: str) -> C:
        return self._chats[name]


async def read_up_to(directory: Path, account: str, positions: Iterable[Position]) -> None:
    """Store read positions, as if the bot had read up to them before its first start."""
    store = await open_store(directory / "data", clock=SystemClock())
    writes = tuple(
        POSITIONS.put(f"{account}/{position.scope}", position, place=account)
        for position in positions
    )
    await store.commit(Commit(point=DurablePoint.ADMITTED, conversation=None, writes=writes))
    await store.aclose()


class OpenWorld(Protocol):
    """Opens a platform whose daemon is not started."""

    def __call__(
        self, directory: Path, environment: Mapping[str, str]
    ) -> AbstractAsyncContextManager[PlatformWorld]:
        """Open it in an empty directory; the environment is added to the daemon's usual one."""
        ...
