"""A platform under the soak: who writes there, what people see, and what goes wrong."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

from zeroclaw.value import Value

NEAR = 3
SHOWN_CHARS = 100
Trouble = Callable[[], Awaitable[None]]


class Message(Protocol):
    """One that stands in a chat; those that came later have higher ids."""

    @property
    def id(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def is_from_bot(self) -> bool: ...
    @property
    def deleted(self) -> bool: ...


class Chat(Protocol):
    """A chat, as its people see it now."""

    @property
    def id(self) -> Hashable: ...
    @property
    def messages(self) -> Sequence[Message]: ...
    @property
    def from_bot(self) -> Sequence[Message]: ...


class Seen(Value):
    """A message of the bot's that stands; a `Message`."""

    id: int
    text: str
    is_from_bot: bool = True
    deleted: bool = False


class Room:
    """A chat that is read anew whenever its place is looked at; a `Chat`."""

    def __init__(self, id_: Hashable) -> None:
        """Begin with nothing."""
        self.id = id_
        self.messages: Sequence[Seen] = ()

    @property
    def from_bot(self) -> Sequence[Seen]:
        return self.messages

    def stand(self, texts: Sequence[str]) -> None:
        """Take note of what the bot's messages say, in order."""
        self.messages = [Seen(id=number, text=text) for number, text in enumerate(texts)]


class Line(Protocol):
    """One person in one chat."""

    @property
    def name(self) -> str:
        """Stands in all that they write."""
        ...

    @property
    def chat(self) -> Chat:
        """Where they read."""
        ...

    @property
    def is_own(self) -> bool:
        """This person alone writes there."""
        ...

    @property
    def may_ask(self) -> bool:
        """Their calls are put to the operator of the soak."""
        ...

    async def says(self, text: str) -> object:
        """Write; returns what the place knows it by."""
        ...


class Tables(Value):
    """What a configuration says of a place.

    Attributes:
        channel: The keys of its channel.
        secrets: What is in the daemon's environment.
        people: Ids of those who are known elsewhere too, in order.
        operator: That of Olga, empty where she is not.
    """

    channel: Mapping[str, object]
    secrets: Mapping[str, str]
    people: Sequence[str] = ()
    operator: str = ""


class Place(ABC):
    """One of them.

    Attributes:
        name: Of its channel.
        lines: Who writes there.
    """

    name = ""
    lines: Sequence[Line] = ()

    @abstractmethod
    async def open(
        self, stack: AsyncExitStack, group: asyncio.TaskGroup, people: int, directory: Path
    ) -> Tables:
        """Open it with so many people; what it needs of tasks belongs to the group."""

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """Whether the bot has begun to listen."""

    @abstractmethod
    async def look(self) -> None:
        """See what stands now."""

    async def operate(self) -> None:
        """Be Olga: approve each open request, once."""
        raise NotImplementedError

    def troubles(self) -> Mapping[str, Trouble]:
        """Return what may go wrong here, by its name."""
        return {}

    def let_fail(self, befalls: Callable[[str], bool]) -> None:
        """Let calls fail at random; `befalls` decides by the name of the fault."""
        del befalls

    def too_early(self, lives: Sequence[float]) -> tuple[int, Sequence[str]]:
        """Return how many calls came before they were allowed, and some of them.

        Args:
            lives: When each life of the daemon began.
        """
        del lives
        return 0, ()

    def order(self) -> Callable[[object], int]:
        """Return the function that numbers an action in the order of its platform.

        The same number for all: they stand in the order in which they were written.
        """
        return lambda _deed: 0

    def history(
        self,
        key: str,
        chat: Chat,
        action: object,
        *,
        began: float,
        turns: Sequence[tuple[float, str]],
    ) -> list[str]:
        """Return what was done about a message, line by line."""
        del action, began, turns
        messages = chat.from_bot
        about = [number for number, message in enumerate(messages) if key in message.text]
        near = [
            message
            for at, message in enumerate(messages)
            if any(abs(at - it) <= NEAR for it in about)
        ]
        stand = [f"    stands {message.id:4} {message.text[-SHOWN_CHARS:]!r}" for message in near]
        return [f"  {key} in {chat.id}:", *stand]
