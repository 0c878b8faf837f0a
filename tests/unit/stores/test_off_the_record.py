"""What is said off the record: read like everything else, and in no byte of the store behind it."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from tests.fakes.manual_clock import EPOCH, ManualClock
from tests.fakes.memory_store import MemoryStore
from zeroclaw.envelope import ConversationId, off_the_record
from zeroclaw.errors import Conflict
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

HERE, OPEN = off_the_record("01A"), ConversationId("01B")
WORDS = b"marmalade"


def chore(*writes: Write, scope: ConversationId | None = None) -> Commit:
    point = DurablePoint.HOUSEKEEPING if scope is None else DurablePoint.ADMITTED
    return Commit(point=point, writes=writes, conversation=scope)


def said(
    key: str,
    body: bytes = WORDS,
    here: ConversationId | None = HERE,
    *,
    kind: RowKind = RowKind.INBOX,
) -> Put:
    return Put(kind=kind, key=key, body=body, conversation=here, state="queued")


def blob(body: bytes) -> PutBlob:
    return PutBlob(digest=hashlib.sha256(body).hexdigest(), body=body)


async def behind(disk: MemoryStore) -> bytes:
    """Every body that the store behind it was given."""
    rows = [row.body for kind in RowKind for row in await disk.select(Query(kind=kind))]
    for stream in await disk.streams(LogKind.JOURNAL):
        rows += [one.body for one in await disk.read(LogKind.JOURNAL, stream)]
    return b"\n".join(rows)


async def test_a_row_is_read_as_it_was_put_and_its_words_are_not_behind_it() -> None:
    """Its key, version, state and conversation are; a newer one takes its place."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    await store.commit(chore(said("1"), said("2", b"on record", OPEN)))
    await store.commit(chore(said("1", WORDS + b" again")))
    row = await store.get(RowKind.INBOX, "1")
    assert row is not None
    assert (row.body, row.version, row.state) == (WORDS + b" again", 2, "queued")
    assert [one.body for one in await store.select(Query(kind=RowKind.INBOX))] == [
        WORDS + b" again",
        b"on record",
    ]
    assert WORDS not in await behind(disk)
    assert b"on record" in await behind(disk)
    assert WORDS + b"'" not in str(vars(store)).encode()
    assert await store.get(RowKind.INBOX, "3") is None


async def test_what_is_refused_is_not_held() -> None:
    disk = MemoryStore()
    store = OffTheRecord(disk)
    with pytest.raises(Conflict):
        await store.commit(chore(said("1"), Expect(kind=RowKind.TURN, key="x", version=1)))
    assert WORDS not in str(vars(store)).encode()


async def test_what_is_refused_as_its_conversation_goes_is_refused_as_ever() -> None:
    """An answer is recorded as delivered while its chat is erased."""
    disk = MemoryStore()
    store = OffTheRecord(disk)

    async def erase_first(_: tuple[Write, ...]) -> None:
        disk.meanwhile = None
        await store.commit(chore(Delete(kind=RowKind.CONVERSATION, key=HERE)))

    disk.meanwhile = erase_first
    with pytest.raises(Conflict):
        await store.commit(chore(said("1"), Expect(kind=RowKind.TURN, key="x", version=1)))
    assert WORDS not in str(vars(store)).encode()


async def test_a_row_of_nobody_written_with_it_is_its_own_and_stays_so() -> None:
    """A word to operators, which the outbox later moves on without knowing whose it is."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    fence = await store.lease(HERE)
    note = said("1", here=None, kind=RowKind.OUTBOX)
    await store.commit(
        Commit(point=DurablePoint.FINISHED, writes=(note,), conversation=HERE, fence=fence)
    )
    await store.commit(chore(said("1", WORDS + b" sent", None, kind=RowKind.OUTBOX)))
    reply = said("2", here=OPEN, kind=RowKind.OUTBOX)
    await store.commit(chore(reply, scope=HERE))
    row = await store.get(RowKind.OUTBOX, "1")
    assert row is not None
    assert (row.body, row.conversation) == (WORDS + b" sent", None)
    assert WORDS not in await behind(disk)
    assert len(await store.select(Query(kind=RowKind.OUTBOX, conversation=HERE))) == 2


async def test_a_row_that_takes_the_place_of_another_tells_of_the_same() -> None:
    """A notice to operators becomes a message to one of them, in a commit of nobody's."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    await store.commit(chore(said("1", here=None, kind=RowKind.NOTICE), scope=HERE))
    gone = Delete(kind=RowKind.NOTICE, key="1")
    await store.commit(chore(said("2", here=None, kind=RowKind.OUTBOX), gone))
    assert [one.body for one in await store.select(Query(kind=RowKind.OUTBOX))] == [WORDS]
    assert WORDS not in await behind(disk)
    await store.commit(chore(said("3", here=None, kind=RowKind.OUTBOX)))
    assert WORDS in await behind(disk)


async def test_its_journal_is_read_whole_and_its_audit_is_on_record() -> None:
    """The audit holds no words, and outlives the process."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    journal = Append(log=LogKind.JOURNAL, stream=HERE, body=WORDS, after=0)
    audit = Append(log=LogKind.AUDIT, stream=HERE, body=b"proposed")
    await store.commit(chore(journal, audit))
    (entry,) = await store.read(LogKind.JOURNAL, HERE)
    assert (entry.body, entry.sequence) == (WORDS, 1)
    assert await store.last(LogKind.JOURNAL, HERE) == entry
    assert await store.last(LogKind.JOURNAL, "none") is None
    assert [one.body for one in await disk.read(LogKind.AUDIT, HERE)] == [b"proposed"]
    assert WORDS not in await behind(disk)
    await store.commit(chore(Trim(log=LogKind.JOURNAL, stream=HERE, before=2)))
    assert await store.read(LogKind.JOURNAL, HERE) == ()


async def test_files_stay_in_memory_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more the oldest go; a repeat is new, and the newest stays whatever its size."""
    monkeypatch.setattr(off_the_record_store, "MAX_BLOB_BYTES", 110)
    disk = MemoryStore(clock=ManualClock())
    store = OffTheRecord(disk)
    one, two, three = (blob(bytes([n]) * 50) for n in range(3))
    kept = blob(WORDS)
    await store.commit(chore(kept))
    for each in (one, two, one, three, kept):
        await store.commit(chore(each, scope=HERE))
    assert [await store.blob(each.digest) == each.body for each in (one, two, three, kept)] == [
        True,
        False,
        True,
        True,
    ]
    assert await disk.blobs(put_before=EPOCH.replace(year=9999)) == (kept.digest,)
    await store.commit(chore(DropBlob(digest=three.digest)))
    assert await store.blob(three.digest) is None
    large = blob(bytes(200))
    await store.commit(chore(large, scope=HERE))
    assert await store.blob(large.digest) == large.body


async def test_a_result_is_not_found_by_what_it_says() -> None:
    """Its key is a digest of its words, which whoever guesses them could look for."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    key = f"{HERE}/0123456789abcdef"
    await store.commit(chore(said(key, kind=RowKind.RESULT), said("01B/1", kind=RowKind.RESULT)))
    await store.commit(chore(Expect(kind=RowKind.RESULT, key=key, version=1)))
    row = await store.get(RowKind.RESULT, key)
    assert row is not None
    assert row.key == key
    assert {one.key async for one in scan(store, Query(kind=RowKind.RESULT))} == {key, "01B/1"}
    behind_it = await store.select(Query(kind=RowKind.RESULT, after=key))
    assert [one.key for one in behind_it] == ["01B/1"]
    stored = [one.key for one in await disk.select(Query(kind=RowKind.RESULT))]
    assert "0123456789abcdef" not in str(stored)
    # A process after this one knows it by that name alone.
    later = OffTheRecord(disk)
    (alias,) = [one.key for one in await later.select(Query(kind=RowKind.RESULT, after="01A"))][:1]
    await later.commit(chore(Delete(kind=RowKind.RESULT, key=alias)))
    assert [one.key for one in await disk.select(Query(kind=RowKind.RESULT))] == ["01B/1"]


async def test_what_is_removed_is_forgotten_and_with_its_conversation_all_of_it() -> None:
    """Nothing of it stays in memory; another conversation's does."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    other = off_the_record("01C")
    await store.commit(chore(said("1"), said("2"), said("3", b"other", other)))
    await store.commit(chore(Append(log=LogKind.JOURNAL, stream=HERE, body=WORDS)))
    await store.commit(chore(blob(WORDS), scope=HERE))
    await store.commit(chore(blob(b"other"), scope=other))
    await store.commit(
        chore(Delete(kind=RowKind.INBOX, key="1"), Delete(kind=RowKind.TURN, key=""))
    )
    assert await store.get(RowKind.INBOX, "1") is None
    await store.commit(chore(Delete(kind=RowKind.CONVERSATION, key=HERE)))
    assert WORDS not in str(vars(store)).encode()
    await store.commit(chore(Delete(kind=RowKind.INBOX, key="2")))  # the sweep comes later
    row = await store.get(RowKind.INBOX, "3")
    assert row is not None
    assert row.body == b"other"
    assert await store.blob(blob(b"other").digest) == b"other"


async def test_of_an_earlier_process_only_references_are_left() -> None:
    """Who tidies up finds the rows by them."""
    disk = MemoryStore()
    await OffTheRecord(disk).commit(chore(said("1")))
    (row,) = await OffTheRecord(disk).select(Query(kind=RowKind.INBOX))
    assert (row.key, is_reference(row.body)) == ("1", True)


async def test_a_row_that_changes_while_it_is_read_is_read_anew() -> None:
    """The store behind it answered with a reference that was let go of meanwhile."""
    disk = MemoryStore()
    store = OffTheRecord(disk)
    await store.commit(chore(said("1")))

    stale = await disk.select(Query(kind=RowKind.INBOX))
    await store.commit(chore(said("1", b"newer")))
    answers = [stale]

    async def select(query: Query) -> object:
        return answers.pop() if answers else await MemoryStore.select(disk, query)

    disk.select = select  # pyright: ignore[reportAttributeAccessIssue]  a reader's thread is that slow
    (row,) = await store.select(Query(kind=RowKind.INBOX))
    assert row.body == b"newer"

    answers = [await disk.select(Query(kind=RowKind.INBOX))]
    await store.commit(chore(Delete(kind=RowKind.INBOX, key="1")))
    assert await store.select(Query(kind=RowKind.INBOX)) == ()


async def test_who_only_looks_finds_nothing_of_it(tmp_path: Path) -> None:
    """A command beside the daemon, or after it; everything else is found, however much lies before."""
    disk = await open_store(tmp_path, clock=ManualClock())
    store = OffTheRecord(disk)
    await store.commit(
        chore(
            *(said(f"{n:04d}") for n in range(3)),
            said("9999", b"on record", OPEN),
            Append(log=LogKind.JOURNAL, stream=HERE, body=WORDS),
            Append(log=LogKind.JOURNAL, stream=OPEN, body=b"on record"),
        )
    )
    async with open_read_only(tmp_path) as looked:
        first = await looked.select(Query(kind=RowKind.INBOX, limit=2))
        assert [one.key for one in first] == ["9999"]
        assert await looked.select(Query(kind=RowKind.INBOX, conversation=HERE)) == ()
        assert await looked.get(RowKind.INBOX, "0001") is None
        assert await looked.get(RowKind.INBOX, "9999") == first[0]
        assert await looked.read(LogKind.JOURNAL, HERE) == ()
        assert len(await looked.read(LogKind.JOURNAL, OPEN)) == 1
        assert await looked.read(LogKind.JOURNAL, OPEN, after=1) == ()
    await store.aclose()
    files = [path.read_bytes() for path in await asyncio.to_thread(lambda: [*tmp_path.iterdir()])]
    assert WORDS not in b"".join(files)
