"""Checks audit chains in the background, one at a time, and remembers the results.

There is a pause after each slice of a chain. So neither a long chain nor an operator who presses the
button all day delays answers (P9).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from zeroclaw.channel import Log
from zeroclaw.clock import Clock
from zeroclaw.console.audit import Check, Checked, Checking
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate.audit import Broken
from zeroclaw.inbound.anchors import verify_stream
from zeroclaw.recent import Recent
from zeroclaw.store import LogKind, Logs
from zeroclaw.value import Struct, field

BREATH_S = 0.01
"""Pause after each slice."""
MOST_KNOWN = 10_000
"""Chains whose last result is remembered."""
GROWN = 2_000
"""A chain of up to this many entries is checked again, unasked, when it has grown."""


class ChainChecker(Struct, eq=False):
    """Checks chains; the daemon has one.

    Attributes:
        changed: Called after each step.
    """

    logs: Logs
    clock: Clock
    changed: Callable[[], None]
    log: Log
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
        async def pause(done: int) -> None:
            self._asked[stream] = done
            self.changed()
            await self.clock.sleep(BREATH_S)

        self._known.pop(stream, None)
        try:
            verdict = await verify_stream(self.logs, stream, pause)
            last = await self.logs.last(LogKind.AUDIT, stream)
        except StoreUnusable as error:
            # Its state stays unknown, so the next view starts another check.
            self.log("audit_not_checked", stream=stream, why=str(error), level="error")
            return
        if last is None:
            return
        if isinstance(verdict, Broken):
            self.log("audit_damaged", stream=stream, at=verdict.at, why=verdict.why, level="error")
        self._known[stream] = Checked(verdict=verdict, at=self.clock.now(), through=last.sequence)
