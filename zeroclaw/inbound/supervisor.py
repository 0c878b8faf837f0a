"""Keeps every channel receiving: restarts it with back-off, and no channel delays another.

    starting ──ready──► up ──error──► waiting ──time──► starting
        └──────error──────────────────┘
    any ──unauthorized, stopped, or a fault in the configuration──► down

An exception of one channel does not affect the others: they go on, `status` shows it, and the
operator is told on another channel, once for each time that it goes down. On some platforms sending
has credentials of its own; the operator is told, too, if they are refused while the channel is up.

A poison message is an event that makes our own code fail, or needs a stored record that is damaged;
it blocks its channel only for a while. A platform redelivers an event that was not stored, and
nothing after it, so one such event would silence a whole channel until an operator looks. After
enough tries the event is dropped, and an operator is told. An unavailable store is not such a fault:
it is waited for.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import PurePath
from traceback import walk_tb
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
from zeroclaw.foreign import Raised, call
from zeroclaw.host.answers import ChannelSeen
from zeroclaw.host.clock import begin_in
from zeroclaw.recent import Recent
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.value import Struct, field

BACK_OFF = BackOff(first_s=1.0, longest_s=15.0)
"""The channel is deaf meanwhile, so no longer than a person waits who has just written."""
STEADY_S = 60.0
"""A channel that was up this long starts with a fresh back-off, and its failures are forgotten."""
MOST_REFUSED, REFUSED_S = 5, 60.0
"""Tries of a key that is refused after a steady time, before a person has to act, and the wait between
them. Platforms refuse good keys at times (github.com/tdlib/telegram-bot-api/issues/77, read 2026-11);
some mail servers lock an account after ten bad logins."""
CLOSE_S = 5.0
"""Seconds that an adapter gets to close."""
TOLD_AFTER = 3
"""Failures in a row before the operator is told; one lost connection is not news."""
TRIES = 20
"""Tries of an event before it is dropped; channels wait about a second in between."""
REMEMBERED = 256
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
    _tries: Recent[tuple[str, ...], int] = field(default_factory=lambda: Recent(REMEMBERED))
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
        error, why = admission.error, admission.line
        is_ours = isinstance(error, ZeroclawError)
        if is_ours and not isinstance(error, RecordUnreadable):
            raise error
        # Counted on after it is given up: it may come again behind others that are still tried.
        tries = self._tries[envelope.dedup] = self._tries.get(envelope.dedup, 0) + 1
        if tries < TRIES:
            if is_ours:
                raise error
            message = f"a fault in the code: an event {why}"
            raise ChannelUnavailable(message) from error
        if tries == TRIES:
            self.log("event_given_up", channel=self.channel, why=why, tries=tries, level="error")
            says = catalogue.EVENT_GIVEN_UP.about(channel=self.channel, why=why)
            await self.tell_operators("", says)
        self.has_received = True
        return Ignored()


class Supervisor(Struct, kw_only=True, eq=False):
    """Runs `receive` of every channel for as long as the daemon lives.

    Attributes:
        admit: Ingress.
        clock: For back-off.
        tell_operators: Called with the name of the failed channel, which it must not use, and a
            sentence.
        log: For facts.
        states: The condition of each channel, by name.
    """

    admit: Admit
    clock: Clock
    tell_operators: Callable[[str, Localized], Awaitable[None]]
    log: Log
    states: dict[str, ChannelSeen] = field(default_factory=dict[str, ChannelSeen])
    # The channels whose refused calls the operator knows of.
    _told: set[str] = field(default_factory=set[str])

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
        is_told = False
        # It outlives the adapter, which may be restarted between two tries of an event.
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
                await channel.receive(poison.admit, is_up)
            except Exception as error:  # noqa: BLE001  a channel's fault stays in its channel
                return first_of(error)
            finally:
                if channel is not None:
                    await self._close(name, channel)
            message = "it stopped receiving by itself"
            return RuntimeError(message)

        while True:
            self._note(name, "starting")
            began, poison.has_received = self.clock.monotonic(), False
            error = await run()
            if poison.has_received and isinstance(error, ChannelUnavailable):
                # Events arrived meanwhile, so this is another lost connection, not the same one.
                waits = 0
            if self.clock.monotonic() - began >= STEADY_S:
                failures, waits, tries_left, is_told = 0, 0, MOST_REFUSED, False
            failures, waits = failures + 1, waits + 1
            why = fault_line(error)
            is_refused = isinstance(error, ChannelUnauthorized)
            tries_left -= is_refused
            is_final = isinstance(error, ConfigError | ChannelStopped)
            if is_final or (is_refused and tries_left <= 0):
                self._note(name, "down", why)
                self.log("channel_went_down", channel=name, why=why, level="error")
                await self.tell_operators(name, catalogue.CHANNEL_DOWN.about(channel=name, why=why))
                return
            self._note(name, "waiting", why)
            asked_s = error.retry_after_s if isinstance(error, RateLimited) else 0.0
            asked_s = REFUSED_S if is_refused else asked_s
            again_in_s = max(BACK_OFF.wait_s(waits), asked_s)
            self.log(
                "channel_failed", channel=name, why=why, again_in_s=again_in_s, level="warning"
            )
            if failures >= TOLD_AFTER and not is_told and name not in self._told:
                is_told = True
                await self._tell_failing(name, why)
            await self.clock.sleep(again_in_s)

    async def note_refused(self, name: str, why: str, times: int) -> None:
        """Tell the operator of calls that are refused while the channel receives.

        Args:
            name: The channel.
            why: The reason.
            times: The refusals in a row, 0 once the platform has answered.
        """
        self.log("calls_refused", channel=name, why=why, times=times, level="warning")
        is_news = name not in self._told and self.states[name].condition == "up"
        if not times:
            self._told.discard(name)
        elif times >= TOLD_AFTER and is_news:
            self._told.add(name)
            await self._tell_failing(name, why)

    async def _tell_failing(self, name: str, why: str) -> None:
        says = catalogue.CHANNEL_KEEPS_FAILING.about(channel=name, why=why)
        await self.tell_operators(name, says)

    async def _close(self, name: str, channel: Channel) -> None:
        """Close an adapter; if that fails it is abandoned."""
        try:
            async with asyncio.timeout(CLOSE_S):
                closed = await call(channel.aclose)
        except TimeoutError:
            self.log("channel_left_open", channel=name, why=f"no end within {CLOSE_S:g} s")
            return
        if isinstance(closed, Raised):
            self.log("channel_left_open", channel=name, why=closed.line)

    def _note(self, name: str, condition: Condition, why: str = "") -> None:
        self.states[name] = ChannelSeen(condition=condition, since=self.clock.now(), why=why)


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
    """Return an error as one line; only the kind of a foreign one, whose text may hold anything."""
    if isinstance(error, ZeroclawError | RuntimeError):
        return str(error)
    return f"a fault in its code ({type(error).__name__}{_place(error)})"


def _place(error: Exception) -> str:
    """Return where an error was raised, as a file's name and a line, which contain no secret."""
    frames = list(walk_tb(error.__traceback__))
    if not frames:
        return ""
    frame, line = frames[-1]
    return f" at {PurePath(frame.f_code.co_filename).name}:{line}"
