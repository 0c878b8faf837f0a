"""Every store's promises for fences, durability and size."""

import asyncio
from pathlib import Path

import pytest

from tests.contract.store_implementations import Implementation
from tests.contract.store_writes import (
    HERE,
    THERE,
    blob,
    chore,
    claim,
    counter,
    durable_store,
    every_store,
    keys,
    line,
)
from tests.fakes.manual_clock import ManualClock
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import AlreadyClaimed, Fenced
from zeroclaw.store import (
    UNFENCED,
    Commit,
    DurablePoint,
    Fence,
    LogEntry,
    LogKind,
    Row,
    RowKind,
    Write,
)

# --- fences ---------------------------------------------------------------------------------------


def turn(fence: Fence | None, *writes: Write, conversation: ConversationId = HERE) -> Commit:
    """A commit that only the conversation's holder may make."""
    return Commit(
        point=DurablePoint.FINISHED, writes=writes, conversation=conversation, fence=fence
    )


@every_store
async def test_the_holder_of_the_newest_fence_may_write(
    backend: Implementation, tmp_path: Path
) -> None:
    """Each conversation has a separate fence."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        first, second = await store.lease(HERE), await store.lease(THERE)
        await store.commit(turn(first, counter("1")))
        await store.commit(turn(second, counter("2"), conversation=THERE))
        await store.commit(turn(first, counter("3")))

        assert await keys(store) == ["1", "2", "3"]


@every_store
async def test_an_older_fence_is_refused_once_a_newer_holder_has_the_conversation(
    backend: Implementation, tmp_path: Path
) -> None:
    """Of two holders the older one writes nothing, however late it wakes up."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        older, newer = await store.lease(HERE), await store.lease(HERE)
        assert newer.token > older.token

        with pytest.raises(Fenced):
            await store.commit(turn(older, counter("old")))
        await store.commit(turn(newer, counter("new")))

        assert await keys(store) == ["new"]


@every_store
async def test_an_older_fence_stays_refused_without_a_holder_of_the_newer_one(
    backend: Implementation, tmp_path: Path
) -> None:
    """A store may forget a conversation without a holder, but not its newest fence (P2)."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        older = await store.lease(HERE)
        await store.lease(HERE)

        with pytest.raises(Fenced):
            await store.commit(turn(older, counter("old")))


@every_store
@pytest.mark.parametrize("point", [point for point in DurablePoint if point not in UNFENCED])
async def test_a_conversation_is_not_written_without_a_fence(
    backend: Implementation, tmp_path: Path, point: DurablePoint
) -> None:
    """Every point but the inbox and an answer needs the fence."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        with pytest.raises(Fenced):
            await store.commit(Commit(point=point, writes=(counter("a"),), conversation=HERE))

        assert await keys(store) == []


@every_store
@pytest.mark.parametrize("point", sorted(UNFENCED))
async def test_the_inbox_and_an_answer_need_no_fence(
    backend: Implementation, tmp_path: Path, point: DurablePoint
) -> None:
    """Messages and answers come in while another holder has the conversation."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        fence = await store.lease(HERE)
        await store.commit(Commit(point=point, writes=(counter("a"),), conversation=HERE))
        await store.commit(turn(fence, counter("b")))

        assert await keys(store) == ["a", "b"]


@every_store
@pytest.mark.parametrize("scope", [THERE, None], ids=["another's", "the daemon's"])
async def test_a_fence_opens_no_other_scope(
    backend: Implementation, tmp_path: Path, scope: ConversationId | None
) -> None:
    """Not even the daemon's, which needs none."""
    async with backend.opened(tmp_path, ManualClock()) as store:
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
async def test_a_fence_that_was_never_issued_is_refused(
    backend: Implementation, tmp_path: Path
) -> None:
    """A made-up token is no lease."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        with pytest.raises(Fenced):
            await store.commit(turn(Fence(conversation=HERE, token=1), counter("a")))


# --- tomorrow -------------------------------------------------------------------------------------


@durable_store
async def test_everything_is_there_after_closing_and_opening_again(
    backend: Implementation, tmp_path: Path
) -> None:
    """Rows, logs, blobs and claims outlive the process."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        await store.commit(chore(claim("a"), counter("1"), line(b"a"), blob(b"kept")))

    async with backend.opened(tmp_path, ManualClock()) as store:
        assert await store.get(RowKind.COUNTER, "1") == Row(
            kind=RowKind.COUNTER, key="1", version=1, body=b"1"
        )
        assert await store.read(LogKind.AUDIT, "s") == (LogEntry(sequence=1, body=b"a"),)
        assert await store.blob(blob(b"kept").digest) == b"kept"
        with pytest.raises(AlreadyClaimed):
            await store.commit(chore(claim("a")))


@durable_store
async def test_a_fence_from_before_a_restart_is_older_than_any_after_it(
    backend: Implementation, tmp_path: Path
) -> None:
    """Tokens grow across restarts, also where the earlier process leased more often."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        before = [await store.lease(HERE) for _ in range(3)][-1]

    async with backend.opened(tmp_path, ManualClock()) as store:
        with pytest.raises(Fenced):
            await store.commit(turn(before, counter("a")))
        after = await store.lease(HERE)
        with pytest.raises(Fenced):
            await store.commit(turn(before, counter("a")))

    assert after.token > before.token


@every_store
async def test_closing_waits_for_what_was_handed_in_and_is_safe_twice(
    backend: Implementation, tmp_path: Path
) -> None:
    """Commits that were handed in before `aclose` return."""
    async with backend.opened(tmp_path, ManualClock()) as store, asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(store.commit(chore(counter(str(number)))))
        await asyncio.sleep(0)
        await store.aclose()
        await store.aclose()


@every_store
async def test_the_store_knows_its_size(backend: Implementation, tmp_path: Path) -> None:
    """More kept is not less disk."""
    async with backend.opened(tmp_path, ManualClock()) as store:
        before = await store.size_bytes()
        await store.commit(chore(*(blob(b"%03d" % number * 300) for number in range(100))))

        assert await store.size_bytes() > before
