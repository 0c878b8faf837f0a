"""The composition root: opens and wires every room, and runs until a signal or a fault stops it.

Start:  store → process groups left by a crash → outbox, overdue approval requests → channels → open turns
Stop:   admit nothing → give turns a grace time → mark open drafts, show open requests → close

One TaskGroup owns every task. An exception in a channel or a conversation stays there; one from the
store or a listener ends the daemon with one line.
"""

import asyncio
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext, suppress

from zeroclaw.daemon.config_check import ChannelPart
from zeroclaw.daemon.foundation import Foundation, Openers, ReadyFacts, Start, open_foundation
from zeroclaw.daemon.operator_page import OperatorPage
from zeroclaw.daemon.services import Services
from zeroclaw.daemon.store_watch import WatchedStore
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ConfigError, RecordUnreadable, Refused, StoreUnusable, ungrouped
from zeroclaw.foreign import call_now
from zeroclaw.host import answers, plugins
from zeroclaw.host.control import Call
from zeroclaw.host.hangup import Hangup
from zeroclaw.host.http import authorities_by_directory, load_library
from zeroclaw.host.logs import EventLog, troubles
from zeroclaw.host.processes import reap
from zeroclaw.host.watchdog import LoopWatch
from zeroclaw.inbound.commands.invocation import switch
from zeroclaw.inbound.conversations import BUSY
from zeroclaw.json_fields import array_at, int_at, text_at
from zeroclaw.limits.usage import first_day, used_since
from zeroclaw.store import Commit, DurablePoint, Put, Query, RowKind, scan
from zeroclaw.text import catalogue
from zeroclaw.turn.tool_calls import PROCESSES
from zeroclaw.value import Value, field, replace

SWITCH_S = 0.0005
"""Seconds that a busy Python thread may keep the event loop waiting for the interpreter lock. The
interpreter's default is ten times that."""
STOP_S = 5.0
"""Seconds for the remaining work after the grace time."""
_LIFELINE_BYTES = 4096
_FOR_OPERATORS = frozenset({RowKind.NOTICE, RowKind.APPROVAL, RowKind.STRANGER})


class Stopped(Exception):
    """Raised inside the task group to end it in the normal way."""


class Hooks(Value):
    """Notifies the caller of `serve`, and lets it stop and reload the daemon."""

    on_ready: Callable[[ReadyFacts], None]
    stop: asyncio.Event
    reload: asyncio.Event = field(default_factory=asyncio.Event)


def run(
    start: Start,
    *,
    on_ready: Callable[[ReadyFacts], None],
    openers: Openers | None = None,
    lifeline: int | None = None,
    hangup: Hangup | None = None,
) -> None:
    """Run the daemon until SIGTERM or SIGINT; SIGHUP reloads; blocks.

    Args:
        start: Its configuration, places and version.
        on_ready: Called once, when it is up.
        openers: Replaces parts of it.
        lifeline: The read end of a pipe whose other end the parent holds. Its end of file means
            that the parent has ended, in whatever way, and stops the daemon too.
        hangup: Created before the configuration was read, so that no SIGHUP is missed; if None,
            created now.

    Raises:
        NeedsOperator: It can't start, or can't go on; the text says what to do.
    """
    watch = LoopWatch(EventLog("watchdog"))

    def ready(facts: ReadyFacts) -> None:
        # Not during the start, which loads modules in a thread: frequent switching slows it down.
        sys.setswitchinterval(SWITCH_S)
        on_ready(facts)
        _tell_service_manager(b"READY=1")
        if (every_us := os.environ.get("WATCHDOG_USEC", "")).isdecimal():
            _beat(int(every_us) / 2_000_000)  # half of the allowed interval, in seconds
        watch.start()

    async def main() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        hooks = Hooks(on_ready=ready, stop=stop)
        hangups = Hangup() if hangup is None else hangup
        actions = {"reload": hooks.reload.set, "stop": stop.set, "nothing": lambda: None}

        def on_hangup() -> None:
            actions[hangups.meaning()]()

        loop.add_signal_handler(signal.SIGHUP, on_hangup)
        hangups.deliver()
        if lifeline is not None:
            loop.add_reader(lifeline, _stop_at_end_of_file, lifeline, stop)
        await serve(start, hooks, openers or Openers())

    try:
        with asyncio.Runner(loop_factory=watch.new_loop) as runner:
            runner.run(main())
    finally:
        watch.stop()


async def serve(start: Start, hooks: Hooks, openers: Openers) -> None:
    """Run the daemon until `hooks.stop` is set.

    Raises:
        NeedsOperator: It can't start, or can't go on.
    """
    async with AsyncExitStack() as stack:
        # Importing takes half of a start; meanwhile the other half waits for disks and processes.
        loop = asyncio.get_running_loop()
        loading = loop.run_in_executor(None, _load, start.checked.channels)
        foundation = await open_foundation(start, openers, stack)
        await _clean_up(foundation)
        await loading
        with ungrouped():
            try:
                async with asyncio.TaskGroup() as group:
                    daemon = Daemon(foundation, hooks, group)
                    group.create_task(daemon.live(), name="daemon")
            except* Stopped:
                pass


class Daemon:
    """The running daemon; its caller opens and closes the foundation."""

    def __init__(self, foundation: Foundation, hooks: Hooks, group: asyncio.TaskGroup) -> None:
        """Wire the rooms; `group` owns every task."""
        self._hooks = hooks
        self._group = group
        self._gave_up = False
        store = WatchedStore(foundation.store, on_failed=self._give_up, on_committed=self._announce)
        self._foundation = replace(foundation, store=store)
        self.services = Services(self._foundation, group)
        self.page = OperatorPage(self.services, group)

    async def live(self) -> None:
        """Start everything, wait for the stop, and shut down."""
        services = self.services
        await services.erasure.clear_unrecorded()
        await services.remember()
        unsent = await services.outbox.resume()
        await services.open_requests.end_overdue()
        await self._wake(unsent)
        self.page.start()
        for name, answer in self._calls().items():
            self._foundation.control.call(name, answer)
        await services.start()
        services.mailboxes.start()
        self._group.create_task(self._reload_on_sighup(), name="reload")
        self._hooks.on_ready(services.ready_facts())
        await self._hooks.stop.wait()
        await self._end()
        raise Stopped

    def _announce(self, commit: Commit) -> None:
        """Tell open pages of a commit, and the task that shows notices and requests to operators."""
        self.page.notifier.notify()
        if any(isinstance(it, Put) and it.kind in _FOR_OPERATORS for it in commit.writes):
            self.services.channels.wakeup.set()

    def _give_up(self, error: StoreUnusable) -> None:
        """End the daemon: it can't keep its promises without a store, and its end is noticed."""

        async def end() -> None:
            raise error

        if not self._gave_up:
            self._gave_up = True
            self._group.create_task(end(), name="store failed")

    # --- start ---------------------------------------------------------------------------------

    async def _wake(self, unsent: Iterable[ConversationId]) -> None:
        """Wake every conversation that has work to do, those with an open turn first.

        Includes those with an unsent answer: a conversation that `/new` began waits for it.
        """
        store = self._foundation.store
        waiting = {
            row.conversation: None
            for kind, state in BUSY
            async for row in scan(store, Query(kind=kind, state=state))
            if row.conversation is not None
        }
        for conversation in waiting | dict.fromkeys(unsent):
            self.services.mailboxes.wake(conversation)

    # --- run -----------------------------------------------------------------------------------

    def _calls(self) -> Mapping[str, Call]:
        return {
            "status": self._status,
            "errors": self._errors,
            "usage": self._usage,
            "redact": self._redact,
            "halt": lambda request: self._switch(request, on=True),
            "resume": lambda request: self._switch(request, on=False),
            "logout": self._log_out,
            "reload": self._reload,
            "receipts": self._receipts,
            "pair": self.services.pair.console,
            "grants": self.services.grants.console,
        }

    async def _status(self, _request: Mapping[str, object]) -> answers.Status:
        report, ready = await self.services.status.report(), self.services.ready_facts()
        return replace(report, login_url=ready.web_url, claim=ready.claim)

    async def _usage(self, request: Mapping[str, object]) -> answers.UsageReport:
        first = first_day(self._foundation.clock.now(), int_at(request, "days") or 1)
        return answers.UsageReport(used=await used_since(self._foundation.store, first))

    async def _errors(self, _request: Mapping[str, object]) -> answers.Errors:
        record, checked = self.services.model_record, self._foundation.start.checked
        reason = checked.redactor.redact(record.reason)
        return answers.Errors(
            errors=troubles(),
            sandbox=self._foundation.shell_note,
            watched=self._foundation.watched,
            model=answers.ModelSeen(failures=record.failures, at=record.at, why=reason),
            secrets=frozenset(checked.resolved),
        )

    async def _redact(self, request: Mapping[str, object]) -> answers.Redacted:
        """Redact texts for a command that lacks the secrets of this process."""
        texts = [*map(str, array_at(request, "texts"))]
        redact = self._foundation.start.checked.redactor.redact
        return answers.Redacted(texts=await asyncio.to_thread(lambda: tuple(map(redact, texts))))

    async def _switch(self, request: Mapping[str, object], *, on: bool) -> answers.Halted:
        actor = text_at(request, "by") or catalogue.BY_CONSOLE.en
        before = not self.services.policy.last_halt.over
        store, now = self._foundation.store, self._foundation.clock.now()
        self.services.take_halt(await switch(store, on=on, by=actor, at=now))
        return answers.Halted(halted=on, before=before)

    async def _log_out(self, _request: Mapping[str, object]) -> answers.LoggedOut:
        listener = self._foundation.listener
        return answers.LoggedOut(sessions=0 if listener is None else await listener.log_out())

    async def _reload(self, _request: Mapping[str, object]) -> answers.Reloaded:
        try:
            return await self.services.reloader.reload()
        except ConfigError as error:
            return answers.Reloaded(faults=error.faults)

    async def _receipts(self, request: Mapping[str, object]) -> answers.Verdicts:
        verdicts = await self.services.receipts.verify(text_at(request, "text"))
        return answers.Verdicts(receipts=tuple(verdicts))

    async def _reload_on_sighup(self) -> None:
        """Reload at each SIGHUP; the result is logged."""
        requested = self._hooks.reload
        while True:
            await requested.wait()
            requested.clear()
            with suppress(ConfigError, Refused):
                await self.services.reloader.reload()

    # --- stop ----------------------------------------------------------------------------------

    async def _end(self) -> None:
        services, grace_s = self.services, self._foundation.settings.config.runtime.grace_s
        services.ingress.open = False
        services.mailboxes.close()
        self._foundation.log("stopping", busy=len(services.mailboxes), grace_s=grace_s)
        try:
            async with asyncio.timeout(grace_s):
                await services.mailboxes.at_rest()
        except TimeoutError:
            services.runner.pause(catalogue.RESTARTED)
        try:
            async with asyncio.timeout(STOP_S):
                await services.open_requests.check()  # a turn may have stored its request just now
                await services.runner.at_rest()
        except TimeoutError:
            self._foundation.log("drafts_unfinished", level="warning")
        await services.anchors.anchor()


def _beat(every_s: float) -> None:
    """Tell systemd every `every_s` that the event loop runs; else it restarts the daemon."""
    _tell_service_manager(b"WATCHDOG=1")
    asyncio.get_running_loop().call_later(every_s, _beat, every_s)


def _tell_service_manager(state: bytes) -> None:
    """Tell systemd, if it started this daemon, that it is up, or still runs (sd_notify(3))."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
    with suppress(OSError), socket.socket(socket.AF_UNIX, kind) as manager:
        manager.sendto(state, f"\0{address[1:]}" if address.startswith("@") else address)


def _stop_at_end_of_file(lifeline: int, stop: asyncio.Event) -> None:
    """Discard the parent's writes; at end of file, stop: the parent has ended."""
    try:
        chunk = os.read(lifeline, _LIFELINE_BYTES)
    except OSError:  # a socket in place of the pipe was reset
        chunk = b""
    if not chunk:
        asyncio.get_running_loop().remove_reader(lifeline)
        stop.set()


def _load(channels: Sequence[ChannelPart]) -> None:
    """Import the channels' modules before any channel is made, so that channels come up quickly.

    Otherwise a resumed turn could find no operator to ask. A module that fails here fails again
    when its channel is made, and is reported then.
    """
    if any(not part.manifest.local_operator for part in channels):
        # Adapters of other platforms import aiohttp, which would load certificates for nothing.
        # Meanwhile packages of other authors are opened, and may read the environment.
        opened = (plugins.TOOLS, plugins.PROVIDERS, plugins.CONTEXT_PROVIDERS)
        is_shared = any(plugins.names(group, of_others=True) for group in opened)
        paths = ssl.get_default_verify_paths()
        with nullcontext() if is_shared else authorities_by_directory(os.environ, paths):
            load_library()
    for part in channels:
        call_now(part.load)


async def _clean_up(foundation: Foundation) -> None:
    """Kill the processes that tools of an earlier daemon left running."""
    async for row in scan(foundation.store, PROCESSES.where()):
        try:
            ended = await asyncio.to_thread(reap, PROCESSES.of(row))
            foundation.log("process_group_reaped", action=row.key, ended=ended)
            if ended == "alive":
                continue  # the next start tries again
        except RecordUnreadable as error:
            reason = str(error)
            foundation.log("process_group_unknown", action=row.key, reason=reason, level="error")
        delete = PROCESSES.delete(row.key)
        await foundation.store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(delete,)))
