"""The sweep removes old rows, and none that is still in use."""

import asyncio
import hashlib
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.fakes.house import House, World
from tests.fakes.scripted_model import LOOK, POKE, says
from zeroclaw.config.model import RetentionSettings
from zeroclaw.errors import StoreUnusable, ungrouped
from zeroclaw.gate import audit
from zeroclaw.inbound.anchors import STREAM, verify_stream
from zeroclaw.retention.sweep import BATCH, CHECK_S, EVERY_S, MAX_STEPS
from zeroclaw.store import (
    Append,
    Commit,
    Delete,
    DropBlob,
    DurablePoint,
    LogEntry,
    LogKind,
    Put,
    PutBlob,
    Query,
    RowKind,
    Store,
    Trim,
    Write,
)
from zeroclaw.tool import ToolContext, ToolOutput
from zeroclaw.turn import entries

LONG = timedelta(days=400)
SWEPT_KINDS = (
    RowKind.INBOX,
    RowKind.TURN,
    RowKind.OUTBOX,
    RowKind.APPROVAL,
    RowKind.ACTION,
    RowKind.GRANT,
)


async def counts(store: Store) -> dict[str, int]:
    """The number of rows of each kind that is swept."""
    return {str(kind): len(await store.select(Query(kind=kind))) for kind in SWEPT_KINDS}


async def finish_sweep(world: World, house: House) -> None:
    """Let a sweep that has begun finish."""
    for _ in range(20):
        await house.advance(0.1)


async def sweep_a_day_later(world: World, house: House) -> None:
    """Let the sweep run that a start postpones after a long pause."""
    await house.advance(EVERY_S)
    await finish_sweep(world, house)


async def intact_chains(store: Store) -> list[str]:
    """Verify every audit stream; returns those of conversations."""
    streams = await store.streams(LogKind.AUDIT)
    for stream in streams:
        assert isinstance(await verify_stream(store, stream), audit.Intact), stream
    return [stream for stream in streams if stream != STREAM]


async def test_an_unconfirmed_erasure_request_is_swept(world: World) -> None:
    """With the other due rows, once a day; the file is then rewritten, as after an erasure."""
    async with world.running() as house:
        await house.say("/forget")
        await house.say("/forget", "ben")
        assert len(await house.rows(RowKind.FORGETTING)) == 2
        await sweep_a_day_later(world, house)
        assert await house.rows(RowKind.FORGETTING) == ()


async def test_old_finished_rows_are_swept_after_the_start(world: World) -> None:
    """Messages, answers, approval requests, calls, grants and the journal; the chat goes on."""
    world.model.will(LOOK, says("seen"), POKE, says("poked"))
    async with world.running() as house:
        await house.say("look")
        await house.say("poke")
        await house.press("for_a_time")
        before = await counts(world.store)
        assert before["grant"] == 1
        assert all(before.values())
        await house.advance(300)
    world.clock.leap(LONG)
    async with world.running() as house:
        await sweep_a_day_later(world, house)
        assert await counts(world.store) == dict.fromkeys(before, 0)
        assert await world.store.streams(LogKind.JOURNAL) == ()
        assert len(await intact_chains(world.store)) == 1
        [conversation] = await house.rows(RowKind.CONVERSATION)
        await house.say("and now?")
        assert house.texts()[-1] == "ok"
        [row] = await house.rows(RowKind.TURN)
        assert row.conversation == conversation.key
        assert len(await intact_chains(world.store)) == 1
        [oldest] = await world.store.read(LogKind.AUDIT, STREAM, limit=1)
        assert audit.read(oldest.body).at > world.clock.now() - timedelta(days=1)


async def test_an_old_copy_of_an_earlier_schema_is_swept(world: World) -> None:
    """It holds the messages of its time."""
    async with world.running() as house:
        old, young = (world.clock.now() - timedelta(days=days) for days in (90, 88))
        world.store.copies = [old, young]
        await sweep_a_day_later(world, house)
        assert world.store.copies == [young]


async def test_young_rows_stay(world: World) -> None:
    """Nothing is written by a sweep that finds nothing."""
    world.model.will(POKE, says("poked"))
    async with world.running() as house:
        await house.say("poke")
        await house.press()
    world.clock.leap(timedelta(days=29))
    before = (await counts(world.store), len(world.store.commits))
    async with world.running() as house:
        await finish_sweep(world, house)
        assert (await counts(world.store), len(world.store.commits)) == before


async def test_a_busy_conversation_is_not_swept(world: World) -> None:
    """A turn that waits for an answer keeps its request, its call and its history (P3)."""
    world.configure(approvals=world.config.approvals.model_copy(update={"timeout_s": 10.0**9}))
    world.model.will(LOOK, says("seen"), POKE, says("poked"))
    async with world.running() as house:
        await house.say("look")
        await house.say("poke")
        before = await counts(world.store)
    world.clock.leap(LONG)
    async with world.running() as house:
        await sweep_a_day_later(world, house)
        assert await counts(world.store) == before
        await house.press()
        assert house.texts()[-1] == "poked"
        assert len(world.poke.runs) == 1
        assert len(await intact_chains(world.store)) == 1


async def test_the_sweep_runs_daily(world: World) -> None:
    """The next one is a day after the last."""
    world.configure(retention=RetentionSettings(messages_days=1))
    async with world.running() as house:
        await house.say("hello")
        world.clock.leap(timedelta(days=2))
        await house.advance(EVERY_S - CHECK_S)
        assert await house.rows(RowKind.INBOX)
        await house.advance(2 * CHECK_S)
        assert not await house.rows(RowKind.INBOX)


async def test_a_wrong_clock_at_a_start_sweeps_nothing(world: World) -> None:
    """Nor at the next start, when some messages have that time, until the clock is corrected."""
    async with world.running() as house:
        await house.say("hello")
    world.clock.leap(LONG)
    for _ in range(2):
        async with world.running() as house:
            await house.say("what day is it?")
            await house.advance(EVERY_S / 3)
    world.clock.leap(-LONG)
    async with world.running() as house:
        await sweep_a_day_later(world, house)
        assert len(await house.rows(RowKind.INBOX)) == 3


async def test_a_clock_that_is_wrong_for_some_hours_sweeps_nothing(world: World) -> None:
    """The sweep in between is put off, and finds the clock as it was."""
    async with world.running() as house:
        await house.say("hello")
        world.clock.leap(LONG)
        await house.advance(EVERY_S + CHECK_S)
        world.clock.leap(-LONG)
        await house.advance(2 * EVERY_S)
        assert len(await house.rows(RowKind.INBOX)) == 1


async def test_a_machine_that_sleeps_most_of_the_time_is_swept(world: World) -> None:
    """Each sweep sees a clock leap, since the monotonic clock stands still while the machine
    sleeps."""
    async with world.running() as house:
        await house.say("hello")
        for _ in range(12):
            world.clock.leap(timedelta(days=10))
            await house.advance(EVERY_S)
        assert not await house.rows(RowKind.INBOX)


async def test_a_machine_that_is_off_at_night_is_swept(world: World) -> None:
    """There are no messages for weeks, and no run lasts the day that a sweep waits after a leap."""
    world.configure(retention=RetentionSettings(messages_days=10))
    async with world.running() as house:
        await house.say("hello")
    for _ in range(12):
        world.clock.leap(timedelta(days=1))
        async with world.running() as house:
            await finish_sweep(world, house)
    assert not await house.rows(RowKind.INBOX)


async def test_an_unreferenced_conversation_is_swept_whole(world: World) -> None:
    """A conversation ended by `/new` goes once it is empty and its audit is old; cuts are noted."""
    world.model.will(LOOK, says("seen"), LOOK, says("again"))
    async with world.running() as house:
        await house.say("look")
        await house.say("/new")
        await house.say("look")
        await house.advance(300)
        assert len(await intact_chains(world.store)) == 2
    world.clock.leap(LONG)
    async with world.running() as house:
        await sweep_a_day_later(world, house)
        [remaining] = await house.rows(RowKind.CONVERSATION)
        assert await intact_chains(world.store) == [remaining.key]
    world.clock.leap(timedelta(days=100))
    async with world.running() as house:
        await sweep_a_day_later(world, house)
        assert await intact_chains(world.store) == [remaining.key]


async def test_a_conversation_stays_as_long_as_any_of_its_rows(world: World) -> None:
    """Rows that are kept longer than the messages still belong to the conversation."""
    world.configure(retention=RetentionSettings(messages_days=1, audit_days=1, approvals_days=9))
    world.model.will(POKE, says("poked"))
    async with world.running() as house:
        await house.say("poke")
        await house.press()
        await house.say("/new")
    for remaining in (2, 1):
        world.clock.leap(timedelta(days=6))
        async with world.running() as house:
            await finish_sweep(world, house)
            assert len(await house.rows(RowKind.CONVERSATION)) == remaining


async def test_an_empty_conversation_waits_for_its_audit(world: World) -> None:
    """Approvals stay on record longer than messages."""
    world.model.will(LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look")
        await house.say("/new")
        await house.say("/new")
    world.clock.leap(timedelta(days=100))
    async with world.running() as house:
        await sweep_a_day_later(world, house)
        first, last = await house.rows(RowKind.CONVERSATION)
        assert await intact_chains(world.store) == [first.key]
        assert last.key != first.key


async def test_the_audit_of_a_forgotten_conversation_goes_whole(world: World) -> None:
    """Its row is gone, and nothing will be appended; the cut is noted."""
    world.model.will(LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look")
        await house.advance(300)
        [row] = await house.rows(RowKind.CONVERSATION)
    world.store.forget(RowKind.CONVERSATION)
    world.clock.leap(LONG)
    async with world.running() as house:
        await sweep_a_day_later(world, house)
        assert await intact_chains(world.store) == []
        check = await verify_stream(world.store, row.key)
        assert isinstance(check, audit.Intact)
        assert check.count == 3


async def test_a_conversation_removed_during_a_sweep_does_not_end_the_daemon(world: World) -> None:
    """An erasure may remove it first; the daemon goes on (P9)."""
    world.model.will(LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look")
        await house.say("/new")
        await house.advance(300)
    commits: list[Commit] = []

    def remove_first(commit: Commit) -> None:
        if any(isinstance(write, Delete) and write.kind is kind for write in commit.writes):
            commits.append(commit)
            world.store.forget(kind)

    kind = RowKind.CONVERSATION
    world.store.before = remove_first
    world.clock.leap(LONG)
    async with world.running() as house:
        await sweep_a_day_later(world, house)
        assert commits
        await house.say("hello")
        assert house.texts()[-1] == "ok"


async def test_a_damaged_audit_does_not_end_the_daemon(world: World) -> None:
    """An operator has to inspect it; people are answered meanwhile (P9)."""
    async with world.running() as house:
        await world.store.write(Append(log=LogKind.AUDIT, stream=STREAM, body=b"[]"))
        await world.store.write(Append(log=LogKind.AUDIT, stream=STREAM, body=b"[]"))
    async with world.running() as house:
        await finish_sweep(world, house)
        await house.say("hello")
        assert house.texts() == ["ok"]


async def test_blobs_are_swept_by_age(world: World) -> None:
    """Those that were stored again meanwhile stay."""
    bodies = {str(number).encode(): str(number) * 64 for number in range(6)}
    await world.store.write(*(PutBlob(digest=_digest(body), body=body) for body in bodies))
    world.clock.leap(timedelta(days=31))
    await world.store.write(PutBlob(digest=_digest(b"5"), body=b"5"))
    async with world.running() as house:
        await finish_sweep(world, house)
        assert await world.store.blob(_digest(b"5")) == b"5"
        assert await world.store.blob(_digest(b"4")) is None


async def test_a_blob_that_is_put_again_while_it_is_swept_stays(world: World) -> None:
    """The new user of the same bytes finds them, and no other blob waits for this one."""
    bodies = (b"1", b"2")
    await world.store.write(*(PutBlob(digest=_digest(body), body=body) for body in bodies))
    world.clock.leap(timedelta(days=31))
    renewed: list[PutBlob] = []

    async def put_again(writes: tuple[Write, ...]) -> None:
        if any(isinstance(write, DropBlob) for write in writes) and not renewed:
            renewed.append(PutBlob(digest=_digest(b"2"), body=b"2"))
            await world.store.write(*renewed)

    world.store.meanwhile = put_again
    async with world.running() as house:
        await finish_sweep(world, house)
        assert renewed
        assert await world.store.blob(_digest(b"1")) is None
        assert await world.store.blob(_digest(b"2")) == b"2"


async def test_a_long_journal_is_trimmed_in_pieces(world: World) -> None:
    """Memory holds some of it at a time, and other commits get in between (P9)."""
    async with world.running() as house:
        await house.say("hello")
    (stream,) = await world.store.streams(LogKind.JOURNAL)
    turn = await world.store.read(LogKind.JOURNAL, stream)
    again = (Append(log=LogKind.JOURNAL, stream=stream, body=entry.body) for entry in turn)
    await world.store.write(*(*again,) * MAX_STEPS)
    world.clock.leap(LONG)
    async with world.running() as house:
        await sweep_a_day_later(world, house)
    trims = [
        write
        for commit in world.store.commits
        for write in commit.writes
        if isinstance(write, Trim)
    ]
    cuts = [0, *(trim.before - 1 for trim in trims if trim.log is LogKind.JOURNAL)]
    assert (cuts[-1], await world.store.streams(LogKind.JOURNAL)) == (
        len(turn) * (MAX_STEPS + 1),
        (),
    )
    assert max(after - before for before, after in pairwise(cuts)) <= MAX_STEPS + len(turn)


async def test_a_turn_longer_than_a_piece_is_trimmed_whole(world: World) -> None:
    """Its entries are read until its end is found."""
    async with world.running() as house:
        await house.say("hello")
    (stream,) = await world.store.streams(LogKind.JOURNAL)
    opened, *rest = await world.store.read(LogKind.JOURNAL, stream)
    noted = entries.encode(entries.Noted(text="", why="edited", at=world.clock.now()))
    bodies = (opened.body, *[noted] * MAX_STEPS, *(entry.body for entry in rest))
    await world.store.write(
        Trim(log=LogKind.JOURNAL, stream=stream, before=1 + len(rest) + 1),
        *(Append(log=LogKind.JOURNAL, stream=stream, body=body) for body in bodies),
    )
    world.clock.leap(LONG)
    async with world.running() as house:
        await sweep_a_day_later(world, house)
    assert await world.store.streams(LogKind.JOURNAL) == ()


async def test_the_row_of_a_cut_result_is_swept_with_the_journal(world: World) -> None:
    """Until then a reader of its id gets the answer that the full result is gone."""

    async def long_output(_context: ToolContext) -> ToolOutput:
        return ToolOutput(text="a " * 15_000)

    world.look.does = long_output
    world.model.will(LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look")
        assert len(await house.rows(RowKind.RESULT)) == 1
    world.clock.leap(LONG)
    async with world.running() as house:
        await sweep_a_day_later(world, house)
        assert await house.rows(RowKind.RESULT) == ()


async def test_more_is_swept_while_the_store_is_over_its_bound(world: World) -> None:
    """The days are halved, and halved again; if that is not enough, the log says so."""
    world.configure(retention=RetentionSettings(max_disk_mb=1))
    await world.store.write(PutBlob(digest=_digest(b"a" * 600_000), body=b"a" * 600_000))
    world.clock.leap(timedelta(days=16))
    await world.store.write(PutBlob(digest=_digest(b"b" * 600_000), body=b"b" * 600_000))
    async with world.running() as house:
        await finish_sweep(world, house)
        assert await world.store.used_bytes() < 1_000_000
        assert await world.store.blob(_digest(b"b" * 600_000)) is not None
        await world.store.write(PutBlob(digest=_digest(b"c" * 600_000), body=b"c" * 600_000))
        await house.advance(CHECK_S)
        assert await world.store.used_bytes() > 1_000_000


@pytest.mark.parametrize("log", list(LogKind))
async def test_damaged_records_do_not_block_the_sweep(world: World, log: LogKind) -> None:
    """A damaged log or row stays for an operator to inspect; everything else is swept."""
    async with world.running() as house:
        await house.say("hello")
        [row] = await house.rows(RowKind.OUTBOX)
    await world.store.write(
        Append(log=log, stream="damaged", body=b"?"),
        Put(kind=RowKind.OUTBOX, key=row.key + "1", body=b"?", state="delivered"),
        Put(kind=RowKind.COUNTER, key="there#a", body=b"7", place="there"),
        Put(kind=RowKind.COUNTER, key="there#b", body=b"?", place="there"),
    )
    world.clock.leap(LONG)
    async with world.running() as house:
        await sweep_a_day_later(world, house)
        assert [row.body for row in await house.rows(RowKind.OUTBOX)] == [b"?"]
        assert not await house.rows(RowKind.INBOX)
        assert [row.body for row in await house.rows(RowKind.COUNTER)] == [b"7", b"?"]
        assert "damaged" in await world.store.streams(log)


@pytest.mark.parametrize("unread", list(LogKind))
async def test_a_read_error_of_the_disk_is_not_a_damaged_record(
    world: World, unread: LogKind
) -> None:
    """It ends the daemon with one line, as any failure of the store, and blames no log."""
    world.model.will(LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look")
    read = world.store.read

    async def failing(
        log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
    ) -> tuple[LogEntry, ...]:
        if log is unread:
            raise StoreUnusable("the disk failed to read")
        return await read(log, stream, after=after, limit=limit)

    world.store.read = failing
    world.clock.leap(LONG)
    with pytest.raises(StoreUnusable, match="the disk failed to read"), ungrouped():
        async with world.running() as house:
            await sweep_a_day_later(world, house)


async def test_a_row_that_changes_during_the_sweep_stays(world: World) -> None:
    """Of a batch, only rows that have not changed since they were read are removed."""
    for number in range(BATCH + 1):
        await world.store.write(
            Put(kind=RowKind.INBOX, key=f"0000{number:04}", body=b"", state="answered")
        )
    first = Put(kind=RowKind.INBOX, key="00000000", body=b"new", state="answered")
    touched = asyncio.Event()
    write = world.store.commit

    async def touch_first(commit: Commit) -> None:
        if not touched.is_set():
            touched.set()
            await write(Commit(point=DurablePoint.HOUSEKEEPING, writes=(first,)))
        await write(commit)

    world.store.commit = touch_first
    async with world.running() as house:
        await house.advance(EVERY_S)
        for _ in range(BATCH + 10):
            await house.advance(0.1)
        assert [row.body for row in await house.rows(RowKind.INBOX)] == [b"new"]


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


# --- memory ----------------------------------------------------------------

OLD = timedelta(days=400)


@pytest.mark.parametrize("lately", [True, False])
async def test_swept_messages_are_not_sent_to_the_model_again(world: World, lately: bool) -> None:
    """A conversation that stays open forgets its old messages while the process runs, too."""
    async with world.running() as house:
        await house.say("one")
        world.clock.leap(OLD)
        if lately:
            await house.say("two")
        await house.advance(2 * EVERY_S)
        for _ in range(20):
            await house.advance(0.1)
        await house.say("three")
        expected = ["user: two", "assistant: ok"] if lately else []
        assert world.model.asked() == [*expected, "user: three"]
