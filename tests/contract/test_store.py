"""What every store promises: all or nothing, once, in order, fenced, and still there tomorrow."""

import asyncio
import hashlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypedDict

import pytest

from tests.contract.store_implementations import (
    BLOB_CAP_BYTES,
    DURABLE,
    IMPLEMENTATIONS,
    Implementation,
)
from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import AlreadyClaimed, Conflict, Fenced, StoreRefused
from zeroclaw.store import (
    UNFENCED,
    Append,
    Claim,
    Commit,
    Delete,
    DurablePoint,
    Expect,
    Fence,
    LogEntry,
    LogKind,
    Put,
    PutBlob,
    Row,
    RowKind,
    Store,
    Write,
)

HERE = ConversationId("01HERE")
THERE = ConversationId("01THERE")
LATER = EPOCH + timedelta(days=30)

every_store = pytest.mark.parametrize("kept", IMPLEMENTATIONS, ids=lambda one: one.name)
durable_store = pytest.mark.parametrize("kept", DURABLE, ids=lambda one: one.name)


def chore(*writes: Write) -> Commit:
    """A commit in the daemon's own scope."""
    return Commit(point=DurablePoint.HOUSEKEEPING, writes=writes)


def counter(key: str, body: bytes = b"1", *, expect: int | None = None) -> Put:
    return Put(kind=RowKind.COUNTER, key=key, body=body, expect=expect)


def line(body: bytes, *, stream: str = "s", after: int | None = None) -> Append:
    return Append(log=LogKind.AUDIT, stream=stream, body=body, after=after)


def blob(body: bytes) -> PutBlob:
    return PutBlob(digest=hashlib.sha256(body).hexdigest(), body=body)


def claim(*keys: str) -> Claim:
    return Claim(keys=keys, until=LATER)


async def keys(store: Store, kind: RowKind = RowKind.COUNTER) -> list[str]:
    return [row.key for row in await store.find(kind)]


# --- rows ----------------------------------------------------------------------------------------


@every_store
async def test_a_row_comes_back_as_it_was_put(kept: Implementation, tmp_path: Path) -> None:
    """Every column survives, instants to the microsecond, bodies to the byte."""
    due_at = EPOCH + timedelta(days=400, microseconds=1)
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(
            chore(
                Put(
                    kind=RowKind.APPROVAL,
                    key="ключ",
                    body=b"\x00\xff",
                    conversation=HERE,
                    state="pending",
                    place="telegram/1",
                    due_at=due_at,
                )
            )
        )

        assert await store.get(RowKind.APPROVAL, "ключ") == Row(
            kind=RowKind.APPROVAL,
            key="ключ",
            version=1,
            body=b"\x00\xff",
            conversation=HERE,
            state="pending",
            place="telegram/1",
            due_at=due_at,
        )


@every_store
async def test_a_row_that_was_never_put_is_none(kept: Implementation, tmp_path: Path) -> None:
    """A key belongs to its kind: the same key of another kind is another row."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(counter("a")))

        assert await store.get(RowKind.SWITCH, "a") is None


@every_store
async def test_each_put_makes_the_version_one_more(kept: Implementation, tmp_path: Path) -> None:
    """Versions count puts from 1, and a put replaces every column."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(
            chore(Put(kind=RowKind.COUNTER, key="a", body=b"1", state="old", due_at=LATER))
        )
        await store.commit(chore(counter("a", b"2"), counter("a", b"3")))

        assert await store.get(RowKind.COUNTER, "a") == Row(
            kind=RowKind.COUNTER, key="a", version=3, body=b"3"
        )


@every_store
async def test_a_put_at_the_expected_version_is_written(
    kept: Implementation, tmp_path: Path
) -> None:
    """0 expects that there is no row; a number, that version."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(counter("a", b"1", expect=0)))
        await store.commit(chore(counter("a", b"2", expect=1)))

        row = await store.get(RowKind.COUNTER, "a")

    assert row == Row(kind=RowKind.COUNTER, key="a", version=2, body=b"2")


@every_store
@pytest.mark.parametrize("expect", [0, 1, 3])
async def test_a_put_at_another_version_is_a_conflict(
    kept: Implementation, tmp_path: Path, expect: int
) -> None:
    """Compare-and-set: whoever has an old view writes nothing."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(counter("a", b"1"), counter("a", b"2")))

        with pytest.raises(Conflict):
            await store.commit(chore(counter("a", b"3", expect=expect)))
        row = await store.get(RowKind.COUNTER, "a")

    assert row == Row(kind=RowKind.COUNTER, key="a", version=2, body=b"2")


@every_store
async def test_an_expectation_that_holds_changes_nothing(
    kept: Implementation, tmp_path: Path
) -> None:
    """`Expect` only looks, at rows that are there and at rows that are not."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(counter("a")))
        await store.commit(
            chore(
                Expect(kind=RowKind.COUNTER, key="a", version=1),
                Expect(kind=RowKind.COUNTER, key="b", version=0),
            )
        )

        assert await keys(store) == ["a"]


@every_store
async def test_one_of_two_racing_compare_and_sets_wins(
    kept: Implementation, tmp_path: Path
) -> None:
    """Two answers to one approval at the same instant: one is written, one is told."""
    outcomes: list[str] = []

    async def answer(store: Store, body: bytes) -> None:
        try:
            await store.commit(chore(counter("a", body, expect=1)))
            outcomes.append("written")
        except Conflict:
            outcomes.append("refused")

    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(counter("a")))
        async with asyncio.TaskGroup() as group:
            group.create_task(answer(store, b"yes"))
            group.create_task(answer(store, b"no"))

    assert sorted(outcomes) == ["refused", "written"]


@every_store
async def test_a_deleted_row_is_gone_and_deleting_it_again_is_no_error(
    kept: Implementation, tmp_path: Path
) -> None:
    """A key that comes back starts at version 1."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(counter("a"), counter("a")))
        await store.commit(chore(Delete(kind=RowKind.COUNTER, key="a")))
        await store.commit(chore(Delete(kind=RowKind.COUNTER, key="a")))
        assert await store.get(RowKind.COUNTER, "a") is None

        await store.commit(chore(counter("a", expect=0)))
        row = await store.get(RowKind.COUNTER, "a")

    assert row == Row(kind=RowKind.COUNTER, key="a", version=1, body=b"1")


# --- finding -------------------------------------------------------------------------------------


async def put_outbox(store: Store) -> None:
    """Four rows, put out of order, that no two filters tell apart the same way."""
    soon, late = EPOCH + timedelta(seconds=1), EPOCH + timedelta(hours=1)
    await store.commit(
        chore(
            Put(kind=RowKind.OUTBOX, key="3", body=b"", conversation=HERE, state="x", due_at=late),
            Put(kind=RowKind.OUTBOX, key="1", body=b"", conversation=HERE, state="x", due_at=soon),
            Put(kind=RowKind.OUTBOX, key="4", body=b"", conversation=THERE, state="x", place="p"),
            Put(kind=RowKind.OUTBOX, key="2", body=b"", conversation=HERE, place="p", due_at=soon),
            Put(kind=RowKind.INBOX, key="0", body=b"", conversation=HERE, state="x", place="p"),
        )
    )


class Filters(TypedDict, total=False):
    """The keyword arguments of `find`."""

    conversation: ConversationId
    state: str
    place: str
    due_before: datetime
    after: str
    newest_first: bool
    limit: int


FOUND: dict[str, tuple[Filters, str]] = {
    "all": ({}, "1234"),
    "of a conversation": ({"conversation": HERE}, "123"),
    "in a state": ({"state": "x"}, "134"),
    "in no state": ({"state": ""}, "2"),
    "at a place": ({"place": "p"}, "24"),
    "at no place": ({"place": ""}, "13"),
    "due": ({"due_before": EPOCH + timedelta(seconds=2)}, "12"),
    "due, the instant itself not": ({"due_before": EPOCH + timedelta(seconds=1)}, ""),
    "due at any time": ({"due_before": EPOCH + timedelta(days=9)}, "123"),
    "by every filter": (
        {
            "conversation": HERE,
            "state": "x",
            "place": "",
            "due_before": EPOCH + timedelta(seconds=2),
        },
        "1",
    ),
    "after a key": ({"after": "2"}, "34"),
    "after a key that is no row's": ({"after": "2z"}, "34"),
    "newest first": ({"newest_first": True}, "4321"),
    "newest first, before a key": ({"newest_first": True, "after": "3"}, "21"),
    "a few": ({"limit": 2}, "12"),
    "a few of the newest": ({"limit": 2, "newest_first": True}, "43"),
    "a few after a key, in a state": ({"limit": 1, "after": "1", "state": "x"}, "3"),
    "none": ({"limit": 0}, ""),
}


@every_store
@pytest.mark.parametrize("name", FOUND)
async def test_rows_are_found_by_every_filter_in_order_of_their_keys(
    kept: Implementation, tmp_path: Path, name: str
) -> None:
    """All filters must fit; the limit is applied last."""
    filters, expected = FOUND[name]
    async with kept.opened(tmp_path, ManualClock()) as store:
        await put_outbox(store)

        found = await store.find(RowKind.OUTBOX, **filters)

    assert "".join(row.key for row in found) == expected


# --- logs ----------------------------------------------------------------------------------------


@every_store
async def test_a_stream_counts_from_one_without_gaps(kept: Implementation, tmp_path: Path) -> None:
    """Streams count for themselves, and so do the logs."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(line(b"a"), line(b"b"), line(b"other", stream="t")))
        with pytest.raises(Conflict):
            await store.commit(chore(line(b"lost"), line(b"lost", after=9)))
        await store.commit(chore(line(b"c", after=2)))
        await store.commit(chore(Append(log=LogKind.JOURNAL, stream="s", body=b"j", after=0)))

        assert await store.read(LogKind.AUDIT, "s") == (
            LogEntry(sequence=1, body=b"a"),
            LogEntry(sequence=2, body=b"b"),
            LogEntry(sequence=3, body=b"c"),
        )
        assert await store.last(LogKind.AUDIT, "s") == LogEntry(sequence=3, body=b"c")
        assert await store.last(LogKind.JOURNAL, "s") == LogEntry(sequence=1, body=b"j")
        assert await store.streams(LogKind.AUDIT) == ("s", "t")
        assert await store.streams(LogKind.JOURNAL) == ("s",)


@every_store
async def test_a_stream_is_read_on_from_where_one_was(kept: Implementation, tmp_path: Path) -> None:
    """`after` and `limit` make pages."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(line(b"a"), line(b"b"), line(b"c")))

        page = await store.read(LogKind.AUDIT, "s", after=1, limit=1)
        rest = await store.read(LogKind.AUDIT, "s", after=3)

    assert page == (LogEntry(sequence=2, body=b"b"),)
    assert rest == ()


@every_store
async def test_an_empty_stream_has_nothing(kept: Implementation, tmp_path: Path) -> None:
    """A stream that nobody wrote to is no error."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        assert await store.read(LogKind.AUDIT, "s") == ()
        assert await store.last(LogKind.AUDIT, "s") is None
        assert await store.streams(LogKind.AUDIT) == ()


@every_store
@pytest.mark.parametrize("after", [0, 1, 3])
async def test_an_entry_after_another_than_the_last_is_a_conflict(
    kept: Implementation, tmp_path: Path, after: int
) -> None:
    """Whoever has an old view of a log adds nothing to it."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(line(b"a"), line(b"b")))

        with pytest.raises(Conflict):
            await store.commit(chore(line(b"c", after=after)))
        last = await store.last(LogKind.AUDIT, "s")

    assert last == LogEntry(sequence=2, body=b"b")


# --- claims --------------------------------------------------------------------------------------


@every_store
@pytest.mark.parametrize(("first", "second", "hit"), [("a", "a", "a"), ("ab", "cb", "b")])
async def test_any_key_that_was_claimed_refuses_the_whole_commit(
    kept: Implementation, tmp_path: Path, first: str, second: str, hit: str
) -> None:
    """One event has several keys, and any of them makes it a duplicate."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(claim(*first), counter("1")))

        with pytest.raises(AlreadyClaimed) as refused:
            await store.commit(chore(counter("2"), claim(*second)))
        assert refused.value.key == hit

        await store.commit(chore(claim(*set(second) - set(first)), counter("3")))
        assert await keys(store) == ["1", "3"]


@every_store
async def test_an_event_that_names_a_key_twice_is_still_one_event(
    kept: Implementation, tmp_path: Path
) -> None:
    """Where a platform's two ids of an event are the same, that is no duplicate."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(claim("a", "a"), counter("1")))

        assert await keys(store) == ["1"]


@every_store
async def test_a_claim_that_has_expired_can_be_claimed_again(
    kept: Implementation, tmp_path: Path
) -> None:
    """A platform's ids may start again after a while; until then they are taken."""
    clock = ManualClock()
    until = EPOCH + timedelta(seconds=10)
    async with kept.opened(tmp_path, clock) as store:
        await store.commit(chore(Claim(keys=("a",), until=until)))

        await clock.advance(9)
        with pytest.raises(AlreadyClaimed):
            await store.commit(chore(Claim(keys=("a",), until=until)))
        await clock.advance(1)
        await store.commit(chore(Claim(keys=("a",), until=LATER)))
        with pytest.raises(AlreadyClaimed):
            await store.commit(chore(Claim(keys=("a",), until=LATER)))


@every_store
async def test_of_many_at_once_one_gets_the_claim(kept: Implementation, tmp_path: Path) -> None:
    """The same event ten times at the same instant is admitted once."""
    outcomes: list[str] = []

    async def admit(store: Store, number: int) -> None:
        try:
            await store.commit(chore(claim("event"), counter(str(number))))
            outcomes.append("admitted")
        except AlreadyClaimed:
            outcomes.append("duplicate")

    async with kept.opened(tmp_path, ManualClock()) as store:
        async with asyncio.TaskGroup() as group:
            for number in range(10):
                group.create_task(admit(store, number))
        rows = await keys(store)

    assert outcomes.count("admitted") == len(rows) == 1
    assert outcomes.count("duplicate") == 9


# --- blobs ---------------------------------------------------------------------------------------


@every_store
async def test_a_blob_is_kept_once_under_its_hash(kept: Implementation, tmp_path: Path) -> None:
    """Putting the same bytes again is no error."""
    body = bytes(range(256))
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(blob(body)))
        await store.commit(chore(blob(body), blob(b"")))

        assert await store.blob(blob(body).digest) == body
        assert await store.blob(blob(b"").digest) == b""
        assert await store.blob(blob(b"never").digest) is None


@every_store
async def test_a_blob_at_the_cap_is_kept_and_one_above_is_refused(
    kept: Implementation, tmp_path: Path
) -> None:
    """Too large refuses the whole commit; disk use is bounded."""
    at_cap, above = bytes(BLOB_CAP_BYTES), bytes(BLOB_CAP_BYTES + 1)
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(blob(at_cap)))
        with pytest.raises(StoreRefused):
            await store.commit(chore(counter("a"), blob(above)))

        assert await store.blob(blob(at_cap).digest) == at_cap
        assert await store.blob(blob(above).digest) is None
        assert await keys(store) == []


@every_store
async def test_a_blob_under_a_name_that_is_not_its_hash_is_refused(
    kept: Implementation, tmp_path: Path
) -> None:
    """The name is the proof of what it names."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        with pytest.raises(StoreRefused):
            await store.commit(chore(PutBlob(digest=blob(b"other").digest, body=b"this")))


# --- all or nothing ------------------------------------------------------------------------------

REFUSED: dict[str, Write] = {
    "a claim": claim("taken"),
    "a put": counter("there", expect=9),
    "an expectation": Expect(kind=RowKind.COUNTER, key="there", version=0),
    "an append": line(b"late", after=9),
    "a blob": blob(bytes(BLOB_CAP_BYTES + 1)),
}


@every_store
@pytest.mark.parametrize("last", REFUSED)
async def test_a_last_write_that_is_refused_undoes_every_kind_of_write_before_it(
    kept: Implementation, tmp_path: Path, last: str
) -> None:
    """A commit is written whole or not at all."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(claim("taken"), counter("there"), counter("doomed"), line(b"a")))

        with pytest.raises(StoreRefused):
            await store.commit(
                chore(
                    claim("free"),
                    counter("new"),
                    counter("there", b"changed"),
                    Delete(kind=RowKind.COUNTER, key="doomed"),
                    line(b"b"),
                    line(b"c", stream="new"),
                    blob(b"new"),
                    REFUSED[last],
                )
            )

        assert await keys(store) == ["doomed", "there"]
        assert await store.get(RowKind.COUNTER, "there") == Row(
            kind=RowKind.COUNTER, key="there", version=1, body=b"1"
        )
        assert await store.read(LogKind.AUDIT, "s") == (LogEntry(sequence=1, body=b"a"),)
        assert await store.streams(LogKind.AUDIT) == ("s",)
        assert await store.blob(blob(b"new").digest) is None
        await store.commit(chore(claim("free")))


@every_store
async def test_a_refused_commit_leaves_the_others_of_its_instant_whole(
    kept: Implementation, tmp_path: Path
) -> None:
    """A hundred tasks commit at once; the refused ones take nobody with them."""
    refused: list[int] = []

    async def write(store: Store, number: int) -> None:
        expect = 9 if number % 3 == 0 else 0
        try:
            await store.commit(chore(line(b"%d" % number), counter(f"{number:03}", expect=expect)))
        except Conflict:
            refused.append(number)

    async with kept.opened(tmp_path, ManualClock()) as store:
        async with asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(write(store, number))
        entries = await store.read(LogKind.AUDIT, "s")
        rows = await keys(store)

    assert sorted(refused) == list(range(0, 100, 3))
    assert [entry.sequence for entry in entries] == list(range(1, 67))
    assert sorted(entry.body for entry in entries) == sorted(b"%d" % int(key) for key in rows)


@every_store
async def test_what_was_written_is_read(kept: Implementation, tmp_path: Path) -> None:
    """A read sees every commit that returned before it began, in every task."""

    async def count(store: Store, stream: str) -> list[int]:
        seen: list[int] = []
        for number in range(1, 6):
            await store.commit(chore(line(b"", stream=stream, after=number - 1)))
            last = await store.last(LogKind.AUDIT, stream)
            seen.append(0 if last is None else last.sequence)
        return seen

    async with (
        kept.opened(tmp_path, ManualClock()) as store,
        asyncio.TaskGroup() as group,
    ):
        tasks = [group.create_task(count(store, f"s{number}")) for number in range(20)]

    assert [task.result() for task in tasks] == [[1, 2, 3, 4, 5]] * 20


@every_store
async def test_a_cancelled_commit_is_whole_or_undone(kept: Implementation, tmp_path: Path) -> None:
    """Whoever is cancelled while committing finds both writes, or neither."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        async with asyncio.TaskGroup() as group:
            for number in range(50):
                task = group.create_task(
                    store.commit(chore(counter(f"{number:03}"), line(b"", stream=f"{number:03}")))
                )
                await asyncio.sleep(0)
                task.cancel()
        rows = await keys(store)
        streams = await store.streams(LogKind.AUDIT)

    assert tuple(rows) == streams


# --- fences --------------------------------------------------------------------------------------


def turn(fence: Fence | None, *writes: Write, conversation: ConversationId = HERE) -> Commit:
    """A commit that only the conversation's holder may make."""
    return Commit(
        point=DurablePoint.FINISHED, writes=writes, conversation=conversation, fence=fence
    )


@every_store
async def test_the_holder_of_the_newest_fence_may_write(
    kept: Implementation, tmp_path: Path
) -> None:
    """Each conversation has a fence of its own."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        here, there = await store.lease(HERE), await store.lease(THERE)
        await store.commit(turn(here, counter("1")))
        await store.commit(turn(there, counter("2"), conversation=THERE))
        await store.commit(turn(here, counter("3")))

        assert await keys(store) == ["1", "2", "3"]


@every_store
async def test_an_older_fence_is_worthless_once_somebody_newer_has_the_conversation(
    kept: Implementation, tmp_path: Path
) -> None:
    """Of two holders the older one writes nothing, however late it wakes up."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        older, newer = await store.lease(HERE), await store.lease(HERE)
        assert newer.token > older.token

        with pytest.raises(Fenced):
            await store.commit(turn(older, counter("old")))
        await store.commit(turn(newer, counter("new")))

        assert await keys(store) == ["new"]


@every_store
@pytest.mark.parametrize("point", [point for point in DurablePoint if point not in UNFENCED])
async def test_a_conversation_is_not_written_without_a_fence(
    kept: Implementation, tmp_path: Path, point: DurablePoint
) -> None:
    """Every point but the inbox and an answer needs the fence."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        with pytest.raises(Fenced):
            await store.commit(Commit(point=point, writes=(counter("a"),), conversation=HERE))

        assert await keys(store) == []


@every_store
@pytest.mark.parametrize("point", sorted(UNFENCED))
async def test_the_inbox_and_an_answer_need_no_fence(
    kept: Implementation, tmp_path: Path, point: DurablePoint
) -> None:
    """Messages and answers come in while somebody else holds the conversation."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        held = await store.lease(HERE)
        await store.commit(Commit(point=point, writes=(counter("a"),), conversation=HERE))
        await store.commit(turn(held, counter("b")))

        assert await keys(store) == ["a", "b"]


@every_store
@pytest.mark.parametrize("scope", [THERE, None], ids=["another's", "the daemon's"])
async def test_a_fence_opens_no_other_scope(
    kept: Implementation, tmp_path: Path, scope: ConversationId | None
) -> None:
    """Not even the daemon's, which needs none."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        fence = await store.lease(HERE)
        await store.lease(THERE)

        with pytest.raises(Fenced):
            await store.commit(
                Commit(
                    point=DurablePoint.FINISHED,
                    writes=(counter("a"),),
                    conversation=scope,
                    fence=fence,
                )
            )


@every_store
async def test_a_fence_that_nobody_was_given_is_refused(
    kept: Implementation, tmp_path: Path
) -> None:
    """A made-up token is no lease."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        with pytest.raises(Fenced):
            await store.commit(turn(Fence(conversation=HERE, token=1), counter("a")))


# --- tomorrow ------------------------------------------------------------------------------------


@durable_store
async def test_everything_is_there_after_closing_and_opening_again(
    kept: Implementation, tmp_path: Path
) -> None:
    """Rows, logs, blobs and claims outlive the process."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(claim("a"), counter("1"), line(b"a"), blob(b"kept")))

    async with kept.opened(tmp_path, ManualClock()) as store:
        assert await store.get(RowKind.COUNTER, "1") == Row(
            kind=RowKind.COUNTER, key="1", version=1, body=b"1"
        )
        assert await store.read(LogKind.AUDIT, "s") == (LogEntry(sequence=1, body=b"a"),)
        assert await store.blob(blob(b"kept").digest) == b"kept"
        with pytest.raises(AlreadyClaimed):
            await store.commit(chore(claim("a")))


@durable_store
async def test_a_fence_from_before_a_restart_is_older_than_any_after_it(
    kept: Implementation, tmp_path: Path
) -> None:
    """Tokens grow across restarts, also where the earlier process leased more often."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        before = [await store.lease(HERE) for _ in range(3)][-1]

    async with kept.opened(tmp_path, ManualClock()) as store:
        with pytest.raises(Fenced):
            await store.commit(turn(before, counter("a")))
        after = await store.lease(HERE)
        with pytest.raises(Fenced):
            await store.commit(turn(before, counter("a")))

    assert after.token > before.token


@every_store
async def test_closing_waits_for_what_was_handed_in_and_is_safe_twice(
    kept: Implementation, tmp_path: Path
) -> None:
    """Commits that were handed in before `aclose` return."""
    async with kept.opened(tmp_path, ManualClock()) as store, asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(store.commit(chore(counter(str(number)))))
        await asyncio.sleep(0)
        await store.aclose()
        await store.aclose()


@every_store
async def test_the_store_knows_its_size(kept: Implementation, tmp_path: Path) -> None:
    """More kept is not less disk."""
    async with kept.opened(tmp_path, ManualClock()) as store:
        before = await store.size_bytes()
        await store.commit(chore(*(blob(b"%03d" % number * 300) for number in range(100))))

        assert await store.size_bytes() > before
