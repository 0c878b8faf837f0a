"""Off-the-record content is read like any other, and never reaches the store behind it."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from tests.fakes.manual_clock import EPOCH, ManualClock
from tests.fakes.memory_store import MemoryStore
from zeroclaw.envelope import ConversationId, off_the_record
from zeroclaw.errors import Conflict, StoreUnusable
from zeroclaw.store import (
    Append,
    Commit,
    Delete,
    DropBlob,
    DurablePoint,
    Expect,
    LogKind,
    Put,
    PutBlob,
    Query,
    RowKind,
    Trim,
    Write,
    scan,
)
from zeroclaw.stores import off_the_record as off_the_record_store
from zeroclaw.stores.off_the_record import OffTheRecord, is_reference
from zeroclaw.stores.sqlite import open_store
from zeroclaw.stores.sqlite.reader import open_read_only

CONVERSATION, OPEN = off_the_record("01A"), ConversationId("01B")
WORDS = b"marmalade"


def chore(*writes: Write, scope: ConversationId | None = None) -> Commit:
    point = DurablePoint.HOUSEKEEPING if scope is None else DurablePoint.ADMITTED
    return Commit(point=point, writes=writes, conversation=scope)


def inbox_row(
    key: str,
    body: bytes = WORDS,
    conversation: ConversationId | None = CONVERSATION,
    *,
    kind: RowKind = RowKind.INBOX,
) -> Put:
    return Put(kind=kind, key=key, body=body, conversation=conversation, state="queued")


def blob(body: bytes) -> PutBlob:
    return PutBlob(digest=hashlib.sha256(body).hexdigest(), body=body)


async def bodies_behind(disk: MemoryStore) -> bytes:
    """Every body that the store behind holds."""
    rows = [row.body for kind in RowKind for row in await disk.select(Query(kind=kind))]
    for stream in await disk.streams(LogKind.JOURNAL):
        rows += [entry.body for entry in await disk.read(LogKind.JOURNAL, stream)]
    return b"\n".join(rows)


async def test_a_row_is_read_as_put_and_its_body_stays_out_of_the_store_behind() -> None:
    """Its key, version, state and conversation are behind it; a newer version replaces it."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    await store.commit(chore(inbox_row("1"), inbox_row("2", b"on record", OPEN)))
    await store.commit(chore(inbox_row("1", WORDS + b" again")))
    row = await store.get(RowKind.INBOX, "1")
    assert row is not None
    assert (row.body, row.version, row.state) == (WORDS + b" again", 2, "queued")
    assert [row.body for row in await store.select(Query(kind=RowKind.INBOX))] == [
        WORDS + b" again",
        b"on record",
    ]
    assert WORDS not in await bodies_behind(disk)
    assert b"on record" in await bodies_behind(disk)
    assert WORDS + b"'" not in str(vars(store)).encode()
    assert await store.get(RowKind.INBOX, "3") is None


async def test_a_refused_commit_keeps_nothing_in_memory() -> None:
    disk = MemoryStore()
    store = OffTheRecord(disk)
    with pytest.raises(Conflict):
        await store.commit(chore(inbox_row("1"), Expect(kind=RowKind.TURN, key="x", version=1)))
    assert WORDS not in str(vars(store)).encode()


async def test_a_commit_that_a_full_disk_does_not_take_keeps_nothing_in_memory() -> None:
    async def fill(_: tuple[Write, ...]) -> None:
        message = "the disk is full"
        raise StoreUnusable(message)

    disk = MemoryStore()
    store = OffTheRecord(disk)
    disk.meanwhile = fill
    with pytest.raises(StoreUnusable):
        await store.commit(chore(inbox_row("1")))
    assert WORDS not in str(vars(store)).encode()


async def test_a_commit_to_a_conversation_being_erased_is_refused_as_usual() -> None:
    """An answer is recorded as delivered while its chat is erased."""
    disk = MemoryStore()
    store = OffTheRecord(disk)

    async def erase_first(_: tuple[Write, ...]) -> None:
        disk.meanwhile = None
        await store.commit(chore(Delete(kind=RowKind.CONVERSATION, key=CONVERSATION)))

    disk.meanwhile = erase_first
    with pytest.raises(Conflict):
        await store.commit(chore(inbox_row("1"), Expect(kind=RowKind.TURN, key="x", version=1)))
    assert WORDS not in str(vars(store)).encode()


async def test_a_row_without_a_conversation_committed_with_it_belongs_to_it() -> None:
    """A notice to operators, which the outbox later moves on without knowing its conversation."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    fence = await store.lease(CONVERSATION)
    note = inbox_row("1", conversation=None, kind=RowKind.OUTBOX)
    await store.commit(
        Commit(point=DurablePoint.FINISHED, writes=(note,), conversation=CONVERSATION, fence=fence)
    )
    await store.commit(chore(inbox_row("1", WORDS + b" sent", None, kind=RowKind.OUTBOX)))
    reply = inbox_row("2", conversation=OPEN, kind=RowKind.OUTBOX)
    await store.commit(chore(reply, scope=CONVERSATION))
    row = await store.get(RowKind.OUTBOX, "1")
    assert row is not None
    assert (row.body, row.conversation) == (WORDS + b" sent", None)
    assert WORDS not in await bodies_behind(disk)
    assert len(await store.select(Query(kind=RowKind.OUTBOX, conversation=CONVERSATION))) == 2


async def test_a_row_that_replaces_another_stays_off_the_record() -> None:
    """A notice to operators becomes a message to one of them, in a commit without a
    conversation."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    await store.commit(
        chore(inbox_row("1", conversation=None, kind=RowKind.NOTICE), scope=CONVERSATION)
    )
    delete = Delete(kind=RowKind.NOTICE, key="1")
    await store.commit(chore(inbox_row("2", conversation=None, kind=RowKind.OUTBOX), delete))
    assert [row.body for row in await store.select(Query(kind=RowKind.OUTBOX))] == [WORDS]
    assert WORDS not in await bodies_behind(disk)
    await store.commit(chore(inbox_row("3", conversation=None, kind=RowKind.OUTBOX)))
    assert WORDS in await bodies_behind(disk)


async def test_its_journal_is_readable_and_its_audit_is_stored() -> None:
    """The audit holds no content, and outlives the process."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    journal = Append(log=LogKind.JOURNAL, stream=CONVERSATION, body=WORDS, after=0)
    audit = Append(log=LogKind.AUDIT, stream=CONVERSATION, body=b"proposed")
    await store.commit(chore(journal, audit))
    (entry,) = await store.read(LogKind.JOURNAL, CONVERSATION)
    assert (entry.body, entry.sequence) == (WORDS, 1)
    assert await store.last(LogKind.JOURNAL, CONVERSATION) == entry
    assert await store.last(LogKind.JOURNAL, "none") is None
    assert [entry.body for entry in await disk.read(LogKind.AUDIT, CONVERSATION)] == [b"proposed"]
    assert WORDS not in await bodies_behind(disk)
    await store.commit(chore(Trim(log=LogKind.JOURNAL, stream=CONVERSATION, before=2)))
    assert await store.read(LogKind.JOURNAL, CONVERSATION) == ()


async def test_files_stay_in_memory_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it the oldest are dropped; a repeat counts as new, and the newest stays at any
    size."""
    monkeypatch.setattr(off_the_record_store, "MAX_BLOB_BYTES", 110)
    disk = MemoryStore(clock=ManualClock())
    store = OffTheRecord(disk)
    first, second, third = (blob(bytes([n]) * 50) for n in range(3))
    recorded = blob(WORDS)
    await store.commit(chore(recorded))
    for each in (first, second, first, third, recorded):
        await store.commit(chore(each, scope=CONVERSATION))
    assert [
        await store.blob(each.digest) == each.body for each in (first, second, third, recorded)
    ] == [True, False, True, True]
    assert await disk.blobs(put_before=EPOCH.replace(year=9999)) == (recorded.digest,)
    await store.commit(chore(DropBlob(digest=third.digest)))
    assert await store.blob(third.digest) is None
    large = blob(bytes(200))
    await store.commit(chore(large, scope=CONVERSATION))
    assert await store.blob(large.digest) == large.body


async def test_a_result_is_stored_under_an_alias_and_not_its_digest() -> None:
    """Its key is a digest of its content; a reader who guesses the content could look for it."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    key = f"{CONVERSATION}/0123456789abcdef"
    await store.commit(
        chore(inbox_row(key, kind=RowKind.RESULT), inbox_row("01B/1", kind=RowKind.RESULT))
    )
    await store.commit(chore(Expect(kind=RowKind.RESULT, key=key, version=1)))
    row = await store.get(RowKind.RESULT, key)
    assert row is not None
    assert row.key == key
    assert {row.key async for row in scan(store, Query(kind=RowKind.RESULT))} == {key, "01B/1"}
    rows_behind = await store.select(Query(kind=RowKind.RESULT, after=key))
    assert [row.key for row in rows_behind] == ["01B/1"]
    stored = [row.key for row in await disk.select(Query(kind=RowKind.RESULT))]
    assert "0123456789abcdef" not in str(stored)
    # A later process knows it by that alias alone.
    later = OffTheRecord(disk)
    (alias,) = [row.key for row in await later.select(Query(kind=RowKind.RESULT, after="01A"))][:1]
    await later.commit(chore(Delete(kind=RowKind.RESULT, key=alias)))
    assert [row.key for row in await disk.select(Query(kind=RowKind.RESULT))] == ["01B/1"]


async def test_deleting_a_conversation_drops_all_its_content_from_memory() -> None:
    """Another conversation's content stays."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    other = off_the_record("01C")
    await store.commit(chore(inbox_row("1"), inbox_row("2"), inbox_row("3", b"other", other)))
    await store.commit(chore(Append(log=LogKind.JOURNAL, stream=CONVERSATION, body=WORDS)))
    await store.commit(chore(blob(WORDS), scope=CONVERSATION))
    await store.commit(chore(blob(b"other"), scope=other))
    await store.commit(
        chore(Delete(kind=RowKind.INBOX, key="1"), Delete(kind=RowKind.TURN, key=""))
    )
    assert await store.get(RowKind.INBOX, "1") is None
    await store.commit(chore(Delete(kind=RowKind.CONVERSATION, key=CONVERSATION)))
    assert WORDS not in str(vars(store)).encode()
    await store.commit(chore(Delete(kind=RowKind.INBOX, key="2")))  # the sweep comes later
    row = await store.get(RowKind.INBOX, "3")
    assert row is not None
    assert row.body == b"other"
    assert await store.blob(blob(b"other").digest) == b"other"


async def test_after_a_restart_only_references_are_left() -> None:
    """The cleanup finds the rows by them."""
    disk = MemoryStore()
    await OffTheRecord(disk).commit(chore(inbox_row("1")))
    (row,) = await OffTheRecord(disk).select(Query(kind=RowKind.INBOX))
    assert (row.key, is_reference(row.body)) == ("1", True)


async def test_a_row_that_changes_during_a_read_is_read_again() -> None:
    """The store behind answers with a reference that is released meanwhile."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    await store.commit(chore(inbox_row("1")))

    stale = await disk.select(Query(kind=RowKind.INBOX))
    await store.commit(chore(inbox_row("1", b"newer")))
    answers = [stale]

    async def select(query: Query) -> object:
        return answers.pop() if answers else await MemoryStore.select(disk, query)

    disk.select = select  # pyright: ignore[reportAttributeAccessIssue]  a reader's thread is that slow
    (row,) = await store.select(Query(kind=RowKind.INBOX))
    assert row.body == b"newer"

    answers = [await disk.select(Query(kind=RowKind.INBOX))]
    await store.commit(chore(Delete(kind=RowKind.INBOX, key="1")))
    assert await store.select(Query(kind=RowKind.INBOX)) == ()


async def test_a_read_only_store_finds_nothing_off_the_record(tmp_path: Path) -> None:
    """A command reads beside the daemon or after it; all other rows are found."""
    disk = await open_store(tmp_path, clock=ManualClock())
    store = OffTheRecord(disk)
    await store.commit(
        chore(
            *(inbox_row(f"{n:04d}") for n in range(3)),
            inbox_row("9999", b"on record", OPEN),
            Append(log=LogKind.JOURNAL, stream=CONVERSATION, body=WORDS),
            Append(log=LogKind.JOURNAL, stream=OPEN, body=b"on record"),
        )
    )
    async with open_read_only(tmp_path) as reader:
        rows = await reader.select(Query(kind=RowKind.INBOX, limit=2))
        assert [row.key for row in rows] == ["9999"]
        assert await reader.select(Query(kind=RowKind.INBOX, conversation=CONVERSATION)) == ()
        assert await reader.get(RowKind.INBOX, "0001") is None
        assert await reader.get(RowKind.INBOX, "9999") == rows[0]
        assert await reader.read(LogKind.JOURNAL, CONVERSATION) == ()
        assert len(await reader.read(LogKind.JOURNAL, OPEN)) == 1
        assert await reader.read(LogKind.JOURNAL, OPEN, after=1) == ()
    await store.aclose()
    files = [path.read_bytes() for path in await asyncio.to_thread(lambda: [*tmp_path.iterdir()])]
    assert WORDS not in b"".join(files)
