"""Looks through audit chains in the background, one at a time, and remembers what it found.

A chain is read and hashed a slice at a time, the hashing in a thread, with a breath after each, so
that neither its length nor an operator who presses the button all day holds up an answer (P9). What is
kept in memory is a slice, and what `gate.audit.Walk` needs.
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
"""Entries hashed at once: some ten milliseconds of one processor."""
BREATH_S = 0.01
"""After each slice."""
MOST_KNOWN = 10_000
"""Chains whose newest check is remembered."""
TRIES = 3
"""A chain whose oldest entries go by their age while it is looked through is begun anew."""
GROWN = 2_000
"""Entries up to which a chain that has grown since is looked through again without being asked."""
OWN_DAMAGED = Broken(at=0, why="the daemon's own chain can't be read")
"""It says what to expect of all others."""


class ChainChecker(Struct, eq=False):
    """Checks chains; one for the whole daemon.

    Attributes:
        changed: Called with each step.
    """

    logs: Logs
    clock: Clock
    changed: Callable[[], None]
    log: ChannelLog
    _known: Recent[str, Checked] = field(default_factory=lambda: Recent(MOST_KNOWN))
    # Each with how many of its entries were looked through; the first is under way.
    _asked: dict[str, int] = field(default_factory=dict[str, int])
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _rested: asyncio.Event = field(default_factory=asyncio.Event)

    def check_of(self, stream: str, total: int) -> Check:
        """Return what is known of a chain of so many entries."""
        if (done := self._asked.get(stream)) is not None:
            return Checking(done=done, total=max(total, done))
        return self._known.get(stream)

    def wants(self, stream: str, total: int) -> bool:
        """Tell whether a chain should be looked through because an operator looks at it."""
        known = self.check_of(stream, total)
        has_grown = isinstance(known, Checked) and known.through != total
        return known is None or (has_grown and total <= GROWN)

    def ask(self, *streams: str) -> None:
        """Have chains looked through, after those that wait already."""
        for stream in streams:
            self._asked.setdefault(stream, 0)
        self._rested.clear()
        self._wake.set()

    async def rested(self, within_s: float) -> None:
        """Wait until nothing is left to look through, but not longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._asked:
                    await self._rested.wait()

    async def keep(self) -> None:
        """Look through what is asked for, until cancelled."""
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
            # Nothing is known of it then; the operator who looks at it next has it looked through again.
            self.log("audit_not_checked", stream=stream, why=str(error), level="error")
            return
        if isinstance(verdict, Broken):
            self.log("audit_damaged", stream=stream, at=verdict.at, why=verdict.why, level="error")
        if verdict is not None and last is not None:
            through, at = last.sequence, self.clock.now()
            self._known[stream] = Checked(verdict=verdict, at=at, through=through)

    async def _verdict(self, stream: str) -> Intact | Broken | None:
        """Return what a chain comes to, None for one that is not there."""
        verdict: Intact | Broken | None = None
        for _ in range(TRIES):
            first = await self.logs.read(LogKind.AUDIT, stream, limit=1)
            if not first:
                return None
            # What is noted of a chain is read before the rest of it: what is noted later may be of
            # entries that come later.
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
        """Return what the daemon's chain says of one, and of its cuts the one that fits.

        None when it can't be read itself.
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
