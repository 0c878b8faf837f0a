"""Audit chains of any length are checked in the background, and verdicts stay true."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from tests.fakes.chains import verify
from tests.fakes.house_parts import Facts
from tests.fakes.manual_clock import EPOCH, ManualClock
from tests.fakes.memory_store import MemoryStore
from zeroclaw.console import chain_checks
from zeroclaw.console.audit import Checked, Checking
from zeroclaw.console.chain_checks import MAX_UNASKED, ChainChecker
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate import audit
from zeroclaw.gate.audit import GENESIS, Broken, Entry, Intact, Kind, head_of, link
from zeroclaw.inbound.anchors import SLICE, STREAM, Anchors, verify_streams
from zeroclaw.store import Append, LogEntry, LogKind, Trim

CONVERSATION, OTHER = "01HERE", "01THERE"


@dataclass(kw_only=True)
class Bench:
    """A chain checker over its own store."""

    store: MemoryStore = field(default_factory=MemoryStore)
    clock: ManualClock = field(default_factory=ManualClock)
    facts: Facts = field(default_factory=Facts)
    changes: int = 0
    chains: ChainChecker = field(init=False)

    def __post_init__(self) -> None:
        self.chains = ChainChecker(self.store, self.clock, changed=self._changed, log=self.facts)

    def _changed(self) -> None:
        self.changes += 1

    async def write(self, stream: str, count: int) -> None:
        """Append this many entries to a chain."""
        newest = await self.store.last(LogKind.AUDIT, stream)
        head = GENESIS if newest is None else head_of(newest.body)
        writes: list[Append] = []
        for _ in range(count):
            body, head = link(head, Entry(kind=Kind.REVOKED, at=EPOCH))
            writes.append(Append(log=LogKind.AUDIT, stream=stream, body=body))
        await self.store.write(*writes)

    async def spoil(self, stream: str, body: bytes = b"{}") -> None:
        """Append bytes that are no entry."""
        await self.store.write(Append(log=LogKind.AUDIT, stream=stream, body=body))

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Let time pass until the condition is true."""
        while not is_true():
            await self.clock.advance(1)

    async def checked(self, stream: str) -> Intact | Broken:
        """Check one chain, and return the verdict."""
        self.chains.enqueue(stream)
        last = await self.store.last(LogKind.AUDIT, stream)
        assert last is not None
        await self.until(lambda: isinstance(self.chains.check_of(stream, 1), Checked))
        check = self.chains.check_of(stream, last.sequence)
        assert isinstance(check, Checked)
        return check.verdict


@asynccontextmanager
async def bench() -> AsyncGenerator[Bench]:
    bench = Bench()
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(bench.chains.run())
        yield bench
        keeping.cancel()


async def test_an_intact_chain_is_intact() -> None:
    async with bench() as rig:
        await rig.write(CONVERSATION, 3)
        verdict = await rig.checked(CONVERSATION)
        assert isinstance(verdict, Intact)
        assert (verdict.count, rig.changes) == (3, 1)
        assert not rig.chains.is_due(CONVERSATION, 3)
        assert rig.facts.seen == []


async def test_a_damaged_chain_is_announced_and_logged() -> None:
    async with bench() as rig:
        await rig.write(CONVERSATION, 2)
        await rig.spoil(CONVERSATION)
        verdict = await rig.checked(CONVERSATION)
        assert isinstance(verdict, Broken)
        assert verdict.at == 3
        assert rig.facts.events() == ["audit_damaged"]


async def test_a_truncated_chain_is_detected_by_its_anchor() -> None:
    """Even if the daemon's own chain is longer than a slice."""
    async with bench() as rig:
        await rig.write(CONVERSATION, 3)
        await rig.write(OTHER, 1)
        await rig.write(STREAM, SLICE)
        await Anchors(rig.store, rig.clock).anchor()
        assert isinstance(await rig.checked(CONVERSATION), Intact)
        rig.store.drop_last(CONVERSATION)
        assert await rig.checked(CONVERSATION) == Broken(
            at=3, reason="it is missing: an anchor counts 3 entries"
        )
        assert isinstance(await rig.checked(STREAM), Intact)


async def test_a_long_chain_is_checked_in_slices_and_shows_its_progress() -> None:
    """Between two slices everything else goes on (P9)."""
    async with bench() as rig:
        await rig.write(CONVERSATION, 2 * SLICE + 1)
        rig.chains.enqueue(CONVERSATION, OTHER)
        assert rig.chains.check_of(CONVERSATION, 401) == Checking(done=0, total=401)
        while rig.clock.sleeping() == ():
            await rig.clock.settle()
        assert rig.chains.check_of(CONVERSATION, 401) == Checking(done=SLICE, total=2 * SLICE + 1)
        assert rig.chains.check_of(OTHER, 9) == Checking(done=0, total=9)
        await rig.until(lambda: rig.chains.check_of(OTHER, 9) is None)
        check = rig.chains.check_of(CONVERSATION, 401)
        assert isinstance(check, Checked)
        assert isinstance(check.verdict, Intact)


async def test_a_chain_trimmed_during_its_check_is_checked_again() -> None:
    """The cuts of retention are noted and are no damage, however many entries follow."""
    async with bench() as rig:
        await rig.write(CONVERSATION, SLICE + 10)
        rig.chains.enqueue(CONVERSATION)
        while rig.clock.sleeping() == ():
            await rig.clock.settle()
        [last] = await rig.store.read(LogKind.AUDIT, CONVERSATION, after=SLICE + 4, limit=1)
        await Anchors(rig.store, rig.clock).cut(CONVERSATION, last)
        await rig.write(STREAM, SLICE)
        await rig.until(lambda: isinstance(rig.chains.check_of(CONVERSATION, 1), Checked))
        check = rig.chains.check_of(CONVERSATION, 1)
        assert isinstance(check, Checked)
        assert isinstance(check.verdict, Intact)
        assert check.verdict.count == SLICE + 10


async def test_a_chain_trimmed_at_every_read_is_given_up() -> None:
    """The next view of the chain checks it again."""

    class Melting(MemoryStore):
        """Loses its oldest entry, unnoted, whenever its beginning is read."""

        async def read(
            self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
        ) -> tuple[LogEntry, ...]:
            entries = await super().read(log, stream, after=after, limit=limit)
            if limit == 1 and after == 0 and stream == CONVERSATION:
                trim = Trim(log=log, stream=stream, before=entries[0].sequence + 1)
                await self.write(trim)
            return entries

    rig = Bench(store=Melting())
    await rig.write(CONVERSATION, 20)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(rig.chains.run())
        assert isinstance(await rig.checked(CONVERSATION), Broken)
        keeping.cancel()


async def test_checking_many_chains_reads_the_daemons_chain_once() -> None:
    """It holds a year of everyone's anchors; entries that retention removes meanwhile are no
    damage."""

    class Cut(MemoryStore):
        """Loses half of a chain by age once all anchors have been read."""

        readings = 0

        async def read(
            self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
        ) -> tuple[LogEntry, ...]:
            entries = await super().read(log, stream, after=after, limit=limit)
            if (log, stream, limit, entries) == (LogKind.AUDIT, STREAM, SLICE, ()):
                self.readings += 1
                if self.readings == 1:
                    [half] = await super().read(log, CONVERSATION, after=9, limit=1)
                    await Anchors(self, rig.clock).cut(CONVERSATION, half)
            return entries

    rig = Bench(store=(store := Cut()))
    streams = [CONVERSATION, *(f"01THERE{number}" for number in range(8))]
    for stream in streams:
        await rig.write(stream, 20)
    await rig.write(STREAM, 1)
    verdicts = await verify_streams(store, streams)
    assert [verdict.count for verdict in verdicts if isinstance(verdict, Intact)] == [20] * len(
        streams
    )
    assert store.readings == 2


async def test_a_daemons_chain_that_cannot_be_read_is_damage_too() -> None:
    async with bench() as rig:
        await rig.write(CONVERSATION, 1)
        await rig.spoil(STREAM, CONVERSATION.encode())
        verdict = await rig.checked(CONVERSATION)
        assert verdict == Broken(at=0, reason="the daemon's own chain can't be read")
        assert rig.facts.events() == ["audit_damaged"]


async def test_a_read_error_of_the_store_is_not_damage() -> None:
    """The chain is then unknown; a later check finds it intact."""

    class Failing(MemoryStore):
        """Can't be read while it fails."""

        failing = False

        async def read(
            self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
        ) -> tuple[LogEntry, ...]:
            if self.failing:
                raise StoreUnusable("the disk failed to read")
            return await super().read(log, stream, after=after, limit=limit)

    store = Failing()
    rig = Bench(store=store)
    await rig.write(CONVERSATION, 2)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(rig.chains.run())
        assert isinstance(await rig.checked(CONVERSATION), Intact)
        store.failing = True
        rig.chains.enqueue(CONVERSATION)
        await rig.until(lambda: rig.chains.check_of(CONVERSATION, 2) is None)
        store.failing = False
        assert isinstance(await rig.checked(CONVERSATION), Intact)
        keeping.cancel()
    assert rig.facts.events() == ["audit_not_checked"]


async def test_an_entry_that_can_not_be_decoded_is_damage() -> None:
    """So are JSON escapes that no text may hold, and entries nested too deeply to read."""
    async with bench() as rig:
        await rig.write(CONVERSATION, 1)
        await rig.write(OTHER, 1)
        body, _ = link(GENESIS, Entry(kind=Kind.REVOKED, at=EPOCH, by="x"))
        await rig.spoil(CONVERSATION, body.replace(b'"x"', b'"\\ud800"'))
        await rig.spoil(OTHER, b"[" * 100_000)
        for stream in (CONVERSATION, OTHER):
            verdict = await rig.checked(stream)
            assert isinstance(verdict, Broken)
            assert verdict.at == 2


async def test_a_chain_that_grew_is_checked_again_unless_it_is_long() -> None:
    """A long one shows its old verdict, and waits for the button."""
    async with bench() as rig:
        assert rig.chains.is_due(CONVERSATION, 1)
        await rig.write(CONVERSATION, 1)
        await rig.checked(CONVERSATION)
        assert not rig.chains.is_due(CONVERSATION, 1)
        assert rig.chains.is_due(CONVERSATION, 2)
        assert not rig.chains.is_due(CONVERSATION, MAX_UNASKED + 1)


async def test_the_oldest_verdicts_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_checks, "MAX_RESULTS", 1)
    async with bench() as rig:
        await rig.write(CONVERSATION, 1)
        await rig.write(OTHER, 1)
        await rig.checked(CONVERSATION)
        await rig.checked(OTHER)
        assert rig.chains.check_of(CONVERSATION, 1) is None


async def test_the_verdict_of_a_removed_chain_is_dropped() -> None:
    async with bench() as rig:
        await rig.write(CONVERSATION, 1)
        await rig.checked(CONVERSATION)
        rig.store.drop_last(CONVERSATION)
        rig.chains.enqueue(CONVERSATION)
        await rig.until(lambda: rig.chains.check_of(CONVERSATION, 1) is None)


async def test_a_caller_waits_no_longer_than_its_timeout() -> None:
    async with bench() as rig:
        await rig.chains.wait_idle(60)
        await rig.write(CONVERSATION, 2 * SLICE)
        rig.chains.enqueue(CONVERSATION)
        await rig.chains.wait_idle(0)
        assert isinstance(rig.chains.check_of(CONVERSATION, 1), Checking)


async def test_the_check_in_slices_equals_the_check_in_one_go() -> None:
    """The same function, in steps."""
    bodies = [link(GENESIS, Entry(kind=Kind.REVOKED, at=EPOCH))[0]]
    walk = audit.begin()
    audit.take(walk, bodies)
    assert audit.end(walk) == verify(bodies)
    assert audit.marks_of(bodies, {CONVERSATION}) == []
