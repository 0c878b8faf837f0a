"""Bounds all processes of a command together with a cgroup, if the daemon has a delegated subtree.

    <delegated>            delegated by `Delegate=yes` in a systemd unit
      zeroclaw-daemon      this process, as a group with child groups must not contain processes
      zeroclaw-run-<hex>   one command: bounds its memory and processes, and can kill them all

The kernel counts more than a poller sees: memory between two samples, `/tmp` and `/dev/shm`, shared
memory that no process maps any more, and processes that left their group and their parent. Without
such a subtree, `quotas` watches each command.

Source: Documentation/admin-guide/cgroup-v2.rst of Linux 6.1, read 2026-11 ("Delegation", "No
Internal Process Constraint", the memory and pids controllers); `cgroup.kill` exists since Linux
5.14. Everything blocks: call it in a thread.
"""

import os
import secrets
import select
from contextlib import suppress
from pathlib import Path

from zeroclaw.errors import system_words
from zeroclaw.host.atomic_file import closing_descriptor
from zeroclaw.value import Value

DAEMON = "zeroclaw-daemon"
RUN = "zeroclaw-run-"
CONTROLLERS = frozenset({"memory", "pids"})
AROUND = 8
"""Processes of the sandbox itself, on top of the command's own limit."""

_CGROUP = Path("/proc/self/cgroup")
_MOUNTS = Path("/proc/self/mountinfo")
_POLLS = 5
_POLL_MS = 2_000


class Closed(Value):
    """The outcome of closing a cgroup.

    Attributes:
        is_empty: Whether it has no process any more.
        excess: The limit for which the kernel ended the command; empty if none.
    """

    is_empty: bool = True
    excess: str = ""


class Group(Value):
    """The cgroup of one command.

    Attributes:
        place: Its directory.
        memory_bytes: Memory limit of all its processes together.
    """

    place: Path
    memory_bytes: int

    def enter(self, pid: int) -> None:
        """Move a process into the group; processes that it starts later are in it too.

        Raises:
            OSError: The process is gone, or the kernel refuses.
        """
        _write(self.place / "cgroup.procs", str(pid))

    def close(self) -> Closed:
        """Kill all processes in the group, wait for their end, and remove it; safe twice."""
        with suppress(OSError):  # it was removed already
            _write(self.place / "cgroup.kill", "1")
        for _ in range(_POLLS):
            if not self._is_populated():
                break
        excess = self._excess()
        with suppress(OSError):  # it has processes, or was removed already
            self.place.rmdir()
        return Closed(is_empty=not self.place.exists(), excess=excess)

    def _excess(self) -> str:
        events = _table(self.place / "memory.events")
        if events.get("oom"):
            return f"its processes together used more than {self.memory_bytes:,} bytes of memory"
        if events.get("oom_kill"):
            return "the daemon and its commands together used more memory than they may have"
        return ""

    def _is_populated(self) -> bool:
        """Wait briefly for the group to become empty; return whether it was populated."""
        try:
            events = os.open(self.place / "cgroup.events", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        with closing_descriptor(events):
            if b"populated 1" not in os.read(events, 4_096):
                return False
            poll = select.poll()
            poll.register(events, select.POLLPRI)
            poll.poll(_POLL_MS)
            return True


def take_over() -> Path | str:
    """Set up the cgroup that this process was started in.

    Fails if it has other processes, because then it is not the daemon's. Groups left by an earlier
    daemon are killed and removed. Safe twice.

    Returns:
        The directory for groups; or why there is none, in one line for people.
    """
    cgroup = _current_directory()
    if isinstance(cgroup, str):
        return cgroup
    try:
        return _prepare(cgroup)
    except OSError as error:
        return f"its cgroup was not delegated to it ({system_words(error)})"


def open_group(subtree: Path, *, memory_bytes: int, processes: int) -> Group:
    """Create the cgroup of one command.

    Args:
        subtree: The directory that `take_over` returned.
        memory_bytes: Memory limit of all its processes together; none of it may be swapped out.
        processes: Limit of concurrent processes, threads included.

    Raises:
        OSError: The kernel refuses.
    """
    group = Group(place=subtree / f"{RUN}{secrets.token_hex(8)}", memory_bytes=memory_bytes)
    group.place.mkdir()
    try:
        _write(group.place / "memory.max", str(memory_bytes))
        _write(group.place / "memory.oom.group", "1")
        _write(group.place / "pids.max", str(processes + AROUND))
        if (swap := group.place / "memory.swap.max").exists():  # absent in a kernel without swap
            _write(swap, "0")
    except OSError:
        group.close()
        raise
    return group


def _prepare(cgroup: Path) -> Path | str:
    """Move this process to a leaf and enable the controllers, or undo everything."""
    is_alone = (cgroup / "cgroup.procs").read_text("ascii").split() == [str(os.getpid())]
    if not is_alone:
        return "other programs share its cgroup"
    place = cgroup.parent if cgroup.name == DAEMON else cgroup
    missing = CONTROLLERS - set((place / "cgroup.controllers").read_text("ascii").split())
    if missing:
        return f"its cgroup has no controller for {' and '.join(sorted(missing))}"
    if not (cgroup / "cgroup.kill").exists():
        return "this kernel is older than 5.14, and can't end a cgroup at once"
    daemon = place / DAEMON
    daemon.mkdir(exist_ok=True)
    try:
        _write(daemon / "cgroup.procs", str(os.getpid()))
        _write(place / "cgroup.subtree_control", "+memory +pids")
        for leftover in sorted(place.glob(f"{RUN}*")):
            Group(place=leftover, memory_bytes=0).close()
        open_group(place, memory_bytes=1 << 20, processes=1).close()
    except OSError:
        with suppress(OSError):
            _write(place / "cgroup.subtree_control", "-memory -pids")
        with suppress(OSError):
            _write(place / "cgroup.procs", str(os.getpid()))
            daemon.rmdir()
        raise
    return place


def _current_directory() -> Path | str:
    """Return the directory of this process's cgroup v2, or why there is none."""
    with suppress(OSError, StopIteration):
        path = next(
            line[3:] for line in _CGROUP.read_text("utf-8").splitlines() if line.startswith("0::")
        )
        for line in _MOUNTS.read_text("utf-8").splitlines():
            fields, _, kind = line.partition(" - ")
            root, mount_point = fields.split()[3:5]
            if kind.startswith("cgroup2 ") and Path(path).is_relative_to(root):
                return Path(mount_point) / Path(path).relative_to(root)
    return "this machine has no cgroups of version 2"


def _table(file: Path) -> dict[str, int]:
    """Parse a flat keyed file; empty if there is none."""
    with suppress(OSError):
        lines = file.read_text("ascii").splitlines()
        return {name: int(value) for name, value in map(str.split, lines)}
    return {}


def _write(file: Path, value: str) -> None:
    file.write_text(value, encoding="ascii")
