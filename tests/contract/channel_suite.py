"""The parts of the contract suite of channels: an ingress that records, and the platform's side.

To put a channel under the suite, write a `Harness` for its platform's side and add an entry to
`ADAPTERS` in tests/contract/channel_adapters.py. The suite reads the capabilities and proves each:
supported calls work, others raise `NotSupported`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tests.fakes.manual_clock import ManualClock
from zeroclaw import (
    Accepted,
    Address,
    Admission,
    Admit,
    Answered,
    ApprovalId,
    Capabilities,
    Channel,
    ChannelContext,
    Choice,
    Duplicate,
    Envelope,
    Log,
    MessageRef,
    Pressed,
    ZeroclawError,
)
from zeroclaw.value import Value


class Standing(Value):
    """One message of the bot, as people see it.

    Attributes:
        text: All readable text; of a card, every call and its outcome; of a file its caption.
        buttons: Approvals that can still be answered by pressing.
        file: The name and size of a file in bytes; None for other messages.
        receipts: Its receipts, which are not part of its text.
    """

    text: str
    buttons: frozenset[ApprovalId] = frozenset()
    file: tuple[str, int] | None = None
    receipts: tuple[str, ...] = ()


class Harness(Protocol):
    """The platform's side of one direct chat between the bot and one person.

    Attributes:
        context: The context of the next adapter.
    """

    context: ChannelContext

    @property
    def channel(self) -> Channel:
        """The adapter under test, the newest one that was made."""
        ...

    @property
    def clock(self) -> ManualClock:
        """The clock of the platform and of the adapter."""
        ...

    def make(self) -> Channel:
        """Make the adapter."""
        ...

    def door(self, admit: Admit) -> Admit:
        """Return the adapter's `admit`, so that `say` learns whether an event was admitted."""
        ...

    def present(self) -> AbstractAsyncContextManager[None]:
        """Let the person be there while the block runs, with a client where they have one."""
        ...

    def keep_limits(self) -> Callable[[], int]:
        """Let the platform refuse calls that come too often; return a counter of them, if it has one."""
        ...

    async def turn_to(self, name: str) -> None:
        """Act as another person, who is the same whenever named again.

        The first person is `ann`. A local channel has no other.
        """
        ...

    async def gather(self) -> str:
        """Bring all persons so far into one group chat with the bot, if the platform has groups.

        From then on the harness writes and reads there, and its messages address the bot.

        Returns:
            The chat's id in addresses.
        """
        ...

    async def cut(self) -> None:
        """Cut the connection on which the bot receives events; the bot reconnects."""
        ...

    @property
    def address(self) -> Address:
        """The chat, as its envelopes must say."""
        ...

    @property
    def person(self) -> str:
        """The person's id, as `Sender.id` must say."""
        ...

    async def say(self, text: str) -> bool:
        """Write as the person; True once the event is acknowledged, False when the bot asked for a retry."""
        ...

    async def redeliver(self) -> bool:
        """Deliver the newest message of the person again, as the platform does; like `say`."""
        ...

    async def send_file(self, name: str, content: bytes, *, claimed_bytes: int) -> bool:
        """Send a file alone, where there are files, whose size is claimed; like `say`."""
        ...

    async def press(
        self, ref: MessageRef, approval: ApprovalId, choice: Choice, reason: str = ""
    ) -> bool:
        """Press a button of a card, where there are buttons and in whosever chat; like `say`."""
        ...

    def toasts(self) -> Sequence[str]:
        """All notices that only a presser sees, in order, if the platform has such."""
        ...

    async def messages(self) -> tuple[Standing, ...]:
        """The bot's messages that were not deleted, in order, once all sends so far have arrived."""
        ...

    async def sees_typing(self) -> bool:
        """Whether the bot was shown to be at work."""
        ...

    async def tools_seen(self) -> tuple[str, ...]:
        """The displayed states of the newest tools, like `shell running`."""
        ...

    async def sees_preview(self) -> str:
        """The bot's native draft, empty if there is none."""
        ...


class Desk:
    """A stand-in for the ingress: it stores in memory, and fails or waits on demand.

    Attributes:
        arrived: Every envelope, duplicates included.
        stored: The stored ones.
        fault: Raised in place of storing.
        holding: While set, `admit` waits.
    """

    def __init__(self) -> None:
        self.arrived: list[Envelope] = []
        self.stored: list[Envelope] = []
        self.fault: Exception | None = None
        self.came = asyncio.Event()
        self._more = asyncio.Condition()
        self._open = asyncio.Event()
        self._open.set()
        self._seen: set[str] = set()

    def hold(self) -> None:
        """Let `admit` wait."""
        self._open.clear()

    def release(self) -> None:
        """Let `admit` go on."""
        self._open.set()

    async def admit(self, envelope: Envelope) -> Admission:
        self.arrived.append(envelope)
        self.came.set()
        await self._open.wait()
        if self.fault is not None:
            raise self.fault
        if self._seen.intersection(envelope.dedup):
            return Duplicate()
        self._seen.update(envelope.dedup)
        self.stored.append(envelope)
        async with self._more:
            self._more.notify_all()
        return Accepted()

    async def holds(self, number: int) -> None:
        """Wait until so many are stored."""
        async with self._more:
            await self._more.wait_for(lambda: len(self.stored) >= number)

    @property
    def positions(self) -> Mapping[str, str]:
        """The read positions that a new channel gets."""
        found = (position.position for position in self.stored if position.position is not None)
        return {position.scope: position.cursor for position in found}


class Place(Protocol):
    """The platform's side of a direct chat whose bot comes and goes."""

    @property
    def facts(self) -> Sequence[str]:
        """Everything that the adapters have logged."""
        ...

    @property
    def secrets(self) -> Sequence[str]:
        """The secrets that no log line may contain."""
        ...

    def life(
        self, admit: Admit, positions: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Channel]:
        """Make an adapter and let it receive while the block runs."""
        ...

    async def write(self, text: str) -> None:
        """Write as the person, with or without a running bot; does not wait."""
        ...


Losable = Literal["text", "card"]
Placing = Callable[[Path], AbstractAsyncContextManager[Place]]
Platform = Callable[[Path], AbstractAsyncContextManager[Harness]]


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """One channel under the suite.

    Attributes:
        capabilities: The capabilities that it must declare and prove.
        thread: An existing thread of the chat, if the platform has threads.
        typing_thread: The thread in which `typing` shows; empty for the chat itself.
        carries_files: People can send files.
        has_toasts: A presser gets a notice that only they see.
        has_groups: Several people can share a chat with the bot.
        is_local: Its only person is the operator of this machine.
        loses: Lets the next message of this kind arrive without an answer, if the platform has a
            server that takes messages.
        platform: Starts the platform without the adapter, and ends it.
        placed: Starts the platform alone; None if people can't write while the bot is away.
        needs: Requirements of the platform's side, see `REQUIREMENTS` in conftest.py.
    """

    name: str
    capabilities: Capabilities
    platform: Platform
    thread: str = ""
    typing_thread: str = ""
    carries_files: bool = True
    has_toasts: bool = True
    has_groups: bool = True
    is_local: bool = False
    loses: Callable[[Harness, Losable], None] | None = None
    placed: Placing | None = None
    needs: tuple[str, ...] = ()

    @asynccontextmanager
    async def opened(self, admit: Admit, directory: Path) -> AsyncGenerator[Harness]:
        """Start the platform and the adapter, receiving; end both."""
        async with self.platform(directory) as harness:
            channel = harness.make()
            async with receiving(channel, harness.door(admit)), harness.present():
                yield harness


@asynccontextmanager
async def nothing_to_open() -> AsyncGenerator[None]:
    """The person is there as long as the platform is."""
    yield


def noting(facts: list[str]) -> Log:
    """Return a log that keeps each fact as one line."""

    def note(event: str, /, **fields: object) -> None:
        facts.append(f"{event} {fields}")

    return note


def asking_why(admit: Admit) -> Admit:
    """Ask a person who denies with a reason for it, as the runtime does."""

    async def admitted(envelope: Envelope) -> Admission:
        body = envelope.body
        if isinstance(body, Pressed) and body.choice == "deny_with_reason":
            return Answered(text="why is it denied?", reply_wanted=True)
        return await admit(envelope)

    return admitted


def telling(admit: Admit, refused: asyncio.Event) -> Admit:
    """Report each event that was not stored."""

    async def admitted(envelope: Envelope) -> Admission:
        try:
            return await admit(envelope)
        except ZeroclawError:
            refused.set()
            raise

    return admitted


async def first(*waits: Coroutine[object, object, object]) -> None:
    """Wait until one of them has ended, and leave the others."""
    async with asyncio.TaskGroup() as group:
        sides = [group.create_task(wait) for wait in waits]
        await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
        for side in sides:
            side.cancel()


@asynccontextmanager
async def receiving(channel: Channel, admit: Admit) -> AsyncGenerator[None]:
    """Run `receive` while the block runs, from the moment it is ready; then close the channel."""
    ready: list[None] = []
    up = asyncio.Event()

    def is_ready() -> None:
        ready.append(None)
        up.set()

    async def receive() -> None:
        await channel.receive(admit, is_ready)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(receive())
        try:
            await up.wait()
            yield
        finally:
            task.cancel()
    await channel.aclose()
    assert len(ready) == 1, "`ready` is called once"
