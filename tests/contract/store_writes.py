"""Short constructors of the writes in the store's contract suite."""

import hashlib
from datetime import timedelta

import pytest

from tests.contract.store_implementations import DURABLE, IMPLEMENTATIONS
from tests.fakes.manual_clock import EPOCH
from zeroclaw.envelope import ConversationId
from zeroclaw.store import (
    Append,
    Claim,
    Commit,
    DurablePoint,
    Expect,
    LogKind,
    Put,
    PutBlob,
    Query,
    RowKind,
    Store,
    Write,
)

HERE = ConversationId("01HERE")
THERE = ConversationId("01THERE")
LATER = EPOCH + timedelta(days=30)

every_store = pytest.mark.parametrize(
    "backend", IMPLEMENTATIONS, ids=lambda implementation: implementation.name
)
durable_store = pytest.mark.parametrize(
    "backend", DURABLE, ids=lambda implementation: implementation.name
)


def chore(*writes: Write) -> Commit:
    """A commit in the daemon's own scope."""
    return Commit(point=DurablePoint.HOUSEKEEPING, writes=writes)


def counter(key: str, body: bytes = b"1") -> Put:
    return Put(kind=RowKind.COUNTER, key=key, body=body)


def at(key: str, version: int) -> Expect:
    """Expect a counter at a version."""
    return Expect(kind=RowKind.COUNTER, key=key, version=version)


def line(body: bytes, *, stream: str = "s", after: int | None = None) -> Append:
    return Append(log=LogKind.AUDIT, stream=stream, body=body, after=after)


def blob(body: bytes) -> PutBlob:
    return PutBlob(digest=hashlib.sha256(body).hexdigest(), body=body)


def claim(*keys: str) -> Claim:
    return Claim(keys=keys, until=LATER)


async def keys(store: Store, kind: RowKind = RowKind.COUNTER) -> list[str]:
    return [row.key for row in await store.select(Query(kind=kind))]
