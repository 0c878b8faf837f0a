"""A small house for the rooms of delivery that wait: fakes around one account each."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import EPOCH, LoopClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_channel import ScriptedChannel
from zeroclaw.channel import Capabilities, Card, CardCall, Ending, Outcome
from zeroclaw.delivery.account import Account, Markdown, Screen
from zeroclaw.delivery.live import DraftHandle, Live, NewDraft
from zeroclaw.delivery.outbox import Outbox
from zeroclaw.delivery.rows import (
    ApprovalCard,
    DraftRemainder,
    Item,
    TextPost,
    Uncertainty,
    outbox_row,
)
from zeroclaw.envelope import Address, ApprovalId, ConversationId, MessageRef, TurnId
from zeroclaw.errors import RateLimited, RecordUnreadable
from zeroclaw.store import Commit, DurablePoint, Fence, Put, Reads, Row, RowKind, Write
from zeroclaw.value import replace

CALL_TIMEOUT_S = 20.0
TURN = TurnId("01KBA000000000000000000000")
HERE = ConversationId("conversation")
CAPABILITIES = Capabilities(max_length=60, can_edit=True, can_delete=True, idempotent_send=True)
PLAIN_SENDS = replace(CAPABILITIES, idempotent_send=False)
LOOKING = replace(PLAIN_SENDS, can_lookup=True)


@dataclass(kw_only=True)
class HookLog:
    """Hooks that log their calls, and add the writes of a test."""

    sent_refs: list[MessageRef] = field(default_factory=list[MessageRef])
    reasons: list[str] = field(default_factory=list[str])
    add: tuple[Write, ...] = ()
    message: MessageRef | None = None
    damaged: RecordUnreadable | None = None

    async def card_sent(
        self, reads: Reads, item: ApprovalCard, ref: MessageRef
    ) -> tuple[Write, ...]:
        self.sent_refs.append(ref)
        return self.add

    async def card_message(self, item: ApprovalCard) -> MessageRef | None:
        return self.message

    async def send_refused(
        self, reads: Reads, row: Row, item: Item | None, reason: str
    ) -> tuple[Write, ...]:
        self.reasons.append(reason)
        if item is not None and self.damaged is not None:
            raise self.damaged
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
    refusals: list[tuple[str, int]]

    @property
    def channel(self) -> ScriptedChannel:
        return self.channels["chat"]

    async def commit(self, *puts: Put, point: DurablePoint = DurablePoint.FINISHED) -> None:
        """Write rows as a turn would, and hand them over."""
        await commit(self.store, *puts, point=point)
        for put in puts:
            self.outbox.announce(put)

    async def deliver(self, put: Put, left: DraftRemainder | None = None) -> None:
        """Commit a row, hand it over with what its draft left, and wait until it has ended."""
        await commit(self.store, put)
        self.outbox.announce(put, left)
        await self.outbox.ended(put.key)

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


async def unnoted(_reason: str, _times: int) -> None:
    """Note no refusal."""


@asynccontextmanager
async def running(
    *channels: ScriptedChannel,
    store: MemoryStore | None = None,
    calls_at_once: int = 8,
    open_drafts: tuple[MessageRef, ...] = (),
    screen: Screen = as_it_is,
) -> AsyncGenerator[Rig]:
    """One process over a store; leaving it ends all that still waits, like a kill."""
    clock, memory = LoopClock(), store or MemoryStore()
    ids, hooks = CountingIds(), HookLog()
    refusals: list[tuple[str, int]] = []

    async def note_refused(reason: str, times: int) -> None:
        refusals.append((reason, times))

    async def fence_of(conversation: ConversationId) -> Fence:
        return await memory.lease(conversation)

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
                        note_refused=note_refused,
                    )
                    for channel in channels
                }
                outbox = Outbox(
                    store=memory,
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
                    store=memory,
                    group=group,
                    channels={channel.name: channel for channel in channels},
                    accounts=accounts,
                    live=Live(account_of=accounts.get, group=group),
                    outbox=outbox,
                    hooks=hooks,
                    ids=ids,
                    refusals=refusals,
                )
                ready.set_result(rig)
                await done.wait()

        ready: asyncio.Future[Rig] = asyncio.get_running_loop().create_future()
        task = owner.create_task(process(ready))
        try:
            yield await ready
        finally:
            task.cancel()


def draft(
    rig: Rig,
    *,
    address: Address | None = None,
    turn: str = TURN,
    refs: tuple[MessageRef, ...] = (),
    record: Callable[[MessageRef | str], Awaitable[None]] | None = None,
    reply_to: str = "",
) -> DraftHandle:
    """Open a draft, whose messages `record` records."""

    async def recorded(_: MessageRef | str) -> None:
        await asyncio.sleep(0)

    return rig.live.open(
        NewDraft(
            turn=TurnId(turn),
            address=address or rig.channel.address(),
            record=record or recorded,
            refs=refs,
            reply_to=reply_to,
        )
    )


async def never_recorded(message: MessageRef | str) -> None:
    """For a draft none of whose messages is ever confirmed, though one may be looked up."""
    assert isinstance(message, str)


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


# --- what tests commit to the outbox, and how they read the result ----------------------------

LONG = "one " * 14 + "\n\n" + "two " * 14 + "\n\n" + "three"
PARTS = ["one " * 13 + "one", "two " * 13 + "two", "three"]
HOUR_S = 3600.0


def final(
    rig: Rig,
    text: str,
    *,
    refs: tuple[MessageRef, ...] = (),
    chat: str = "c1",
    thread: str | None = None,
    name: str = "chat",
    begun: bool = False,
) -> Put:
    """Return a final; one that is `begun` says that its send begins with its commit."""
    key = rig.ids.ulid()
    address = replace(rig.channels[name].address(chat), thread=thread)
    mark = rig.outbox.mark_if_sent_now(address) if begun else ""
    return outbox_row(
        key,
        TextPost(
            turn=turn_of(key),
            address=address,
            text=text,
            refs=refs,
            uncertainty=Uncertainty(mark=mark),
        ),
        HERE,
        state="sending" if mark else "pending",
    )


def turn_of(key: str) -> TurnId:
    return TurnId(f"turn of {key}")


def note(rig: Rig, text: str, *, quiet: bool = False) -> Put:
    return outbox_row(
        rig.ids.ulid(), TextPost(address=rig.channel.address(), text=text, quiet=quiet)
    )


async def noted(rig: Rig, text: str) -> None:
    """Send a note."""
    put = note(rig, text)
    await rig.commit(put)
    await rig.outbox.ended(put.key)


async def posted(rig: Rig, *texts: str) -> tuple[MessageRef, ...]:
    """Messages that a draft left in the chat."""
    to = rig.channel.address()
    messages = [Markdown(text=text, key=text, draft=True) for text in texts]
    outcomes = [await rig.accounts["chat"].post(to, message) for message in messages]
    rig.channel.calls.clear()
    shown = rig.channel.standing(to)
    assert len(outcomes) == len(shown)
    return tuple(message.ref for message in shown)


def seen(channel: ScriptedChannel, chat: str = "c1") -> list[str]:
    return channel.chat(channel.address(chat))


def delivery_points(rig: Rig) -> list[DurablePoint]:
    return rig.store.points()[1:]
