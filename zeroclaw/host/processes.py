"""Runs a program with bounded output, and kills its whole process group at its end.

A child starts in its own session and process group and waits at a gate: it reads one line before it
executes the program. By then its group has been recorded, and it is in its cgroup, if there is one
(`cgroups`). So even after the daemon was killed, the next one can find the group and kill it.

`/proc` is described in proc(5); the start time is field 22 of `/proc/<pid>/stat`.
"""

import asyncio
import ctypes
import os
import platform
import select
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from zeroclaw.errors import ToolFailed, refused_as, system_words
from zeroclaw.host import seccomp
from zeroclaw.host.cgroups import Closed, Group
from zeroclaw.tool import Spawned
from zeroclaw.value import Value, replace

# If the daemon dies first, the gate sees end of file, and nothing runs.
_GATE = ("/bin/sh", "-c", 'read -r go || exit 125; exec "$@" </dev/null', "gate")
# `read` consumes nothing beyond the line (POSIX), so the rest is the program's input.
_GATE_WITH_INPUT = ("/bin/sh", "-c", 'read -r go || exit 125; exec "$@"', "gate")

PROC = Path("/proc")
CLEANING_S = 15.0  # for everything after one run
_LAST_OUTPUT_S = 2.0  # a process that left the group may keep the pipe open
_DYING_MS = 2_000
_KILLS = 5
_WATCH_S = 0.1
_JOIN_SESSION_KEYRING = 1  # linux/keyctl.h
_STAT_BYTES = 4096  # for a line of some 50 numbers and a name of at most 64 bytes
_NICE = 10
"""A program gets a tenth of a CPU for which it competes with the daemon; sched(7)."""

Recorder = Callable[[Spawned | None], Awaitable[None]]
Watch = Callable[[int], str]
"""Returns which limit a program exceeds, or an empty string; called in a thread."""
Ending = Literal["exited", "timed_out", "flooded", "over_bounds"]
Reaped = Literal["gone", "killed", "alive"]


class OutputCaps(Value):
    """The limits of a child's output, in bytes.

    Attributes:
        head_bytes: Kept from its beginning.
        tail_bytes: Kept from its end.
        flood_bytes: A child that writes more than this is killed.
    """

    head_bytes: int = 196_608
    tail_bytes: int = 65_536
    flood_bytes: int = 134_217_728


class Captured(Value):
    """The kept parts of an output.

    Attributes:
        head: Its beginning.
        tail: Its end, after `head` and the dropped part.
        total_bytes: Size of the whole output.
    """

    head: bytes
    tail: bytes
    total_bytes: int


class ProcessEnd(Value):
    """How a child ended.

    Attributes:
        ending: By itself, at its time-out, or because it wrote or used too much.
        status: Its exit status, or the negative number of the signal that ended it, which the
            daemon sent unless `ending` is `exited`.
        output: Its output, both streams in the order of writing.
        is_gone: Whether every process of its group has ended.
        excess: The limit that it exceeded; empty for none.
    """

    ending: Ending
    status: int
    output: Captured
    is_gone: bool
    excess: str = ""


class Capture:
    """Keeps head and tail of a stream of any length in bounded memory."""

    def __init__(self, caps: OutputCaps) -> None:
        self._caps = caps
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0

    def feed(self, data: bytes) -> None:
        """Add the next piece."""
        self.total_bytes += len(data)
        room = self._caps.head_bytes - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._caps.tail_bytes:
            self._tail = self._tail[-self._caps.tail_bytes :]

    def captured(self) -> Captured:
        """Return the kept parts so far."""
        tail = bytes(self._tail[-self._caps.tail_bytes :])
        return Captured(head=bytes(self._head), tail=tail, total_bytes=self.total_bytes)


class _Child(asyncio.SubprocessProtocol):
    """Collects the output without buffering: cuts each piece to the caps as it arrives."""

    def __init__(self, caps: OutputCaps) -> None:
        self._flood_bytes = caps.flood_bytes
        self.capture = Capture(caps)
        self.ended = asyncio.Event()  # it exited, or wrote too much
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()  # it exited, and no process has its output open

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002  one pipe only
        self.capture.feed(data)
        if self.capture.total_bytes > self._flood_bytes:
            self.ended.set()

    def process_exited(self) -> None:
        self.exited.set()
        self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.closed.set()


async def run(
    argv: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    caps: OutputCaps,
    spawned: Recorder,
    stdin: bytes | None = None,
    pass_fds: tuple[int, ...] = (),
    watch: Watch | None = None,
    group: Group | None = None,
) -> ProcessEnd:
    """Run a program until it ends, or kill it, with every process of its group.

    A program that leaves its process group (`setsid`) escapes, unless it is in a sandbox, which
    dies with its first process, or in a cgroup.

    Args:
        argv: The program, by its absolute path, and its arguments.
        directory: Its working directory.
        environment: Its whole environment; nothing is inherited.
        timeout_s: Seconds from the opening of the gate until it is killed.
        caps: The limits of its output.
        spawned: Awaited with the group before the program starts, and with None when it is gone.
        stdin: Its standard input; None for empty.
        pass_fds: Additional descriptors of the daemon that it inherits.
        watch: Called with its first process while it runs; a non-empty result kills it.
        group: The cgroup to run it in. Closed on return, but the caller must close it if this
            raises.

    Raises:
        ToolFailed: It could not be started.
    """
    child = _Child(caps)
    _leave_keyring()
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.subprocess_exec(
            lambda: child,
            *(_GATE if stdin is None else _GATE_WITH_INPUT),
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=directory,
            env=dict(environment),
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except (OSError, ValueError) as error:
        reason = system_words(error) if isinstance(error, OSError) else str(error)
        message = f"the program could not be started: {reason}"
        raise ToolFailed(message) from error
    pgid = transport.get_pid()
    ending: Ending = "exited"
    excess = ""
    closed = Closed(is_empty=False)
    try:
        await spawned(await asyncio.to_thread(_admit, pgid, group))
        _open_gate(transport, stdin or b"")
        try:
            async with asyncio.timeout(timeout_s):
                excess = await _wait(child, pgid, watch)
        except TimeoutError:  # its end may have come while the watch still looked at it
            ending = "exited" if child.exited.is_set() else "timed_out"
        if excess:
            ending = "over_bounds"
        elif not child.exited.is_set() and ending == "exited":
            ending = "flooded"
    finally:
        _kill(pgid)
        try:
            async with asyncio.timeout(CLEANING_S):
                closed = await _clean_up(child, pgid, group)
                if closed.is_empty:
                    await spawned(None)
        except TimeoutError:
            closed = Closed(is_empty=False)  # its record stays: the next start kills it
        finally:
            transport.close()
    if ending == "exited" and closed.excess:
        ending, excess = "over_bounds", closed.excess
    status = transport.get_returncode()
    return ProcessEnd(
        ending=ending,
        status=-signal.SIGKILL if status is None else status,
        output=child.capture.captured(),
        is_gone=closed.is_empty,
        excess=excess,
    )


def reap(leftover: Spawned) -> Reaped:
    """Kill a group that an earlier daemon started and could not kill; blocks, so call it in a thread.

    A process group is the recorded one while its first process lives and has the recorded start
    time. Once that process is gone, its number may be reused. Its sandbox has died with it, unless
    the sandbox's second process had not yet requested that (PR_SET_PDEATHSIG).

    Returns:
        `gone` if none was left, `killed` if it is gone now, `alive` if it could not be killed.
    """
    if leftover.boot != _boot():
        return "gone"
    first = _process(leftover.pgid)
    if first is None:
        is_same = any(_is_sandbox_of(process, leftover) for _, process in _all())
    else:
        is_same = (first.start_ticks, first.pgid) == (leftover.start_ticks, leftover.pgid)
    if not is_same:
        return "gone"
    return "killed" if end_group(leftover.pgid) else "alive"


def identify(pgid: int) -> Spawned:
    """Identify a group by its living first process; reads `/proc`, so call it in a thread.

    Raises:
        ToolFailed: There is no such process.
    """
    process = _process(pgid)
    if process is None:
        message = "the program ended before it began"
        raise ToolFailed(message)
    return Spawned(pgid=pgid, start_ticks=process.start_ticks, boot=_boot())


def _admit(pgid: int, group: Group | None) -> Spawned:
    """Lower the priority of a group at the gate, put it in its cgroup, and identify it."""
    # Fails if the group has ended, and in kernels without autogroups or with a limit on changing
    # them.
    with suppress(OSError):
        os.setpriority(os.PRIO_PGRP, pgid, os.getpriority(os.PRIO_PROCESS, 0) + _NICE)
        # With autogroups, nice values only count within a session; this sets the session's value.
        (PROC / str(pgid) / "autogroup").write_text(str(_NICE), encoding="ascii")
    if group is not None:
        with refused_as(ToolFailed, "the program could not be put in a cgroup"):
            group.enter(pgid)
    return identify(pgid)


def living(pgid: int) -> tuple[int, ...]:
    """Return the processes of a group, without zombies; blocks, so call it in a thread."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, 0)
        return tuple(pid for pid, it in _all() if it.pgid == pgid and it.state not in "ZX")
    return ()


def tree(pid: int) -> tuple[int, ...]:
    """Return a process and all its descendants; blocks, so call it in a thread.

    In a sandbox no process leaves the tree: the sandbox's first process adopts orphans.
    """
    children: dict[int, list[int]] = {}
    for child, process in _all():
        children.setdefault(process.parent, []).append(child)
    pids = [pid]
    for parent in pids:  # grows during the iteration
        pids += children.get(parent, ())
    return tuple(pids)


def end_group(pgid: int) -> bool:
    """Kill a group and wait until it is gone; blocks, so call it in a thread.

    Returns:
        False if a process of it could not be killed.
    """
    for _ in range(_KILLS):
        members = living(pgid)
        if not members:
            return True
        # Opened before the kill, so that no pid can be reused in between.
        handles = [handle for pid in members if (handle := _handle(pid)) is not None]
        try:
            _kill(pgid)
            _wait_for_ends(handles)
        finally:
            for handle in handles:
                os.close(handle)
    return not living(pgid)


async def _wait(child: _Child, pid: int, watch: Watch | None) -> str:
    """Wait for the end; return the exceeded limit if it must be killed, else an empty string."""
    while watch is not None:
        try:
            async with asyncio.timeout(_WATCH_S):
                await child.ended.wait()
        except TimeoutError:
            if excess := await asyncio.to_thread(watch, pid):
                return excess
        else:
            return ""
    await child.ended.wait()
    return ""


def _leave_keyring() -> None:
    """Join a new, empty session keyring, for the daemon and its child processes; keyctl(2).

    The daemon does not need the keyring of the login session. If the kernel refuses, the sandbox's
    filter still blocks every keyring.
    """
    if (machine := seccomp.MACHINES.get(platform.machine())) is not None:
        number = seccomp.DENIED["keyctl"][machine.column]
        ctypes.CDLL(None).syscall(number, _JOIN_SESSION_KEYRING, None)


async def _clean_up(child: _Child, pgid: int, group: Group | None) -> Closed:
    """Wait until the group is gone, then for the child's exit, then for the end of its output."""
    closed = await asyncio.to_thread(_end, pgid, group)
    if closed.is_empty:
        await child.exited.wait()
    with suppress(TimeoutError):  # then the output is cut
        async with asyncio.timeout(_LAST_OUTPUT_S):
            await child.closed.wait()
    return closed


def _end(pgid: int, group: Group | None) -> Closed:
    """Kill a process group, and the processes of its cgroup that left it."""
    is_gone = end_group(pgid)
    if group is None:
        return Closed(is_empty=is_gone)
    closed = group.close()
    return replace(closed, is_empty=is_gone and closed.is_empty)


def _open_gate(transport: asyncio.SubprocessTransport, stdin: bytes) -> None:
    gate = transport.get_pipe_transport(0)
    if isinstance(gate, asyncio.WriteTransport):
        gate.write(b"\n" + stdin)
        gate.close()  # after the write completes, or the reader is gone


def _kill(pgid: int) -> None:
    # The group has ended, or its number now belongs to another program.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, signal.SIGKILL)


class _Process(Value):
    name: bytes
    state: str
    parent: int
    pgid: int
    session: int
    start_ticks: int


def _is_sandbox_of(process: _Process, spawned: Spawned) -> bool:
    """Whether a process is a sandbox of that group and session, and no older than its first process."""
    is_ours = (process.pgid, process.session) == (spawned.pgid, spawned.pgid)
    return is_ours and process.name == b"bwrap" and process.start_ticks >= spawned.start_ticks


def _all() -> Iterator[tuple[int, _Process]]:
    with os.scandir(PROC) as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    for pid in pids:
        if (process := _process(pid)) is not None:
            yield pid, process


def _process(pid: int) -> _Process | None:
    """Read the kernel's facts about a process; None if it does not exist."""
    # While a command runs, this reads every process of the machine ten times a second. Creating a
    # `Path` and a buffer for each took most of the time.
    try:
        descriptor = os.open(f"{PROC}/{pid}/stat", os.O_RDONLY)
        try:
            stat = os.read(descriptor, _STAT_BYTES)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The name in parentheses is chosen by the program and may contain anything.
    ends = stat.rindex(b")")
    fields = stat[ends + 2 :].split()
    return _Process(
        name=stat[stat.index(b"(") + 1 : ends],
        state=fields[0].decode("ascii"),
        parent=int(fields[1]),
        pgid=int(fields[2]),
        session=int(fields[3]),
        start_ticks=int(fields[19]),
    )


def _handle(pid: int) -> int | None:
    with suppress(OSError):  # it is gone, or there is no room: then it is killed without a wait
        return os.pidfd_open(pid)
    return None


def _wait_for_ends(handles: Sequence[int]) -> None:
    """Wait until each has ended, up to a limit."""
    for handle in handles:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll(_DYING_MS)


def _boot() -> str:
    return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
