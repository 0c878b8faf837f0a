"""Tables, and plans that are made anew while others write."""

from datetime import timedelta

import pytest

from tests.fakes.manual_clock import EPOCH
from tests.fakes.memory_store import MemoryStore
from zeroclaw.conversation.inbox import Fragment, PersonMessage
from zeroclaw.delivery.rows import ApprovalCard, FilePost, TextPost
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import AlreadyClaimed, Conflict, StoreUnusable
from zeroclaw.store import (
    TRIES,
    Claim,
    Commit,
    DurablePoint,
    Put,
    Query,
    Reads,
    RowKind,
    Write,
    scan,
    transact,
)
from zeroclaw.table import Column, Stays, Table, json_codec
from zeroclaw.turn.states import TurnLimits
from zeroclaw.value import Value

HERE = ConversationId("01HERE")
STORED_AS: dict[type[Value], str] = {
    ApprovalCard: "Ask",
    FilePost: "File",
    Fragment: "Piece",
    PersonMessage: "Ask",
    TextPost: "Text",
    TurnLimits: "Limits",
}
LATER = EPOCH + timedelta(days=1)


class Score(Value):
    """The points of a player."""

    points: int


class Best(Value):
    """Another shape among the scores."""

    who: str


SCORES = Table(
    kind=RowKind.SWITCH,
    codec=json_codec(Score),
    columns=frozenset({Column.STATE}),
    keeps=Stays(until="the test is over"),
)


@pytest.mark.parametrize("kind", STORED_AS)
def test_a_renamed_class_keeps_its_stored_tag(kind: type[Value]) -> None:
    """A store of an earlier release still opens."""
    assert kind.__struct_config__.tag == STORED_AS[kind]


def commit(*writes: Write) -> Commit:
    return Commit(point=DurablePoint.HOUSEKEEPING, writes=writes)


async def one_more(reads: Reads) -> tuple[Commit | None, int]:
    score = await SCORES.get(reads, "ada")
    points = 1 if score is None else score.points + 1
    return commit(SCORES.put("ada", Score(points=points))), points


# --- tables ---------------------------------------------------------------------------------------


async def test_a_value_comes_back_from_its_table() -> None:
    """A put carries every column; a value is read from a row, and from what is written there."""
    store = MemoryStore()
    put = SCORES.put("ada", Score(points=3), conversation=HERE, state="on", place="p", due_at=LATER)
    await store.commit(commit(put, SCORES.put("bea", Score(points=5))))

    assert SCORES.of(put) == Score(points=3)
    assert await SCORES.get(store, "ada") == Score(points=3)
    assert await SCORES.get(store, "ben") is None
    [row] = await store.select(SCORES.where(state="on"))
    assert (row.key, row.conversation, row.place, row.due_at) == ("ada", HERE, "p", LATER)
    assert [score.points async for score in SCORES.all(store)] == [3, 5]
    assert [score.points async for score in SCORES.all(store, after="ada")] == [5]

    await store.commit(commit(SCORES.delete("ada")))
    assert await SCORES.get(store, "ada") is None


async def test_rows_of_another_shape_share_a_kind() -> None:
    """Each is read as its own shape; read as the other one, it is refused."""
    store = MemoryStore()
    best = SCORES.holding(json_codec(Best))
    await store.commit(commit(best.put("#", Best(who="ada"))))

    assert await best.get(store, "#") == Best(who="ada")
    with pytest.raises(StoreUnusable):
        await SCORES.get(store, "#")


async def test_a_scan_reads_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row comes, in the order that the query names."""
    monkeypatch.setattr("zeroclaw.store.PAGE", 2)
    store = MemoryStore()
    await store.commit(commit(*[SCORES.put(key, Score(points=1)) for key in "abcde"]))

    found = [row.key async for row in scan(store, SCORES.where())]
    backwards = [row.key async for row in scan(store, SCORES.where(newest_first=True))]

    assert found == list("abcde")
    assert backwards == list("edcba")


# --- transactions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("had", [None, 4])
async def test_a_plan_is_made_anew_when_what_it_read_has_changed(had: int | None) -> None:
    """Nothing that another writer wrote meanwhile is lost, where there was no row before too."""
    store = MemoryStore()
    if had is not None:
        await store.commit(commit(SCORES.put("ada", Score(points=had))))
    first = 0 if had is None else had

    async def another_writer(_: tuple[Write, ...]) -> None:
        store.meanwhile = None
        await store.commit(commit(SCORES.put("ada", Score(points=first + 10))))

    store.meanwhile = another_writer

    assert await transact(store, one_more) == first + 11
    assert await SCORES.get(store, "ada") == Score(points=first + 11)


async def test_a_row_that_a_plan_selected_and_writes_is_guarded() -> None:
    """Nothing that another writer wrote meanwhile is lost or deleted."""
    store = MemoryStore()
    await store.commit(
        commit(SCORES.put("ada", Score(points=1)), SCORES.put("bea", Score(points=2)))
    )

    made: list[int] = []

    async def double_or_drop(reads: Reads) -> tuple[Commit | None, None]:
        first, *_ = [score.points async for score in SCORES.all(reads)]
        made.append(first)
        put = SCORES.put("ada", Score(points=2 * first))
        return commit(put if first < 10 else SCORES.delete("ada")), None

    async def another_writer(_: tuple[Write, ...]) -> None:
        store.meanwhile = None
        await store.commit(commit(SCORES.put("ada", Score(points=10))))

    store.meanwhile = another_writer
    await transact(store, double_or_drop)
    await store.commit(commit(SCORES.put("ada", Score(points=20))))
    store.meanwhile = another_writer
    await transact(store, double_or_drop)

    assert made == [1, 10, 20, 10]
    assert await SCORES.get(store, "ada") is None


async def test_a_row_that_a_plan_selected_only_may_change() -> None:
    """Looking through a thousand rows for one of them makes no conflict with their writers."""
    store = MemoryStore()
    await store.commit(
        commit(SCORES.put("ada", Score(points=1)), SCORES.put("bea", Score(points=2)))
    )
    made: list[int] = []

    async def add_one(reads: Reads) -> tuple[Commit | None, None]:
        made.append(sum([score.points async for score in SCORES.all(reads)]))
        return commit(SCORES.put("ada", Score(points=2))), None

    async def another_writer(_: tuple[Write, ...]) -> None:
        store.meanwhile = None
        await store.commit(commit(SCORES.put("bea", Score(points=20))))

    store.meanwhile = another_writer
    await transact(store, add_one)

    assert made == [3]
    assert await SCORES.get(store, "ada") == Score(points=2)


async def test_an_unguarded_read_may_change() -> None:
    """The plan is made once, though another writer changed what it read."""
    store = MemoryStore()
    made: list[int] = []

    async def look(reads: Reads) -> tuple[Commit | None, None]:
        await SCORES.get(reads.unguarded, "ada")
        made.append(await reads.count(SCORES.where()))
        return commit(SCORES.put("bea", Score(points=1))), None

    async def another_writer(_: tuple[Write, ...]) -> None:
        store.meanwhile = None
        await store.commit(commit(SCORES.put("ada", Score(points=1))))

    store.meanwhile = another_writer
    await transact(store, look)

    assert made == [0]


async def test_the_version_that_was_read_first_counts() -> None:
    """A row that changes while its plan is made makes the plan void, read twice or not."""
    store = MemoryStore()
    made: list[int] = []

    async def plan(reads: Reads) -> tuple[Commit | None, None]:
        await SCORES.get(reads, "ada")
        if not made:
            await store.commit(commit(SCORES.put("ada", Score(points=9))))
        made.append(1)
        await SCORES.get(reads, "ada")
        return commit(SCORES.put("bea", Score(points=1))), None

    await transact(store, plan)

    assert len(made) == 2


async def test_nothing_to_write_commits_nothing() -> None:
    """A plan may come to its result by reading alone."""
    store = MemoryStore()

    async def plan(reads: Reads) -> tuple[Commit | None, str]:
        await SCORES.get(reads, "ada")
        return None, "nobody"

    assert await transact(store, plan) == "nobody"
    assert store.commits == []


async def test_a_plan_is_given_up_after_so_many_tries() -> None:
    """One clear error, and nothing was written by the plan."""
    store = MemoryStore()
    times = 0

    async def another_writer(writes: tuple[Write, ...]) -> None:
        nonlocal times
        if any(isinstance(write, Put) and write.key == "ada" for write in writes):
            times += 1
            store.touch(RowKind.SWITCH)

    await store.commit(commit(SCORES.put("ada", Score(points=1))))
    store.meanwhile = another_writer

    with pytest.raises(Conflict, match=f"{TRIES} times: try again"):
        await transact(store, one_more)
    assert times == TRIES
    assert await SCORES.get(store, "ada") == Score(points=1)


async def test_another_refusal_is_not_tried_again() -> None:
    """A claim that was taken stays taken."""
    store = MemoryStore()
    await store.commit(commit(Claim(keys=("k",), until=LATER)))
    made: list[Query] = []

    async def plan(reads: Reads) -> tuple[Commit | None, None]:
        made.append(SCORES.where())
        await reads.select(SCORES.where())
        return commit(Claim(keys=("k",), until=LATER)), None

    with pytest.raises(AlreadyClaimed):
        await transact(store, plan)
    assert len(made) == 1
