"""Keeps every channel receiving: restarts it with back-off, and no channel delays another.

    starting ──ready──► up ──error──► waiting ──time──► starting
        └──────error──────────────────┘
    any ──unauthorized, stopped, or a fault in the configuration──► down

An exception of one channel does not affect the others: `status` shows it, and operators get a notice
on another channel, one for each time that it goes down. On some platforms sending has credentials of
its own; operators also get a notice if those are refused while the channel is up.

A poison message is an event that makes our own code fail, or needs a damaged record. A platform
redelivers an event that was not stored, and nothing after it, so one such event would silence a
whole channel until an operator acts. After enough tries the event is dropped, with a notice to the
operators. An unavailable store is not such a fault: the channel waits for it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal

from zeroclaw.backoff import BackOff
from zeroclaw.channel import Admit, Channel, Log
from zeroclaw.clock import Clock
from zeroclaw.envelope import Admission, Envelope, Ignored
from zeroclaw.errors import (
    ChannelStopped,
    ChannelUnauthorized,
    ChannelUnavailable,
    ConfigError,
    RateLimited,
    RecordUnreadable,
    ZeroclawError,
    first_of,
)
from zeroclaw.foreign import Raised, call, place_of
from zeroclaw.host.answers import ChannelSeen
from zeroclaw.host.clock import begin_in
from zeroclaw.recent import Recent
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.value import Struct, field

BACK_OFF = BackOff(first_s=1.0, longest_s=15.0)
"""The channel receives nothing meanwhile, so no longer than a person waits for a sign of life."""
STEADY_S = 60.0
"""After this time without a failure the back-off starts anew and earlier failures do not count."""
MAX_REFUSED, REFUSED_S = 5, 60.0
"""Tries of a key that is refused after a steady time, before a person has to act, and the wait between
them. Platforms refuse good keys at times (github.com/tdlib/telegram-bot-api/issues/77, read 2026-11); some
mail servers lock an account after ten bad logins."""
CLOSE_S = 5.0
"""Seconds that an adapter gets to close."""
NOTICE_AFTER = 3
"""Failures in a row before operators get a notice; one lost connection is worth none."""
TRIES = 20
"""Tries of an event before it is dropped; channels wait about a second in between."""
MAX_TRACKED = 256
"""Events whose tries are counted at the same time; beyond that the oldest count starts again."""

Condition = Literal["starting", "up", "waiting", "down"]


class PoisonMessages(Struct, kw_only=True, eq=False):
    """Admits events to ingress for one channel, and drops poison messages; see `Supervisor`.

    Attributes:
        has_received: Whether an event was taken or dropped since this was last reset.
    """

    channel: str
    ingress: Admit
    tell_operators: Callable[[str, Localized], Awaitable[None]]
    log: Log
    _tries: Recent[tuple[str, ...], int] = field(default_factory=lambda: Recent(MAX_TRACKED))
    has_received: bool = False

    async def admit(self, envelope: Envelope) -> Admission:
        """Pass an event to ingress.

        Raises:
            ChannelUnavailable: A fault in the code; the event may be passed again.
            ZeroclawError: As ingress raised it; the same holds.
        """
        admission = await call(lambda: self.ingress(envelope))
        if not isinstance(admission, Raised):
            self._tries.pop(envelope.dedup, None)
            self.has_received = True
            return admission
        error, reason = admission.error, admission.line
        is_ours = isinstance(error, ZeroclawError)
        if is_ours and not isinstance(error, RecordUnreadable):
            raise error
        # Counted even after it is given up: it may come again behind events that are still tried.
        tries = self._tries[envelope.dedup] = self._tries.get(envelope.dedup, 0) + 1
        if tries < TRIES:
            if is_ours:
                raise error
            message = f"a fault in the code: an event {reason}"
            raise ChannelUnavailable(message) from error
        if tries == TRIES:
            self.log(
                "event_given_up", channel=self.channel, reason=reason, tries=tries, level="error"
            )
            sentence = catalogue.EVENT_GIVEN_UP.about(channel=self.channel, why=reason)
            await self.tell_operators("", sentence)
        self.has_received = True
        return Ignored()


class Supervisor(Struct, kw_only=True, eq=False):
    """Runs `receive` of every channel for as long as the daemon lives.

    Attributes:
        admit: Ingress.
        clock: For back-off.
        tell_operators: Called with a sentence, and the failed channel, which it must not use.
        log: For facts.
        states: The condition of each channel, by name.
    """

    admit: Admit
    clock: Clock
    tell_operators: Callable[[str, Localized], Awaitable[None]]
    log: Log
    states: dict[str, ChannelSeen] = field(default_factory=dict[str, ChannelSeen])
    # The channels whose refused calls were reported to operators.
    _reported: set[str] = field(default_factory=set[str])

    async def keep(
        self,
        name: str,
        make: Callable[[], Channel],
        up: Callable[[Channel], None],
        ready: Callable[[str], None],
    ) -> None:
        """Run one channel until cancelled, or until only a person can fix it.

        Args:
            name: The name in the configuration.
            make: Makes the adapter; an exception counts as a failed start.
            up: Called with the adapter as soon as others may send through it.
            ready: Called with the name when the platform has answered, and receives.
        """
        failures = waits = tries_left = 0
        is_reported = False
        # It outlives the adapter, which may restart between two tries of an event.
        poison = PoisonMessages(
            channel=name, ingress=self.admit, tell_operators=self.tell_operators, log=self.log
        )

        def is_up() -> None:
            self._note(name, "up")
            ready(name)

        async def run() -> Exception:
            channel: Channel | None = None
            try:
                channel = make()
                up(channel)
                received = await call(partial(channel.receive, poison.admit, is_up))
                message = "it stopped receiving by itself"
                return first_of(received.error) if received else RuntimeError(message)
            except Exception as error:  # noqa: BLE001  a channel's fault stays in its channel
                return first_of(error)
            finally:
                if channel is not None:
                    await self._close(name, channel)

        while True:
            self._note(name, "starting")
            began, poison.has_received = self.clock.monotonic(), False
            error = await run()
            if poison.has_received and isinstance(error, ChannelUnavailable):
                # Events arrived meanwhile, so this is another lost connection, not the same one.
                waits = 0
            if self.clock.monotonic() - began >= STEADY_S:
                failures, waits, tries_left, is_reported = 0, 0, MAX_REFUSED, False
            failures, waits = failures + 1, waits + 1
            reason = fault_line(error)
            is_refused = isinstance(error, ChannelUnauthorized)
            tries_left -= is_refused
            is_final = isinstance(error, ConfigError | ChannelStopped)
            if is_final or (is_refused and tries_left <= 0):
                self._note(name, "down", reason)
                self.log("channel_down", channel=name, reason=reason, level="error")
                sentence = catalogue.CHANNEL_DOWN.about(channel=name, why=reason)
                await self.tell_operators(name, sentence)
                return
            self._note(name, "waiting", reason)
            minimum_s = error.retry_after_s if isinstance(error, RateLimited) else 0.0
            minimum_s = REFUSED_S if is_refused else minimum_s
            wait_s = max(BACK_OFF.wait_s(waits), minimum_s)
            self.log(
                "channel_failed", channel=name, reason=reason, again_in_s=wait_s, level="warning"
            )
            if failures >= NOTICE_AFTER and not is_reported and name not in self._reported:
                is_reported = True
                await self._report_failing(name, reason)
            await self.clock.sleep(wait_s)

    async def note_refused(self, name: str, reason: str, times: int) -> None:
        """Report calls that are refused while the channel receives.

        Args:
            name: The channel.
            reason: The reason.
            times: The refusals in a row, 0 once the platform has answered.
        """
        self.log("calls_refused", channel=name, reason=reason, times=times, level="warning")
        is_new = name not in self._reported and self.states[name].condition == "up"
        if not times:
            self._reported.discard(name)
        elif times >= NOTICE_AFTER and is_new:
            self._reported.add(name)
            await self._report_failing(name, reason)

    async def _report_failing(self, name: str, reason: str) -> None:
        sentence = catalogue.CHANNEL_KEEPS_FAILING.about(channel=name, why=reason)
        await self.tell_operators(name, sentence)

    async def _close(self, name: str, channel: Channel) -> None:
        """Close an adapter; if that fails it is abandoned."""
        try:
            async with asyncio.timeout(CLOSE_S):
                closed = await call(channel.aclose)
        except TimeoutError:
            self.log("channel_left_open", channel=name, reason=f"no end within {CLOSE_S:g} s")
            return
        if isinstance(closed, Raised):
            self.log("channel_left_open", channel=name, reason=closed.line)

    def _note(self, name: str, condition: Condition, reason: str = "") -> None:
        self.states[name] = ChannelSeen(condition=condition, since=self.clock.now(), why=reason)


async def contain(work: Callable[[], Awaitable[None]]) -> Exception | None:
    """Await one conversation's work, so that its fault ends no other's (P9)."""
    try:
        await work()
    except Exception as error:  # noqa: BLE001  a conversation's fault stays in its conversation
        return first_of(error)
    return None


async def pause(seconds: float, *, clock: Clock, group: asyncio.TaskGroup) -> None:
    """Wait before a retry, unless `group`, which owns the caller, is ending.

    Before Python 3.13 a task group that fails while it is cancelled forgets that it was
    (github.com/python/cpython/issues/116720, read 2026-11), so a caller that retries would never
    end. But a group that is ending takes no more tasks.

    Raises:
        CancelledError: The group is ending.
    """
    waiting = begin_in(group, clock.sleep(seconds), name="pause")
    if waiting is None:
        raise asyncio.CancelledError
    await waiting


def fault_line(error: Exception) -> str:
    """Return an error as one line; of a foreign one only its type, as its text may hold a secret."""
    if isinstance(error, ZeroclawError | RuntimeError):
        return str(error)
    return f"a fault in its code ({type(error).__name__}{place_of(error)})"
