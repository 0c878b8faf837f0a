"""A small house for the rooms of delivery that wait: fakes around one account each."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import EPOCH, LoopClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_channel import ScriptedChannel
from zeroclaw.channel import Capabilities, Card, CardCall, Ending, Outcome
from zeroclaw.delivery.account import Account, Screen
from zeroclaw.delivery.live import Live
from zeroclaw.delivery.outbox import Outbox
from zeroclaw.delivery.rows import ApprovalCard, Item
from zeroclaw.envelope import ApprovalId, ConversationId, MessageRef, TurnId
from zeroclaw.errors import RateLimited
from zeroclaw.store import Commit, DurablePoint, Fence, Put, Row, RowKind, Write
from zeroclaw.value import replace

CALL_TIMEOUT_S = 20.0
TURN = TurnId("turn")
HERE = ConversationId("conversation")
CAPABILITIES = Capabilities(max_length=60, can_edit=True, can_delete=True, idempotent_send=True)
PLAIN_SENDS = replace(CAPABILITIES, idempotent_send=False)
LOOKING = replace(PLAIN_SENDS, can_lookup=True)


@dataclass(kw_only=True)
class HookLog:
    """Hooks that remember what they were asked, and add what a test wants added."""

    asked_refs: list[MessageRef] = field(default_factory=list[MessageRef])
    reasons: list[str] = field(default_factory=list[str])
    add: tuple[Write, ...] = ()
    stands: MessageRef | None = None

    async def asked(self, row: Row, item: ApprovalCard, ref: MessageRef) -> tuple[Write, ...]:
        self.asked_refs.append(ref)
        return self.add

    async def pressed(self, row: Row, item: ApprovalCard) -> MessageRef | None:
        return self.stands

    async def refused(self, row: Row, item: Item, why: str) -> tuple[Write, ...]:
        self.reasons.append(why)
        return self.add


def refused_late(rig: "Rig", retry_after_s: float) -> None:
    """Have each call take a second to arrive, and the first send refused."""

    async def arrive(_: object) -> None:
        await rig.clock.sleep(1)

    rig.channel.before = arrive
    rig.channel.will("send", RateLimited("slow down", retry_after_s=retry_after_s))


@dataclass(kw_only=True)
class Rig:
    """One process."""

    clock: LoopClock
    store: MemoryStore
    group: asyncio.TaskGroup
    channels: dict[str, ScriptedChannel]
    accounts: dict[str, Account]
    live: Live
    outbox: Outbox
    hooks: HookLog
    ids: CountingIds

    @property
    def channel(self) -> ScriptedChannel:
        return self.channels["chat"]

    async def commit(self, *puts: Put, point: DurablePoint = DurablePoint.FINISHED) -> None:
        """Write rows as a turn would, and hand them over."""
        await commit(self.store, *puts, point=point)
        for put in puts:
            self.outbox.announce(put)

    async def row(self, put: Put) -> Row:
        row = await self.store.get(RowKind.OUTBOX, put.key)
        assert row is not None
        return row


async def commit(
    store: MemoryStore, *puts: Put, point: DurablePoint = DurablePoint.FINISHED
) -> None:
    conversation = puts[0].conversation
    fence = None if conversation is None else await store.lease(conversation)
    await store.commit(Commit(point=point, writes=puts, conversation=conversation, fence=fence))


def as_it_is(text: str, *, growing: bool = False) -> str:
    """Mask nothing."""
    return text


@asynccontextmanager
async def running(
    *channels: ScriptedChannel,
    store: MemoryStore | None = None,
    calls_at_once: int = 8,
    open_drafts: tuple[MessageRef, ...] = (),
    screen: Screen = as_it_is,
) -> AsyncGenerator[Rig]:
    """One process over a store; leaving it ends all that still waits, like a kill."""
    clock, kept = LoopClock(), store or MemoryStore()
    ids, hooks = CountingIds(), HookLog()

    async def fence_of(conversation: ConversationId) -> Fence:
        return await kept.lease(conversation)

    async def drafts() -> tuple[MessageRef, ...]:
        return open_drafts

    async with asyncio.TaskGroup() as owner:
        done = asyncio.Event()

        async def process(ready: asyncio.Future[Rig]) -> None:
            async with asyncio.TaskGroup() as group:
                accounts = {
                    channel.name: Account(
                        channel=channel,
                        clock=clock,
                        group=group,
                        call_timeout_s=CALL_TIMEOUT_S,
                        calls_at_once=calls_at_once,
                        screen=screen,
                    )
                    for channel in channels
                }
                outbox = Outbox(
                    store=kept,
                    accounts=accounts,
                    clock=clock,
                    group=group,
                    fence_of=fence_of,
                    hooks=hooks,
                    jitter=lambda: 1.0,
                    drafts=drafts,
                )
                rig = Rig(
                    clock=clock,
                    store=kept,
                    group=group,
                    channels={channel.name: channel for channel in channels},
                    accounts=accounts,
                    live=Live(account_of=accounts.get, group=group),
                    outbox=outbox,
                    hooks=hooks,
                    ids=ids,
                )
                ready.set_result(rig)
                await done.wait()

        ready: asyncio.Future[Rig] = asyncio.get_running_loop().create_future()
        task = owner.create_task(process(ready))
        try:
            yield await ready
        finally:
            task.cancel()


def platform(capabilities: Capabilities = CAPABILITIES, *, name: str = "chat") -> ScriptedChannel:
    return ScriptedChannel(clock=LoopClock(), capabilities=capabilities, name=name)


def card(key: str = "card") -> Card:
    call = CardCall(
        approval=ApprovalId("a1"),
        number=1,
        tool="shell",
        summary="run `ls`",
        arguments="{}",
        why="it runs a program",
        hash8="0123abcd",
    )
    return Card(key=key, asked_by="Ada", calls=(call,), deadline_at=EPOCH + timedelta(hours=1))


def outcome(key: str = "card") -> Outcome:
    ending = Ending(approval=ApprovalId("a1"), how="approved", by="Bob", at=EPOCH)
    return Outcome(card=card(key), endings=(ending,))


class Kill:
    """Ends the process at a commit or a call, once."""

    def __init__(self, store: MemoryStore, at: int) -> None:
        self.dead = asyncio.Event()
        self._left = at
        store.before = store.after = self._step

    def _step(self, _: Commit) -> None:
        self._left -= 1
        if self._left <= 0:
            self.dead.set()
            raise asyncio.CancelledError
