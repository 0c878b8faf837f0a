"""Under steady traffic the store's size is bounded, and the audit chains still verify."""

import hashlib
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import pytest

from tests.fakes.counting_ids import CountingIds
from tests.fakes.manual_clock import ManualClock
from zeroclaw.config.model import Config, RetentionSettings
from zeroclaw.conversation.inbox import Item, PersonMessage, item_put
from zeroclaw.conversation.turn_row import TurnRow, turn_put
from zeroclaw.delivery.rows import TextPost, outbox_row
from zeroclaw.envelope import ActionId, Address, ConversationId, ItemId, Principal, TurnId
from zeroclaw.gate import audit
from zeroclaw.gate.action import freeze, propose, to_put
from zeroclaw.inbound.anchors import STREAM, Anchors, verify_stream
from zeroclaw.inbound.live_config import LiveConfig
from zeroclaw.message import NO_USAGE, AssistantMessage, UserMessage
from zeroclaw.retention.sweep import Sweep
from zeroclaw.store import Claim, DurablePoint, LogKind, Put, PutBlob, Query, RowKind, Write
from zeroclaw.stores.sqlite import open_store
from zeroclaw.stores.sqlite.store import SqliteStore
from zeroclaw.turn import entries
from zeroclaw.turn.session import (
    ConversationSession,
    Leases,
    Transition,
    open_session,
    read_history,
)
from zeroclaw.turn.states import TurnLimits
from zeroclaw.value import replace

ADA = Principal(id="person:ada", roles=frozenset(), channel="chat", sender="ada", display="Ada")
ADDRESS = Address(channel="chat", account="bot", chat="ada", direct=True)
CONVERSATIONS = (ConversationId("01ONE"), ConversationId("01TWO"))
SETTINGS = RetentionSettings(messages_days=6, approvals_days=4, blobs_days=3, audit_days=8)
TURNS_A_DAY = 5
WARM_UP_DAYS = 20
DAYS = 50
LOG_BYTES = 8 * 2**20
"""The size that the write-ahead log may have besides."""


class HurriedClock(ManualClock):
    """Sleeping advances the time at once."""

    async def sleep(self, seconds: float) -> None:
        self.leap(timedelta(seconds=seconds))


class Traffic:
    """Finished turns, as the product records them."""

    def __init__(self, store: SqliteStore, clock: HurriedClock) -> None:
        self._store = store
        self._clock = clock
        self._ids = CountingIds(clock=clock)
        self._leases = Leases(store)
        self._number = 0

    async def day(self) -> None:
        """A day of turns in each conversation."""
        for conversation in CONVERSATIONS:
            session = await open_session(self._store, self._leases, conversation)
            for _ in range(TURNS_A_DAY):
                await self._turn(session)
                self._clock.leap(timedelta(days=1) / TURNS_A_DAY / len(CONVERSATIONS))

    async def _turn(self, session: ConversationSession) -> None:
        self._number += 1
        now = self._clock.now()
        item = Item(
            id=ItemId(self._ids.ulid()),
            conversation=session.conversation,
            address=ADDRESS,
            principal=ADA,
            content=PersonMessage(text=f"question {self._number} " * 20),
            admitted_at=now,
        )
        turn = TurnId(self._ids.ulid())
        action = propose(
            id=ActionId(self._ids.ulid()),
            conversation=session.conversation,
            principal=ADA,
            turn=turn,
            tool="look",
            arguments={"number": self._number},
            resources=(),
        )
        body = f"output {self._number} ".encode() * 1500
        note = outbox_row(
            self._ids.ulid(), TextPost(address=ADDRESS, text="answer " * 50), session.conversation
        )
        writes: tuple[Write, ...] = (
            Claim(keys=(f"chat/{self._number}",), until=now + timedelta(days=2)),
            item_put(item, "answered"),
            turn_put(TurnRow(turn=turn, item=item, final=note.key)),
            to_put(freeze(action)),
            PutBlob(digest=hashlib.sha256(body).hexdigest(), body=body),
            note,
        )
        opened = entries.TurnOpened(
            turn=turn,
            item=item.id,
            principal=ADA,
            correlation="c",
            user=UserMessage(content="question " * 40),
            limits=TurnLimits(max_rounds=5),
            at=now,
        )
        finished = entries.TurnFinished(
            reason="model_stop",
            usage=NO_USAGE,
            at=now,
            message=AssistantMessage(content="answer " * 50),
        )
        await session.commit(
            Transition(
                point=DurablePoint.FINISHED,
                journal=(opened, finished),
                audited=tuple(
                    audit.Entry(kind=kind, at=now, action=action.id, tool="look")
                    for kind in (audit.Kind.PROPOSED, audit.Kind.EVALUATED, audit.Kind.EXECUTED)
                ),
                writes=writes,
            )
        )
        # Delivered at once; the outbox would do it.
        row = await self._store.get(RowKind.OUTBOX, note.key)
        assert row is not None
        await session.commit(Transition(point=DurablePoint.DELIVERED, writes=(_delivered(note),)))


def _delivered(note: Put) -> Write:
    return replace(note, state="delivered")


@pytest.mark.slow
async def test_the_file_has_a_bound_under_steady_traffic(tmp_path: Path) -> None:
    """Thirty more days of the same traffic need no more room than the first twenty."""
    clock = HurriedClock()
    sizes: list[int] = []
    async with aclosing(await open_store(tmp_path, clock=clock)) as store:
        anchors = Anchors(store, clock)
        retention = Sweep(
            store=store,
            anchors=anchors,
            clock=clock,
            settings=LiveConfig(Config(retention=SETTINGS), ()),
            log=lambda _event, **_fields: None,
        )
        traffic = Traffic(store, clock)
        for _ in range(DAYS):
            await traffic.day()
            await anchors.anchor()
            await retention.sweep()
            sizes.append(await store.used_bytes())
        on_disk = await store.size_bytes()

        assert max(sizes[WARM_UP_DAYS:]) < 1.1 * max(sizes[:WARM_UP_DAYS])
        assert on_disk < 2 * max(sizes) + LOG_BYTES
        assert {*await store.streams(LogKind.AUDIT)} == {*CONVERSATIONS, STREAM}
        for stream in (*CONVERSATIONS, STREAM):
            assert isinstance(await verify_stream(store, stream), audit.Intact)
        for conversation in CONVERSATIONS:
            history = await read_history(store, conversation)
            assert history.turn is None
            turns = len(history.messages) / 2
            assert 5 * TURNS_A_DAY <= turns <= 8 * TURNS_A_DAY
        for kind in (RowKind.INBOX, RowKind.TURN, RowKind.OUTBOX, RowKind.ACTION):
            assert len(await store.select(Query(kind=kind))) <= 8 * TURNS_A_DAY * len(CONVERSATIONS)
