"""What a command uses: the memory of all its processes, and the space in its workspace.

The walk that measures a workspace also finds the places in it that hold secrets.

Without a cgroup (`cgroups`) the kernel limits each process on its own (setrlimit(2)), so a command
with many processes could use many times the limit. The watch then adds up their memory several
times a second, from proc(5). It measures the workspace in any case, because no cgroup limits that.
Everything blocks: call it in a thread.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from zeroclaw.errors import ToolFailed
from zeroclaw.host import processes
from zeroclaw.host.atomic_file import closing_descriptor
from zeroclaw.host.masks import Mask, Parts
from zeroclaw.secret_names import names_secrets
from zeroclaw.value import Struct, Value, field

MOST_ENTRIES = 200_000
MOST_DEPTH = 64
MOST_SECRETS = 1_000
"""Most places with secrets; each is a mount in the sandbox of every command."""
_COUNTED_ENTRIES = 2 * MOST_ENTRIES  # with a margin, to see how far it is over and whether it grows
SPARE_BYTES = 268_435_456
"""Space that stays free on the disk of a workspace, whatever fills it."""

GRANT_BYTES = 67_108_864
"""Bytes that tools may write into a workspace before it is measured again."""
BLOCK_BYTES = 4_096
"""Charged for each name, and the unit that file sizes are rounded up to: the usual block size."""
_MOST_GRANTS = 1_000
_ENTRIES_A_CALL = 10_000  # a full workspace is walked less often than a small one
_BLOCK = 512  # unit of `st_blocks`, stat(2)
_KB = 1_024  # unit in proc(5)
_OPENED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class DiskUsage(Struct, kw_only=True):
    """What a workspace contains.

    Attributes:
        bytes_: Disk space; sparse files count what they occupy, hard links count once.
        entries: Number of files, directories and other entries.
        is_whole: Whether everything was counted; if not, there is far too much, or it is nested
            deeper than `MOST_DEPTH`.
        is_disk_full: Whether its disk has less than `SPARE_BYTES` left.
        largest_bytes: Size of its largest file, holes included.
        secrets: The outermost places with names of secrets, at most `MOST_SECRETS` + 1. Links don't
            count: their targets are judged by their own names.
    """

    bytes_: int = 0
    entries: int = 0
    is_whole: bool = True
    is_disk_full: bool = False
    largest_bytes: int = 0
    secrets: list[Mask] = field(default_factory=list[Mask])

    def excess(self, most_bytes: int, most_entries: int = MOST_ENTRIES) -> str:
        """Return which limit is exceeded; empty if none is."""
        if not self.is_whole or self.entries > most_entries:
            return (
                f"the workspace holds more than {most_entries:,} files, or directories nested"
                f" deeper than {MOST_DEPTH}"
            )
        if self.bytes_ > most_bytes:
            return f"the workspace holds more than its {most_bytes:,} bytes"
        return "the disk of the workspace is nearly full" if self.is_disk_full else ""


class Quota:
    """Bounds what tools write into workspaces; thread-safe.

    Measuring a large workspace is slow, so each measurement grants an allowance, and the next one
    is taken when that is spent. What commands write in the meantime is not counted: a workspace can
    exceed its limit by up to `GRANT_BYTES`.
    """

    def __init__(self, most_bytes: int = 2_147_483_648) -> None:
        """Set the limit of each workspace."""
        self._most_bytes = most_bytes
        self._granted: dict[Path, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def spend(self, workspace: Path, *, new_bytes: int, new_entries: int) -> None:
        """Charge a write before it happens; blocks.

        Args:
            workspace: Its real path.
            new_bytes: How many bytes the workspace grows by; always allowed if 0 or less.
            new_entries: How many files and directories are created.

        Raises:
            ToolFailed: There is no room for it.
        """
        if new_bytes <= 0 and not new_entries:
            return
        cost = max(new_bytes, 0) + new_entries * BLOCK_BYTES
        if self._take(workspace, cost, new_entries):
            return
        held = measure(workspace)
        if why := held.excess(self._most_bytes):
            message = f"{why}: remove something first"
            raise ToolFailed(message)
        left_bytes = self._most_bytes - held.bytes_
        left_entries = MOST_ENTRIES - held.entries
        if cost > left_bytes or new_entries > left_entries:
            message = (
                f"the workspace has no room for it: {max(left_bytes, 0):,} of its"
                f" {self._most_bytes:,} bytes and {left_entries:,} of its {MOST_ENTRIES:,} files"
                " are left"
            )
            raise ToolFailed(message)
        with self._lock:
            if len(self._granted) >= _MOST_GRANTS:
                self._granted.clear()  # each is measured again
            self._granted[workspace] = (max(cost, min(left_bytes, GRANT_BYTES)), left_entries)
        self._take(workspace, cost, new_entries)

    def _take(self, workspace: Path, cost: int, entries: int) -> bool:
        with self._lock:
            left_bytes, left_entries = self._granted.get(workspace, (0, 0))
            if cost > left_bytes or entries > left_entries:
                return False
            self._granted[workspace] = (left_bytes - cost, left_entries - entries)
            return True


class Meter(Struct, kw_only=True):
    """Watches one command, and reports when it exceeds a limit.

    Attributes:
        most_bytes: Limit of its workspace; one that was larger before must not grow.
        held: What the workspace contained before.
        memory_bytes: Limit of its memory; None if a cgroup bounds memory and processes.
        most_processes: Limit of its processes; None in a sandbox, whose processes stay in one tree.
    """

    most_bytes: int
    workspace: Path
    held: DiskUsage
    memory_bytes: int | None = None
    most_processes: int | None = None
    _calls_to_look: int = 0

    def __call__(self, pid: int) -> str:
        """Return which limit the command (by its first process) exceeds; empty if none."""
        pids = processes.tree(pid)
        if self.most_processes is not None:
            # An orphan leaves the tree, but stays in the group.
            pids = tuple({*pids, *processes.living(pid)})
        if why := self._running(pids):
            return why
        self._calls_to_look -= 1
        if self._calls_to_look > 0:
            return ""
        held = measure(self.workspace)
        held.bytes_ += nameless_bytes(pids, self.workspace)
        self._calls_to_look = 1 + held.entries // _ENTRIES_A_CALL
        before = self.held
        held.is_disk_full &= not before.is_disk_full
        most_bytes = max(self.most_bytes, before.bytes_)
        return held.excess(most_bytes, max(MOST_ENTRIES, before.entries))

    def _running(self, pids: tuple[int, ...]) -> str:
        if self.memory_bytes is None:
            return ""
        if self.most_processes is not None and len(pids) > self.most_processes:
            return f"more than {self.most_processes} of its processes ran at once"
        if memory_bytes(pids) > self.memory_bytes:
            return f"its processes together used more than {self.memory_bytes:,} bytes of memory"
        return ""


def memory_bytes(pids: tuple[int, ...]) -> int:
    """Return the private memory of the processes, and the memory they share, each piece once.

    Anonymous shared pages (`MAP_SHARED | MAP_ANONYMOUS`) outlive their writer and are charged to no
    process that does not touch them. So such a mapping counts as a whole.
    """
    shared = _mapped_bytes(pids, lambda one: one.is_shared_memory)
    return sum(map(_own_bytes, pids)) + sum(shared.values())


def nameless_bytes(pids: tuple[int, ...], workspace: Path) -> int:
    """Return the disk space of deleted files that the processes still hold open on this disk.

    For a file that is only mapped, the mapped size counts; its real size can't be read.
    """
    try:
        device = workspace.stat().st_dev
    except OSError:
        return 0  # measuring the workspace reports that it is gone
    named = f"{os.major(device):02x}:{os.minor(device):02x}"
    found = _mapped_bytes(pids, lambda one: one.device == named)
    for pid in pids:
        for seen in _opened_by(pid):
            if seen.st_nlink == 0 and seen.st_dev == device and stat.S_ISREG(seen.st_mode):
                found[seen.st_ino] = seen.st_blocks * _BLOCK
    return sum(found.values())


def measure(
    workspace: Path, *, skipped: frozenset[Parts] = frozenset(), owner: int | None = None
) -> DiskUsage:
    """Measure a workspace; directories that a command made inaccessible are unlocked.

    Another file system mounted below it is searched for secrets, but does not count.

    Args:
        workspace: Its real path.
        skipped: Places to skip, by their names from the workspace down.
        owner: User id that takes over our files; None to leave them. Secrets keep their owner,
            because no command sees them.

    Raises:
        ToolFailed: The workspace can't be opened.
    """
    directory = _opened(str(workspace), None)
    if directory is None:
        message = "the workspace is gone, or is somebody else's"
        raise ToolFailed(message)
    held = DiskUsage()
    with closing_descriptor(directory):
        found = os.fstat(directory)
        if owner is not None and found.st_uid == os.geteuid():
            os.fchown(directory, owner, owner)
        is_ours = found.st_uid in (os.geteuid(), owner)
        if is_ours and found.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            # Root can enter anyway, but the user that runs its commands can't.
            os.fchmod(directory, stat.S_IMODE(found.st_mode) | stat.S_IRWXU)
        counted = _Measurement(held, skipped, owner, found.st_dev)
        counted.walk(directory, (), is_secret=False)
        disk = os.fstatvfs(directory)
    held.is_disk_full = disk.f_bavail * disk.f_frsize < SPARE_BYTES
    return held


class _Measurement(Struct):
    """The state of a walk. Every step starts from an open directory, so no link leads outside."""

    held: DiskUsage
    skipped: frozenset[Parts]
    owner: int | None
    device: int
    _ours: int = field(default_factory=os.geteuid)
    _linked: set[int] = field(default_factory=set[int])
    _looked: int = 0

    def walk(self, directory: int, parts: Parts, *, is_secret: bool) -> None:
        with os.scandir(directory) as entries:
            for entry in entries:
                if self._looked >= _COUNTED_ENTRIES:
                    self.held.is_whole = False
                    return
                inner = (*parts, entry.name)
                if self.skipped and inner in self.skipped:
                    continue
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # it disappeared meanwhile
                self._looked += 1
                is_ours = found.st_dev == self.device  # another disk is not filled from here
                if is_ours:
                    self._count(found)
                is_kept = is_secret or self._keeps_secrets(inner, found)
                if (
                    is_ours
                    and not is_kept
                    and self.owner is not None
                    and found.st_uid == self._ours
                ):
                    self._give(entry.name, directory)
                if stat.S_ISDIR(found.st_mode):
                    self._descend(entry.name, directory, inner, is_secret=is_kept)

    def _keeps_secrets(self, parts: Parts, found: os.stat_result) -> bool:
        if stat.S_ISLNK(found.st_mode) or not names_secrets(parts[-1]):
            return False
        if len(self.held.secrets) <= MOST_SECRETS:
            is_directory = stat.S_ISDIR(found.st_mode)
            self.held.secrets.append(Mask(parts=parts, is_directory=is_directory, is_secret=True))
        return True

    def _count(self, found: os.stat_result) -> None:
        self.held.entries += 1
        if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
            if found.st_ino in self._linked:
                return
            self._linked.add(found.st_ino)
        self.held.bytes_ += found.st_blocks * _BLOCK
        if stat.S_ISREG(found.st_mode):
            self.held.largest_bytes = max(self.held.largest_bytes, found.st_size)

    def _give(self, name: str, directory: int) -> None:
        owner = self.owner or 0
        with suppress(FileNotFoundError):
            os.chown(name, owner, owner, dir_fd=directory, follow_symlinks=False)

    def _descend(self, name: str, directory: int, parts: Parts, *, is_secret: bool) -> None:
        if len(parts) > MOST_DEPTH:
            self.held.is_whole = False
            return
        inner = _opened(name, directory)
        if inner is None:
            return
        with closing_descriptor(inner):
            self.walk(inner, parts, is_secret=is_secret)


class _Mapped(Value):
    """A mapped file that was deleted or never had a name."""

    inode: int
    device: str
    size: int
    is_shared_memory: bool


def _opened(name: str, directory: int | None) -> int | None:
    """Open a directory; first give ourselves access if we own it and lack it."""
    # If that fails, it is gone, not a directory, or another user's, and no command put anything
    # there.
    with suppress(OSError):
        with suppress(PermissionError):
            return os.open(name, _OPENED, dir_fd=directory)
        with closing_descriptor(os.open(name, os.O_PATH | _OPENED, dir_fd=directory)) as place:
            # chmod the opened directory, not whatever may have taken its name.
            at = Path(f"/proc/self/fd/{place}")
            at.chmod(stat.S_IMODE(os.fstat(place).st_mode) | stat.S_IRWXU)
            return os.open(at, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return None


def _opened_by(pid: int) -> Iterator[os.stat_result]:
    try:
        opened = tuple((processes.PROC / str(pid) / "fd").iterdir())
    except OSError:
        return  # it ended meanwhile
    for one in opened:
        with suppress(OSError):
            yield one.stat()


def _own_bytes(pid: int) -> int:
    lines = _read(pid, "status")
    found = dict(line.split(":", 1) for line in lines if line.startswith(("RssAnon:", "VmSwap:")))
    return sum(int(told.split()[0]) * _KB for told in found.values())


def _mapped_bytes(pids: tuple[int, ...], counts: Callable[[_Mapped], bool]) -> dict[int, int]:
    """Return the largest mapped size of each deleted file that counts, by inode."""
    found: dict[int, int] = {}
    for one in filter(counts, chain.from_iterable(map(_mapped, pids))):
        found[one.inode] = max(one.size, found.get(one.inode, 0))
    return found


def _mapped(pid: int) -> Iterator[_Mapped]:
    """Yield the deleted files that a process maps; anonymous shared memory is one of them."""
    for line in _read(pid, "maps"):
        if line.endswith(" (deleted)"):
            span, mode, offset, device, inode, *_ = line.split()
            start, end = (int(at, 16) for at in span.split("-"))
            yield _Mapped(
                inode=int(inode),
                device=device,
                size=int(offset, 16) + end - start,
                is_shared_memory=mode.endswith("s") and "/dev/zero (deleted)" in line,
            )


def _read(pid: int, name: str) -> list[str]:
    with suppress(OSError):  # it ended meanwhile
        # The kernel escapes no other end of a line in a file's name.
        text = (processes.PROC / str(pid) / name).read_bytes().decode("utf-8", "replace")
        return text.split("\n")
    return []
