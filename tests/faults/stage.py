"""What a scene needs of a platform, so that the same scenes are played and judged on each.

`tests/faults/on_loopback.py`, `tests/faults/on_telegram.py` and those beside them are such stages.
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
HOWS = {"✅": "approved", "⛔": "denied", "⌛": "expired", "⏹": "stopped"}
"""How a call ended, by the sign that a card shows."""
_SIGN = re.compile(f"[{''.join(HOWS)}]")


class Deed(Protocol):
    """Something that a person did."""

    @property
    def confirmed(self) -> bool:
        """The bot said that it was received."""
        ...

    @property
    def message(self) -> str:
        """The platform's id of what was written, edited or pressed."""
        ...

    @property
    def text(self) -> str:
        """What was written, for failures."""
        ...


class Asked(Value):
    """One call on a card.

    Attributes:
        says: What is shown of it; its arguments are in there.
        how: How it ended, empty while it is open.
    """

    approval: str
    says: str
    how: str


class Card(Value):
    """A card, as it stands.

    Attributes:
        id: Of its message, unique within the chat.
        question: Equal for all copies of one card.
    """

    id: str
    question: str
    calls: tuple[Asked, ...]

    @property
    def hows(self) -> tuple[str, ...]:
        """How its calls ended, in order."""
        return tuple(call.how for call in self.calls)


def read_card(id_: str, approvals: Sequence[str], calls: Sequence[str]) -> Card:
    """Return a card whose calls stand one below the other, an ended one with a sign."""
    signs = [_SIGN.search(one) for one in calls]
    return Card(
        id=id_,
        question=" ".join(approvals),
        calls=tuple(
            Asked(approval=approval, says=says, how="" if sign is None else HOWS[sign[0]])
            for approval, says, sign in zip(approvals, calls, signs, strict=True)
        ),
    )


class Shown(Value):
    """A message of the bot that stands and is no card.

    Attributes:
        draft: It says that more will follow.
    """

    text: str
    draft: bool = False


class Chat(Protocol):
    """One chat, as its people see it now."""

    @property
    def name(self) -> str:
        """Whose it is, or what the group is called."""
        ...

    @property
    def shown(self) -> Sequence[Shown]:
        """The bot's messages that stand, cards apart."""
        ...

    @property
    def cards(self) -> Sequence[Card]:
        """The cards, in order."""
        ...

    @property
    def ever(self) -> str:
        """All that the bot ever showed here, in one text."""
        ...


def answers(chat: Chat) -> list[str]:
    """Return what was said in a chat and is finished."""
    return [one.text for one in chat.shown if not one.draft]


class Stage(Protocol):
    """A platform with Ann, Bob and the operator Olga on it, a model, a bench, and a daemon."""

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
        """Of this test alone."""
        ...

    @property
    def tells_repeats(self) -> bool:
        """The bot can find out whether a send whose record is missing was carried out."""
        ...

    @property
    def loses_drafts(self) -> bool:
        """The beginning of an answer whose send is not on record may be left behind."""
        ...

    @property
    def groups(self) -> Sequence[str]:
        """The names of chats in which Ann and Bob both are."""
        ...

    def named(self, who: str) -> str:
        """Return what the bot calls a person."""
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
    ) -> Deed:
        """Write as a person, in their own chat or in a group."""
        ...

    async def edit(self, deed: Deed, text: str) -> Deed:
        """Change what was written."""
        ...

    async def press(self, who: str, where: str, card: Card, choice: Choice, *, call: int) -> Deed:
        """Press a button of a card."""
        ...

    async def again(self, deed: Deed) -> None:
        """Tell the bot once more of what was done."""
        ...

    def refuse(self, where: str) -> None:
        """Let the platform refuse all that is sent to a chat."""
        ...

    async def until(self, holds: Callable[[], T]) -> T:
        """Wait until something holds, looking again at each change."""
        ...

    def wake(self) -> None:
        """Something has changed beside the platform; whoever waits looks again."""
        ...


class Opened(Protocol):
    """A platform with a daemon, as the journeys open it."""

    @property
    def model(self) -> ModelServer: ...
    @property
    def bench(self) -> Bench: ...
    @property
    def daemon(self) -> DaemonProcess: ...


class WithDirectChats(Generic[C]):
    """The part of a `Stage` that is alike where everybody writes in a chat of their own."""

    loses_drafts = False
    groups: Sequence[str] = ()

    def __init__(self, here: Opened, directory: Path, chats: Mapping[str, C]) -> None:
        self.model = here.model
        self.bench = here.bench
        self.daemon = here.daemon
        self.directory = directory
        self._chats = chats

    def named(self, who: str) -> str:
        return who

    def chats(self) -> Sequence[C]:
        return [*self._chats.values()]

    def chat(self, name: str) -> C:
        return self._chats[name]


async def read_up_to(directory: Path, account: str, positions: Iterable[Position]) -> None:
    """Let the bot have read before its first start, up to there."""
    store = await open_store(directory / "data", clock=SystemClock())
    writes = tuple(POSITIONS.put(f"{account}/{one.scope}", one, place=account) for one in positions)
    await store.commit(Commit(point=DurablePoint.ADMITTED, conversation=None, writes=writes))
    await store.aclose()


class Open(Protocol):
    """Opens a stage whose daemon is not started."""

    def __call__(
        self, directory: Path, environment: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Stage]:
        """Open it in an empty directory; the daemon gets the environment beside the usual."""
        ...
