"""Chains are looked through in the background: whatever their length, and what is found stays true."""

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

HERE, THERE = "01HERE", "01THERE"


@dataclass(kw_only=True)
class Bench:
    """Chains over a store of their own."""

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
        """Append what is no entry."""
        await self.store.write(Append(log=LogKind.AUDIT, stream=stream, body=body))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let time pass until something holds."""
        while not holds():
            await self.clock.advance(1)

    async def checked(self, stream: str) -> Intact | Broken:
        """ConsoleReader through one chain, and return what it came to."""
        self.chains.enqueue(stream)
        last = await self.store.last(LogKind.AUDIT, stream)
        assert last is not None
        await self.until(lambda: isinstance(self.chains.check_of(stream, 1), Checked))
        check = self.chains.check_of(stream, last.sequence)
        assert isinstance(check, Checked)
        return check.verdict


@asynccontextmanager
async def bench() -> AsyncGenerator[Bench]:
    made = Bench()
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(made.chains.run())
        yield made
        keeping.cancel()


async def test_a_whole_chain_is_found_whole() -> None:
    async with bench() as here:
        await here.write(HERE, 3)
        verdict = await here.checked(HERE)
        assert isinstance(verdict, Intact)
        assert (verdict.count, here.changes) == (3, 1)
        assert not here.chains.is_due(HERE, 3)
        assert here.facts.seen == []


async def test_a_damaged_chain_is_told_of_and_logged() -> None:
    async with bench() as here:
        await here.write(HERE, 2)
        await here.spoil(HERE)
        verdict = await here.checked(HERE)
        assert isinstance(verdict, Broken)
        assert verdict.at == 3
        assert here.facts.events() == ["audit_damaged"]


async def test_a_chain_that_lost_its_end_is_known_by_its_anchor() -> None:
    """Also where the daemon's own chain is longer than a slice."""
    async with bench() as here:
        await here.write(HERE, 3)
        await here.write(THERE, 1)
        await here.write(STREAM, SLICE)
        await Anchors(here.store, here.clock).anchor()
        assert isinstance(await here.checked(HERE), Intact)
        here.store.drop_last(HERE)
        assert await here.checked(HERE) == Broken(
            at=3, reason="it is missing: an anchor counts 3 entries"
        )
        assert isinstance(await here.checked(STREAM), Intact)


async def test_a_long_chain_is_taken_in_slices_and_shows_how_far_it_is() -> None:
    """Between two slices everything else goes on (P9)."""
    async with bench() as here:
        await here.write(HERE, 2 * SLICE + 1)
        here.chains.enqueue(HERE, THERE)
        assert here.chains.check_of(HERE, 401) == Checking(done=0, total=401)
        while here.clock.sleeping() == ():
            await here.clock.settle()
        assert here.chains.check_of(HERE, 401) == Checking(done=SLICE, total=2 * SLICE + 1)
        assert here.chains.check_of(THERE, 9) == Checking(done=0, total=9)
        await here.until(lambda: here.chains.check_of(THERE, 9) is None)
        found = here.chains.check_of(HERE, 401)
        assert isinstance(found, Checked)
        assert isinstance(found.verdict, Intact)


async def test_a_chain_whose_oldest_go_meanwhile_is_begun_anew() -> None:
    """What retention removes is noted, and no damage, however much is noted after it."""
    async with bench() as here:
        await here.write(HERE, SLICE + 10)
        here.chains.enqueue(HERE)
        while here.clock.sleeping() == ():
            await here.clock.settle()
        [last] = await here.store.read(LogKind.AUDIT, HERE, after=SLICE + 4, limit=1)
        await Anchors(here.store, here.clock).cut(HERE, last)
        await here.write(STREAM, SLICE)
        await here.until(lambda: isinstance(here.chains.check_of(HERE, 1), Checked))
        found = here.chains.check_of(HERE, 1)
        assert isinstance(found, Checked)
        assert isinstance(found.verdict, Intact)
        assert found.verdict.count == SLICE + 10


async def test_a_chain_that_is_cut_again_and_again_is_given_up() -> None:
    """It is asked for again by whoever looks at it next."""

    class Melting(MemoryStore):
        """Loses its oldest entry, unnoted, whenever its beginning is read."""

        async def read(
            self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
        ) -> tuple[LogEntry, ...]:
            found = await super().read(log, stream, after=after, limit=limit)
            if limit == 1 and after == 0 and stream == HERE:
                gone = Trim(log=log, stream=stream, before=found[0].sequence + 1)
                await self.write(gone)
            return found

    here = Bench(store=Melting())
    await here.write(HERE, 20)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(here.chains.run())
        assert isinstance(await here.checked(HERE), Broken)
        keeping.cancel()


async def test_many_chains_cost_one_reading_of_the_daemons() -> None:
    """It holds a year of marks of everybody; what retention removes meanwhile is no damage."""

    class Cut(MemoryStore):
        """Loses half of a chain by age once the marks of all have been read."""

        readings = 0

        async def read(
            self, log: LogKind, stream: str, *, after: int = 0, limit: int = 100_000
        ) -> tuple[LogEntry, ...]:
            found = await super().read(log, stream, after=after, limit=limit)
            if (log, stream, limit, found) == (LogKind.AUDIT, STREAM, SLICE, ()):
                self.readings += 1
                if self.readings == 1:
                    [half] = await super().read(log, HERE, after=9, limit=1)
                    await Anchors(self, here.clock).cut(HERE, half)
            return found

    here = Bench(store=(store := Cut()))
    streams = [HERE, *(f"01THERE{number}" for number in range(8))]
    for stream in streams:
        await here.write(stream, 20)
    await here.write(STREAM, 1)
    found = await verify_streams(store, streams)
    assert [one.count for one in found if isinstance(one, Intact)] == [20] * len(streams)
    assert store.readings == 2


async def test_a_daemons_chain_that_cannot_be_read_is_damage_too() -> None:
    async with bench() as here:
        await here.write(HERE, 1)
        await here.spoil(STREAM, HERE.encode())
        verdict = await here.checked(HERE)
        assert verdict == Broken(at=0, reason="the daemon's own chain can't be read")
        assert here.facts.events() == ["audit_damaged"]


async def test_a_store_that_cannot_be_read_is_no_damage_and_ends_nothing() -> None:
    """Nothing is known of the chain then; looked through later, it is whole."""

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
    here = Bench(store=store)
    await here.write(HERE, 2)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(here.chains.run())
        assert isinstance(await here.checked(HERE), Intact)
        store.failing = True
        here.chains.enqueue(HERE)
        await here.until(lambda: here.chains.check_of(HERE, 2) is None)
        store.failing = False
        assert isinstance(await here.checked(HERE), Intact)
        keeping.cancel()
    assert here.facts.events() == ["audit_not_checked"]


async def test_an_entry_that_nobody_could_have_written_is_damage() -> None:
    """Also what JSON can spell and no text may hold, and what is nested beyond reading."""
    async with bench() as here:
        await here.write(HERE, 1)
        await here.write(THERE, 1)
        body, _ = link(GENESIS, Entry(kind=Kind.REVOKED, at=EPOCH, by="x"))
        await here.spoil(HERE, body.replace(b'"x"', b'"\\ud800"'))
        await here.spoil(THERE, b"[" * 100_000)
        for stream in (HERE, THERE):
            verdict = await here.checked(stream)
            assert isinstance(verdict, Broken)
            assert verdict.at == 2


async def test_a_chain_that_grew_is_looked_through_again_unless_it_is_long() -> None:
    """A long one shows what it came to, and waits for the button."""
    async with bench() as here:
        assert here.chains.is_due(HERE, 1)
        await here.write(HERE, 1)
        await here.checked(HERE)
        assert not here.chains.is_due(HERE, 1)
        assert here.chains.is_due(HERE, 2)
        assert not here.chains.is_due(HERE, MAX_UNASKED + 1)


async def test_what_was_found_of_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_checks, "MAX_RESULTS", 1)
    async with bench() as here:
        await here.write(HERE, 1)
        await here.write(THERE, 1)
        await here.checked(HERE)
        await here.checked(THERE)
        assert here.chains.check_of(HERE, 1) is None


async def test_a_chain_that_is_gone_is_known_no_more() -> None:
    async with bench() as here:
        await here.write(HERE, 1)
        await here.checked(HERE)
        here.store.drop_last(HERE)
        here.chains.enqueue(HERE)
        await here.until(lambda: here.chains.check_of(HERE, 1) is None)


async def test_nobody_waits_longer_than_their_patience() -> None:
    async with bench() as here:
        await here.chains.wait_idle(60)
        await here.write(HERE, 2 * SLICE)
        here.chains.enqueue(HERE)
        await here.chains.wait_idle(0)
        assert isinstance(here.chains.check_of(HERE, 1), Checking)


async def test_all_that_is_checked_is_what_the_daemon_checks_elsewhere() -> None:
    """The same function, in steps."""
    bodies = [link(GENESIS, Entry(kind=Kind.REVOKED, at=EPOCH))[0]]
    walk = audit.begin()
    audit.take(walk, bodies)
    assert audit.end(walk) == verify(bodies)
    assert audit.marks_of(bodies, {HERE}) == []
