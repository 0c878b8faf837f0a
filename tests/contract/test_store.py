"""Every store's promises for rows and logs: they come back, counted and in order."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypedDict

import pytest

from tests.contract.store_implementations import Implementation
from tests.contract.store_writes import (
    HERE,
    LATER,
    THERE,
    at,
    chore,
    counter,
    every_store,
    keys,
    line,
)
from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import Conflict
from zeroclaw.store import (
    Append,
    Delete,
    Expect,
    LogEntry,
    LogKind,
    Put,
    Query,
    Row,
    RowKind,
    Store,
)


class Filters(TypedDict, total=False):
    """The keyword arguments of a query."""

    conversation: ConversationId
    state: str
    place: str
    due_before: datetime
    after: str
    newest_first: bool
    limit: int


class Columns(TypedDict, total=False):
    """The columns of a row that queries filter by."""

    conversation: ConversationId
    place: str
    due_at: datetime
    state: str


# --- rows -----------------------------------------------------------------------------------------


@every_store
async def test_a_row_comes_back_as_it_was_put(backend: Implementation, tmp_path: Path) -> None:
    """Every column survives, instants to the microsecond, bodies to the byte."""
    due_at = EPOCH + timedelta(days=400, microseconds=1)
    async with backend.opened(tmp_path, ManualClock()) as store:
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
async def test_a_row_that_was_never_put_is_none(backend: Implementation, tmp_path: Path) -> None:
    """A key belongs to its kind: the same key of another kind is another row."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(counter("a")))

        assert await store.get(RowKind.SWITCH, "a") is None


@every_store
async def test_each_put_makes_the_version_one_more(backend: Implementation, tmp_path: Path) -> None:
    """Versions count puts from 1, and a put replaces every column."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(
            chore(Put(kind=RowKind.COUNTER, key="a", body=b"1", state="old", due_at=LATER))
        )
        await store.commit(chore(counter("a", b"2"), counter("a", b"3")))

        assert await store.get(RowKind.COUNTER, "a") == Row(
            kind=RowKind.COUNTER, key="a", version=3, body=b"3"
        )


@every_store
@pytest.mark.parametrize(
    ("changed", "before"),
    [
        ({}, {"state": "gone"}),
        ({"conversation": THERE}, {"conversation": HERE}),
        ({"place": "q"}, {"place": "p"}),
        ({"due_at": LATER}, {"due_before": LATER}),
        ({"state": "new"}, {"state": "old"}),
    ],
)
async def test_a_row_is_found_by_what_it_was_put_with_last(
    backend: Implementation, tmp_path: Path, changed: Columns, before: Filters
) -> None:
    """Whichever of its columns changes, or none."""
    first = Columns(conversation=HERE, place="p", due_at=EPOCH, state="old")
    last = Columns(**(first | changed))
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(Put(kind=RowKind.OUTBOX, key="a", body=b"1", **first)))
        again = Put(kind=RowKind.OUTBOX, key="a", body=b"2", **last)
        await store.commit(chore(again))

        row = Row(kind=RowKind.OUTBOX, key="a", version=2, body=b"2", **last)
        assert await store.get(RowKind.OUTBOX, "a") == row
        query = Query(
            kind=RowKind.OUTBOX,
            conversation=row.conversation,
            place=row.place,
            due_before=LATER + timedelta(seconds=1),
            state=row.state,
        )
        assert await store.select(query) == (row,)
        assert await store.select(Query(kind=RowKind.OUTBOX, **before)) == ()


@every_store
async def test_a_put_at_the_expected_version_is_written(
    backend: Implementation, tmp_path: Path
) -> None:
    """0 expects that there is no row; a number, that version."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(at("a", 0), counter("a", b"1")))
        await store.commit(chore(at("a", 1), counter("a", b"2")))

        row = await store.get(RowKind.COUNTER, "a")

    assert row == Row(kind=RowKind.COUNTER, key="a", version=2, body=b"2")


@every_store
@pytest.mark.parametrize("expect", [0, 1, 3])
async def test_a_put_at_another_version_is_a_conflict(
    backend: Implementation, tmp_path: Path, expect: int
) -> None:
    """Compare-and-set: a writer with an old view writes nothing."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(counter("a", b"1"), counter("a", b"2")))

        with pytest.raises(Conflict):
            await store.commit(chore(at("a", expect), counter("a", b"3")))
        row = await store.get(RowKind.COUNTER, "a")

    assert row == Row(kind=RowKind.COUNTER, key="a", version=2, body=b"2")


@every_store
async def test_an_expectation_that_holds_changes_nothing(
    backend: Implementation, tmp_path: Path
) -> None:
    """`Expect` only looks, at rows that are there and at rows that are not."""
    async with backend.opened(tmp_path, ManualClock()) as store:
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
    backend: Implementation, tmp_path: Path
) -> None:
    """Two answers to one approval at the same instant: one is written, the other refused."""
    outcomes: list[str] = []

    async def answer(store: Store, body: bytes) -> None:
        try:
            await store.commit(chore(at("a", 1), counter("a", body)))
            outcomes.append("written")
        except Conflict:
            outcomes.append("refused")

    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(counter("a")))
        async with asyncio.TaskGroup() as group:
            group.create_task(answer(store, b"yes"))
            group.create_task(answer(store, b"no"))

    assert sorted(outcomes) == ["refused", "written"]


@every_store
async def test_a_deleted_row_is_gone_and_deleting_it_again_is_no_error(
    backend: Implementation, tmp_path: Path
) -> None:
    """A key that comes back starts at version 1."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(counter("a"), counter("a")))
        await store.commit(chore(Delete(kind=RowKind.COUNTER, key="a")))
        await store.commit(chore(Delete(kind=RowKind.COUNTER, key="a")))
        assert await store.get(RowKind.COUNTER, "a") is None

        await store.commit(chore(at("a", 0), counter("a")))
        row = await store.get(RowKind.COUNTER, "a")

    assert row == Row(kind=RowKind.COUNTER, key="a", version=1, body=b"1")


# --- finding --------------------------------------------------------------------------------------


async def put_outbox(store: Store) -> None:
    """Four rows, put out of order; no two filters select the same ones."""
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


class Counted(TypedDict, total=False):
    """The keyword arguments of `count`."""

    conversation: ConversationId
    state: str


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
    backend: Implementation, tmp_path: Path, name: str
) -> None:
    """All filters must fit; the limit is applied last."""
    filters, expected = FOUND[name]
    async with backend.opened(tmp_path, ManualClock()) as store:
        await put_outbox(store)

        found = await store.select(Query(kind=RowKind.OUTBOX, **filters))

    assert "".join(row.key for row in found) == expected


@every_store
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, 4),
        ({"conversation": HERE}, 3),
        ({"state": "x"}, 3),
        ({"state": ""}, 1),
        ({"conversation": HERE, "state": "x"}, 2),
        ({"conversation": THERE, "state": ""}, 0),
    ],
    ids=str,
)
async def test_rows_are_counted_by_every_filter(
    backend: Implementation, tmp_path: Path, filters: Counted, expected: int
) -> None:
    """As many as `select` would return without a limit, and none of another kind."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await put_outbox(store)

        assert await store.count(Query(kind=RowKind.OUTBOX, **filters)) == expected


# --- logs -----------------------------------------------------------------------------------------


@every_store
async def test_a_stream_counts_from_one_without_gaps(
    backend: Implementation, tmp_path: Path
) -> None:
    """Streams count for themselves, and so do the logs."""
    async with backend.opened(tmp_path, ManualClock()) as store:
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
async def test_the_last_streams_come_in_pages(backend: Implementation, tmp_path: Path) -> None:
    """Whatever their number, and however long each is."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        names = ("a", "b", "b", "c", "d")
        lines = (Append(log=LogKind.AUDIT, stream=name, body=b"x") for name in names)
        await store.commit(chore(*lines, Append(log=LogKind.JOURNAL, stream="z", body=b"x")))
        assert await store.streams(LogKind.AUDIT, last=2) == ("c", "d")
        assert await store.streams(LogKind.AUDIT, last=2, before="c") == ("a", "b")
        assert await store.streams(LogKind.AUDIT, last=9, before="b") == ("a",)
        assert await store.streams(LogKind.AUDIT, last=9, before="a") == ()


@every_store
async def test_a_stream_is_read_on_from_where_one_was(
    backend: Implementation, tmp_path: Path
) -> None:
    """`after` and `limit` make pages."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(line(b"a"), line(b"b"), line(b"c")))

        page = await store.read(LogKind.AUDIT, "s", after=1, limit=1)
        rest = await store.read(LogKind.AUDIT, "s", after=3)

    assert page == (LogEntry(sequence=2, body=b"b"),)
    assert rest == ()


@every_store
async def test_an_empty_stream_has_nothing(backend: Implementation, tmp_path: Path) -> None:
    """A stream without entries is no error."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        assert await store.read(LogKind.AUDIT, "s") == ()
        assert await store.last(LogKind.AUDIT, "s") is None
        assert await store.streams(LogKind.AUDIT) == ()


@every_store
@pytest.mark.parametrize("after", [0, 1, 3])
async def test_an_entry_after_another_than_the_last_is_a_conflict(
    backend: Implementation, tmp_path: Path, after: int
) -> None:
    """A writer with an old view of a log adds nothing to it."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(line(b"a"), line(b"b")))

        with pytest.raises(Conflict):
            await store.commit(chore(line(b"c", after=after)))
        last = await store.last(LogKind.AUDIT, "s")

    assert last == LogEntry(sequence=2, body=b"b")
