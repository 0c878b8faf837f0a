"""Checks audit chains in the background, one at a time, and remembers the results.

A chain is read and hashed in slices, the hashing in a thread, with a pause after each slice. So
neither a long chain nor an operator who presses the button all day delays answers (P9). Memory
holds one slice and the state of `gate.audit.Walk`.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from zeroclaw.channel import ChannelLog
from zeroclaw.clock import Clock
from zeroclaw.console.audit import Check, Checked, Checking
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate import audit
from zeroclaw.gate.audit import Anchor, Broken, Cut, Intact
from zeroclaw.inbound.anchors import STREAM
from zeroclaw.recent import Recent
from zeroclaw.store import LogKind, Logs
from zeroclaw.value import Struct, field

SLICE = 200
"""Entries hashed at once, which takes some 10 ms of CPU time."""
BREATH_S = 0.01
"""Pause after each slice."""
MOST_KNOWN = 10_000
"""Chains whose last result is remembered."""
TRIES = 3
"""Attempts to check a chain whose oldest entries are pruned during the check."""
GROWN = 2_000
"""A chain of up to this many entries is checked again, unasked, when it has grown."""
OWN_DAMAGED = Broken(at=0, why="the daemon's own chain can't be read")
"""The result for every other chain, because their anchors are in this one."""


class ChainChecker(Struct, eq=False):
    """Checks chains; the daemon has one.

    Attributes:
        changed: Called after each step.
    """

    logs: Logs
    clock: Clock
    changed: Callable[[], None]
    log: ChannelLog
    _known: Recent[str, Checked] = field(default_factory=lambda: Recent(MOST_KNOWN))
    # Maps each queued chain to its number of checked entries; the first one is in progress.
    _asked: dict[str, int] = field(default_factory=dict[str, int])
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _rested: asyncio.Event = field(default_factory=asyncio.Event)

    def check_of(self, stream: str, total: int) -> Check:
        """Return the state of the check of a chain with `total` entries."""
        if (done := self._asked.get(stream)) is not None:
            return Checking(done=done, total=max(total, done))
        return self._known.get(stream)

    def wants(self, stream: str, total: int) -> bool:
        """Whether viewing a chain should start a check of it."""
        known = self.check_of(stream, total)
        has_grown = isinstance(known, Checked) and known.through != total
        return known is None or (has_grown and total <= GROWN)

    def ask(self, *streams: str) -> None:
        """Queue chains for a check."""
        for stream in streams:
            self._asked.setdefault(stream, 0)
        self._rested.clear()
        self._wake.set()

    async def rested(self, within_s: float) -> None:
        """Wait until all queued checks are done, but at most `within_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._asked:
                    await self._rested.wait()

    async def keep(self) -> None:
        """Run queued checks until cancelled."""
        while True:
            self._wake.clear()
            while self._asked:
                stream = next(iter(self._asked))
                await self._look(stream)
                del self._asked[stream]
                self.changed()
            self._rested.set()
            await self._wake.wait()

    async def _look(self, stream: str) -> None:
        self._known.pop(stream, None)
        try:
            verdict = await self._verdict(stream)
            last = await self.logs.last(LogKind.AUDIT, stream)
        except StoreUnusable as error:
            # Its state stays unknown, so the next view starts another check.
            self.log("audit_not_checked", stream=stream, why=str(error), level="error")
            return
        if isinstance(verdict, Broken):
            self.log("audit_damaged", stream=stream, at=verdict.at, why=verdict.why, level="error")
        if verdict is not None and last is not None:
            through, at = last.sequence, self.clock.now()
            self._known[stream] = Checked(verdict=verdict, at=at, through=through)

    async def _verdict(self, stream: str) -> Intact | Broken | None:
        """Return the verdict on a chain; None if it does not exist."""
        verdict: Intact | Broken | None = None
        for _ in range(TRIES):
            first = await self.logs.read(LogKind.AUDIT, stream, limit=1)
            if not first:
                return None
            # Read the anchors first: later ones may be about entries that this check does not read.
            noted = await self._noted(stream, first[0].sequence - 1)
            verdict = OWN_DAMAGED if noted is None else await self._walk(stream, *noted)
            now_first = await self.logs.read(LogKind.AUDIT, stream, limit=1)
            if isinstance(verdict, Intact) or now_first == first:
                break
        return verdict

    async def _walk(
        self, stream: str, anchors: Sequence[Anchor], cut: Cut | None
    ) -> Intact | Broken:
        walk, after = audit.begin(anchors, cut), 0
        while page := await self.logs.read(LogKind.AUDIT, stream, after=after, limit=SLICE):
            after = self._asked[stream] = page[-1].sequence
            await asyncio.to_thread(audit.take, walk, [entry.body for entry in page])
            if walk.broken or len(page) < SLICE:
                break
            self.changed()
            await self.clock.sleep(BREATH_S)
        return audit.end(walk)

    async def _noted(self, stream: str, through: int) -> tuple[list[Anchor], Cut | None] | None:
        """Return a chain's anchors in the daemon's chain, and the record of its pruning that fits.

        None if the daemon's chain can't be read.
        """
        here = ConversationId(stream)
        anchors: list[Anchor] = []
        cut: Cut | None = None
        after = 0
        while page := await self.logs.read(LogKind.AUDIT, STREAM, after=after, limit=SLICE):
            after = page[-1].sequence
            bodies = [entry.body for entry in page]
            try:
                anchors += await asyncio.to_thread(audit.anchors_of, bodies, here)
                cut = await asyncio.to_thread(audit.cut_of, bodies, here, through=through) or cut
            except StoreUnusable:
                return None
            await self.clock.sleep(0)
        return anchors, cut
