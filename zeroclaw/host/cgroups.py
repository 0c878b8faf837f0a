"""Bounds a command as a whole with a cgroup of its own, if the daemon has a delegated subtree.

    <delegated>            delegated by `Delegate=yes` in a systemd unit
      zeroclaw-daemon      this process, as a group with child groups must not contain processes
      zeroclaw-run-<hex>   one command: bounds its memory and processes, and can kill them all

The kernel counts what polling can't: memory between two samples, `/tmp` and `/dev/shm`, shared
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

_OWN = Path("/proc/self/cgroup")
_MOUNTS = Path("/proc/self/mountinfo")
_LOOKS = 5
_LOOK_MS = 2_000


class Closed(Value):
    """The outcome of closing a cgroup.

    Attributes:
        all_gone: Whether no process is left in it.
        excess: The limit for which the kernel ended the command; empty if none.
    """

    all_gone: bool = True
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
        with suppress(OSError):  # it is gone already
            _write(self.place / "cgroup.kill", "1")
        for _ in range(_LOOKS):
            if not self._is_populated():
                break
        excess = self._excess()
        try:
            self.place.rmdir()
        except FileNotFoundError:
            return Closed(excess=excess)
        except OSError:
            return Closed(all_gone=False, excess=excess)
        return Closed(excess=excess)

    def _excess(self) -> str:
        counted = _table(self.place / "memory.events")
        if counted.get("oom"):
            return f"its processes together used more than {self.memory_bytes:,} bytes of memory"
        if counted.get("oom_kill"):
            return "the daemon and its commands together used more memory than there is for them"
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
            changed = select.poll()
            changed.register(events, select.POLLPRI)
            changed.poll(_LOOK_MS)
            return True


def take_over() -> Path | str:
    """Set up the cgroup that this process was started in.

    Fails if other processes are in it, because then it is not ours. Groups left by an earlier
    daemon are killed and removed. Safe twice.

    Returns:
        Where groups can be created; or why they can't, in one line for people.
    """
    own = _own_place()
    if isinstance(own, str):
        return own
    try:
        return _prepared(own)
    except OSError as error:
        return f"its cgroup was not delegated to it ({system_words(error)})"


def open_group(subtree: Path, *, memory_bytes: int, processes: int) -> Group:
    """Create the cgroup of one command.

    Args:
        subtree: The directory that `take_over` returned.
        memory_bytes: Memory limit of all its processes together; none of it may be swapped out.
        processes: Most processes at once, threads included.

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


def _prepared(own: Path) -> Path | str:
    """Move this process to a leaf and enable the controllers, or undo everything."""
    alone = (own / "cgroup.procs").read_text("ascii").split() == [str(os.getpid())]
    if not alone:
        return "other programs share its cgroup"
    place = own.parent if own.name == DAEMON else own
    missing = CONTROLLERS - set((place / "cgroup.controllers").read_text("ascii").split())
    if missing:
        return f"its cgroup has no controller for {' and '.join(sorted(missing))}"
    if not (own / "cgroup.kill").exists():
        return "this kernel is older than 5.14, and can't end a cgroup at once"
    daemon = place / DAEMON
    daemon.mkdir(exist_ok=True)
    try:
        _write(daemon / "cgroup.procs", str(os.getpid()))
        _write(place / "cgroup.subtree_control", "+memory +pids")
        for left in sorted(place.glob(f"{RUN}*")):
            Group(place=left, memory_bytes=0).close()
        open_group(place, memory_bytes=1 << 20, processes=1).close()
    except OSError:
        with suppress(OSError):
            _write(place / "cgroup.subtree_control", "-memory -pids")
        with suppress(OSError):
            _write(place / "cgroup.procs", str(os.getpid()))
            daemon.rmdir()
        raise
    return place


def _own_place() -> Path | str:
    """Return the directory of this process's cgroup v2, or why there is none."""
    with suppress(OSError, StopIteration):
        own = next(
            line[3:] for line in _OWN.read_text("utf-8").splitlines() if line.startswith("0::")
        )
        for line in _MOUNTS.read_text("utf-8").splitlines():
            fields, _, kind = line.partition(" - ")
            root, at = fields.split()[3:5]
            if kind.startswith("cgroup2 ") and Path(own).is_relative_to(root):
                return Path(at) / Path(own).relative_to(root)
    return "this machine has no cgroups of version 2"


def _table(file: Path) -> dict[str, int]:
    """Parse a flat keyed file; empty if there is none."""
    try:
        lines = file.read_text("ascii").splitlines()
    except OSError:
        return {}
    return {name: int(value) for name, value in (line.split() for line in lines)}


def _write(file: Path, value: str) -> None:
    file.write_text(value, encoding="ascii")
