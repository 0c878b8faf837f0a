"""Bounds a command as a whole by a cgroup of its own, where this daemon has a delegated subtree.

    <delegated>            what `Delegate=yes` of a systemd unit hands over
      zeroclaw-daemon      this process, for a group with inner groups may hold no process itself
      zeroclaw-run-<hex>   one command: its memory, its processes, and one write that kills them all

The kernel counts what a watch can't: memory between two looks, `/tmp` and `/dev/shm`, shared memory
that no process maps any more, and processes that left their group and their parent. Where there is no
such subtree, `usage` watches.

Source: Documentation/admin-guide/cgroup-v2.rst of Linux 6.1, read 2026-11 ("Delegation", "No
Internal Process Constraint", the memory and pids controllers); `cgroup.kill` is of Linux 5.14. All
of this blocks: call it in a thread.
"""

import os
import secrets
import select
from contextlib import suppress
from pathlib import Path

from zeroclaw.errors import system_words
from zeroclaw.value import Value

DAEMON = "zeroclaw-daemon"
RUN = "zeroclaw-run-"
CONTROLLERS = frozenset({"memory", "pids"})
AROUND = 8
"""Processes of the sandbox itself, which the command's own bound does not count."""

_OWN = Path("/proc/self/cgroup")
_MOUNTS = Path("/proc/self/mountinfo")
_LOOKS = 5
_LOOK_MS = 2_000


class NoSubtree(Value):
    """There is none.

    Attributes:
        reason: Why, in a line for people.
    """

    reason: str


class Closed(Value):
    """What was left of a cgroup.

    Attributes:
        all_gone: Nothing lives in it.
        excess: What the kernel ended the command for, empty for nothing.
    """

    all_gone: bool = True
    excess: str = ""


class Group(Value):
    """The cgroup of one command.

    Attributes:
        place: Its directory.
        memory_bytes: What its processes may use together.
    """

    place: Path
    memory_bytes: int

    def enter(self, pid: int) -> None:
        """Move a process in; what it starts from now on is in as well.

        Raises:
            OSError: The process is gone, or the kernel refuses.
        """
        _write(self.place / "cgroup.procs", str(pid))

    def close(self) -> Closed:
        """Kill what is in it, wait until it has died, and remove the group; safe twice."""
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
        """Wait a little until nothing lives in it; tell whether something does."""
        try:
            events = os.open(self.place / "cgroup.events", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            if b"populated 1" not in os.read(events, 4_096):
                return False
            changed = select.poll()
            changed.register(events, select.POLLPRI)
            changed.poll(_LOOK_MS)
            return True
        finally:
            os.close(events)


def take_over() -> Path | NoSubtree:
    """Make the cgroup that this process was started in ready; return where groups can be made.

    Only where the process is alone in it: with others in it, the cgroup is not ours.
    What an earlier life of the daemon left is killed and removed. Safe twice.
    """
    own = _own_place()
    if isinstance(own, NoSubtree):
        return own
    try:
        return _prepared(own)
    except OSError as error:
        return NoSubtree(reason=f"its cgroup was not delegated to it ({system_words(error)})")


def open_group(subtree: Path, *, memory_bytes: int, processes: int) -> Group:
    """Make the cgroup of one command.

    Args:
        subtree: The directory that `take_over` returned.
        memory_bytes: What the command's processes may use together; nothing of it is swapped out.
        processes: How many of its own may run at once, threads included.

    Raises:
        OSError: The kernel refuses.
    """
    group = Group(place=subtree / f"{RUN}{secrets.token_hex(8)}", memory_bytes=memory_bytes)
    group.place.mkdir()
    try:
        _write(group.place / "memory.max", str(memory_bytes))
        _write(group.place / "memory.oom.group", "1")
        _write(group.place / "pids.max", str(processes + AROUND))
        if (swap := group.place / "memory.swap.max").exists():  # else this kernel does not swap
            _write(swap, "0")
    except OSError:
        group.close()
        raise
    return group


def _prepared(own: Path) -> Path | NoSubtree:
    """Move this process to a leaf and switch the controllers on, or leave all as it was."""
    alone = (own / "cgroup.procs").read_text("ascii").split() == [str(os.getpid())]
    if not alone:
        return NoSubtree(reason="other programs share its cgroup")
    place = own.parent if own.name == DAEMON else own
    missing = CONTROLLERS - set((place / "cgroup.controllers").read_text("ascii").split())
    if missing:
        return NoSubtree(reason=f"its cgroup has no controller for {' and '.join(sorted(missing))}")
    if not (own / "cgroup.kill").exists():
        return NoSubtree(reason="this kernel is older than 5.14, and can't end a cgroup at once")
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


def _own_place() -> Path | NoSubtree:
    """Return the directory of this process's cgroup in a hierarchy of version 2."""
    with suppress(OSError, StopIteration):
        own = next(
            line[3:] for line in _OWN.read_text("utf-8").splitlines() if line.startswith("0::")
        )
        for line in _MOUNTS.read_text("utf-8").splitlines():
            fields, _, kind = line.partition(" - ")
            root, at = fields.split()[3:5]
            if kind.startswith("cgroup2 ") and Path(own).is_relative_to(root):
                return Path(at) / Path(own).relative_to(root)
    return NoSubtree(reason="this machine has no cgroups of version 2")


def _table(file: Path) -> dict[str, int]:
    """Read a flat keyed file, empty where there is none."""
    try:
        lines = file.read_text("ascii").splitlines()
    except OSError:
        return {}
    return {name: int(value) for name, value in (line.split() for line in lines)}


def _write(file: Path, value: str) -> None:
    file.write_text(value, encoding="ascii")
