"""Checks audit chains in the background, one at a time, and remembers the results.

There is a pause after each slice of a chain, so neither a long chain nor an operator who keeps
pressing the button delays answers (P9).
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

PAUSE_S = 0.01
"""Pause after each slice."""
MAX_RESULTS = 10_000
"""Chains whose latest result is remembered."""
MAX_UNASKED = 2_000
"""Viewing a chain that has grown starts another check if it has at most this many entries."""


class ChainChecker(Struct, eq=False):
    """Checks chains; the daemon has one.

    Attributes:
        changed: Called after each step.
    """

    logs: Logs
    clock: Clock
    changed: Callable[[], None]
    log: Log
    _results: Recent[str, Checked] = field(default_factory=lambda: Recent(MAX_RESULTS))
    # Maps each queued chain to its number of checked entries; the first one is in progress.
    _queue: dict[str, int] = field(default_factory=dict[str, int])
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    def check_of(self, stream: str, total: int) -> Check:
        """Return the state of the check of a chain with `total` entries."""
        if (done := self._queue.get(stream)) is not None:
            return Checking(done=done, total=max(total, done))
        return self._results.get(stream)

    def is_due(self, stream: str, total: int) -> bool:
        """Whether viewing a chain should start a check of it."""
        check = self.check_of(stream, total)
        has_grown = isinstance(check, Checked) and check.through != total
        return check is None or (has_grown and total <= MAX_UNASKED)

    def enqueue(self, *streams: str) -> None:
        """Queue chains for a check."""
        for stream in streams:
            self._queue.setdefault(stream, 0)
        self._idle.clear()
        self._wake.set()

    async def wait_idle(self, within_s: float) -> None:
        """Wait until all queued checks are done, but at most `within_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._queue:
                    await self._idle.wait()

    async def run(self) -> None:
        """Run queued checks until cancelled."""
        while True:
            self._wake.clear()
            while self._queue:
                stream = next(iter(self._queue))
                await self._check(stream)
                del self._queue[stream]
                self.changed()
            self._idle.set()
            await self._wake.wait()

    async def _check(self, stream: str) -> None:
        async def pause(done: int) -> None:
            self._queue[stream] = done
            self.changed()
            await self.clock.sleep(PAUSE_S)

        self._results.pop(stream, None)
        try:
            verdict = await verify_stream(self.logs, stream, pause)
            last = await self.logs.last(LogKind.AUDIT, stream)
        except StoreUnusable as error:
            # The chain stays without a result, so the next view starts another check.
            self.log("audit_not_checked", stream=stream, reason=str(error), level="error")
            return
        if last is None:
            return
        if isinstance(verdict, Broken):
            self.log(
                "audit_damaged", stream=stream, at=verdict.at, reason=verdict.reason, level="error"
            )
        self._results[stream] = Checked(verdict=verdict, at=self.clock.now(), through=last.sequence)
