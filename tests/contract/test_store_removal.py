"""Every store's promises for removals: the oldest entries of a log, and blobs."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.store_implementations import Implementation
from tests.contract.store_writes import blob, chore, every_store, line
from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.errors import Conflict
from zeroclaw.store import DropBlob, LogEntry, LogKind, Trim

DAY = timedelta(days=1)


def trim(before: int, *, stream: str = "s", log: LogKind = LogKind.AUDIT) -> Trim:
    return Trim(log=log, stream=stream, before=before)


# --- logs -----------------------------------------------------------------------------------------


@every_store
async def test_what_stays_of_a_trimmed_stream_keeps_its_numbers(
    backend: Implementation, tmp_path: Path
) -> None:
    """An entry keeps its number, and the next one continues the count."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(*(line(body) for body in (b"a", b"b", b"c", b"d"))))

        await store.commit(chore(trim(3)))
        await store.commit(chore(trim(2)))
        await store.commit(chore(line(b"e", after=4)))

        assert await store.read(LogKind.AUDIT, "s") == (
            LogEntry(sequence=3, body=b"c"),
            LogEntry(sequence=4, body=b"d"),
            LogEntry(sequence=5, body=b"e"),
        )
        assert await store.read(LogKind.AUDIT, "s", after=3, limit=1) == (
            LogEntry(sequence=4, body=b"d"),
        )
        assert await store.last(LogKind.AUDIT, "s") == LogEntry(sequence=5, body=b"e")
        with pytest.raises(Conflict):
            await store.commit(chore(line(b"f", after=3)))


@every_store
async def test_a_stream_that_loses_everything_begins_anew(
    backend: Implementation, tmp_path: Path
) -> None:
    """It is gone from the list of streams, and no other stream or log is touched."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(line(b"a"), line(b"b"), line(b"kept", stream="t")))

        await store.commit(chore(trim(9), trim(9, stream="nobody"), trim(9, log=LogKind.JOURNAL)))

        assert await store.streams(LogKind.AUDIT) == ("t",)
        assert await store.last(LogKind.AUDIT, "s") is None
        await store.commit(chore(line(b"new", after=0)))
        assert await store.last(LogKind.AUDIT, "s") == LogEntry(sequence=1, body=b"new")
        assert await store.last(LogKind.AUDIT, "t") == LogEntry(sequence=1, body=b"kept")


@every_store
async def test_a_trim_is_undone_with_its_commit(backend: Implementation, tmp_path: Path) -> None:
    """All or nothing, as with every write."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(line(b"a"), line(b"b"), blob(b"kept")))

        with pytest.raises(Conflict):
            await store.commit(
                chore(trim(2), DropBlob(digest=blob(b"kept").digest), line(b"c", after=9))
            )

        assert len(await store.read(LogKind.AUDIT, "s")) == 2
        assert await store.blob(blob(b"kept").digest) == b"kept"


# --- blobs ----------------------------------------------------------------------------------------


@every_store
async def test_blobs_are_found_by_when_they_were_last_put(
    backend: Implementation, tmp_path: Path
) -> None:
    """Putting the same bytes again renews them; the oldest come first."""
    clock = ManualClock()
    async with backend.opened(tmp_path, clock) as store:
        old, renewed, new = blob(b"old"), blob(b"renewed"), blob(b"new")
        older = blob(b"older")
        await store.commit(chore(older, renewed))
        await clock.advance(1)
        await store.commit(chore(old))
        await clock.advance(DAY.total_seconds() - 1)
        await store.commit(chore(renewed, new))

        found = (older.digest, old.digest)
        assert await store.blobs(put_before=EPOCH) == ()
        assert await store.blobs(put_before=EPOCH + DAY) == found
        assert await store.blobs(put_before=EPOCH + DAY, limit=1) == found[:1]
        assert len(await store.blobs(put_before=EPOCH + 2 * DAY)) == 4


@every_store
async def test_a_dropped_blob_is_gone(backend: Implementation, tmp_path: Path) -> None:
    """Dropping one that is gone already is no error."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        dropped, stays = blob(b"gone"), blob(b"stays")
        await store.commit(chore(dropped, stays))

        await store.commit(chore(DropBlob(digest=dropped.digest)))
        await store.commit(chore(DropBlob(digest=dropped.digest)))

        assert await store.blob(dropped.digest) is None
        assert await store.blob(stays.digest) == b"stays"


@every_store
async def test_a_blob_that_was_put_again_since_the_read_stays(
    backend: Implementation, tmp_path: Path
) -> None:
    """A blob is dropped if it was last put before the instant, exclusively."""
    clock = ManualClock()
    async with backend.opened(tmp_path, clock) as store:
        old, renewed = blob(b"old"), blob(b"renewed")
        await store.commit(chore(old, renewed))
        await clock.advance(DAY.total_seconds())
        await store.commit(chore(renewed))

        drops = (DropBlob(digest=blob_.digest, put_before=EPOCH + DAY) for blob_ in (old, renewed))
        await store.commit(chore(*drops))

        assert await store.blob(old.digest) is None
        assert await store.blob(renewed.digest) == b"renewed"
        await store.commit(chore(DropBlob(digest=blob(b"never").digest, put_before=EPOCH)))


@every_store
async def test_a_clock_that_was_set_back_spares_no_blob(
    backend: Implementation, tmp_path: Path
) -> None:
    """A blob from a future instant, before the clock was set back, counts as old and is dropped.

    Unless it was put again under the present clock.
    """
    clock = ManualClock()
    async with backend.opened(tmp_path, clock) as store:
        early, renewed = blob(b"early"), blob(b"renewed")
        await store.commit(chore(early, renewed))
        clock.leap(-DAY)
        read_at = clock.now()
        await store.commit(chore(renewed))

        drops = (DropBlob(digest=blob_.digest, put_before=read_at) for blob_ in (early, renewed))
        await store.commit(chore(*drops))

        assert await store.blob(early.digest) is None
        assert await store.blob(renewed.digest) == b"renewed"


@every_store
async def test_removed_data_is_used_no_more(backend: Implementation, tmp_path: Path) -> None:
    """The used size shrinks with removals, so that a bound on it can be kept."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        bodies = [bytes([number]) * 1000 for number in range(100)]
        await store.commit(chore(*(line(body) for body in bodies), *map(blob, bodies)))
        full = await store.used_bytes()

        await store.commit(chore(trim(101), *(DropBlob(digest=blob(b).digest) for b in bodies)))

        assert full >= 200_000
        assert await store.used_bytes() < full / 2
