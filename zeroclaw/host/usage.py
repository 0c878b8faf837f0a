"""What a command uses: memory of all its processes together, and room in its workspace.

The walk that counts what a workspace holds also finds the places in it that keep secrets.

Without a cgroup (`cgroups`) the kernel bounds each process by itself (setrlimit(2)), so a command
with many could have many times as much: the watch counts memory several times a second, from
proc(5). It counts the workspace in any case, for no cgroup bounds that. Blocking, so called in
threads.
"""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from zeroclaw.errors import ToolFailed
from zeroclaw.host import processes
from zeroclaw.host.protected import Found, Rule
from zeroclaw.secret_names import names_secrets
from zeroclaw.value import Struct, Value, field

MOST_ENTRIES = 200_000
MOST_DEPTH = 64
MOST_SECRETS = 1_000
"""Places that keep secrets; each is a mount of every command."""
_COUNTED_ENTRIES = 2 * MOST_ENTRIES  # room to see how far beyond, and whether it grows
SPARE_BYTES = 268_435_456
"""What stays free on the disk of a workspace, whatever fills it."""

GRANT_BYTES = 67_108_864
"""How much tools may write into a workspace before it is counted again."""
BLOCK_BYTES = 4_096
"""What a name takes, and a file is rounded up to: the usual block of a file system."""
_MOST_GRANTS = 1_000
_ENTRIES_A_CALL = 10_000  # a full workspace is looked through less often than a small one
_BLOCK = 512  # of `st_blocks`, stat(2)
_KB = 1_024  # of proc(5)
_OPENED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Held(Struct, kw_only=True):
    """What a workspace holds.

    Attributes:
        bytes_: On the disk: a file of holes takes little, two names of one file take it once.
        entries: Files, directories and all else that has a name.
        is_whole: All of it was counted; else there is far too much, or some lies deeper than
            `MOST_DEPTH`.
        is_disk_full: Its disk has less than `SPARE_BYTES` left.
        largest_bytes: Size of its largest file, holes included.
        secrets: The outermost places that keep secrets by their names, up to one more than
            `MOST_SECRETS`. A link is none: what it leads to goes by its own name.
    """

    bytes_: int = 0
    entries: int = 0
    is_whole: bool = True
    is_disk_full: bool = False
    largest_bytes: int = 0
    secrets: list[Found] = field(default_factory=list[Found])

    def excess(self, most_bytes: int, most_entries: int = MOST_ENTRIES) -> str:
        """Return what there is too much of, empty for nothing."""
        if not self.is_whole or self.entries > most_entries:
            return (
                f"the workspace holds more than {most_entries:,} files, or directories nested"
                f" deeper than {MOST_DEPTH}"
            )
        if self.bytes_ > most_bytes:
            return f"the workspace holds more than its {most_bytes:,} bytes"
        return "the disk of the workspace is nearly full" if self.is_disk_full else ""


class Quota:
    """Keeps what tools write into workspaces within what each may hold; for any thread.

    Counting a workspace takes long where it holds much, so each count grants an allowance, and the
    next one comes when that is spent. What a command writes meanwhile is not in it: a workspace can
    hold up to `GRANT_BYTES` more than it may.
    """

    def __init__(self, most_bytes: int = 2_147_483_648) -> None:
        """Let each workspace hold so much."""
        self._most_bytes = most_bytes
        self._granted: dict[Path, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def spend(self, workspace: Path, *, new_bytes: int, new_entries: int) -> None:
        """Count what is about to be written; blocks.

        Args:
            workspace: Its real path.
            new_bytes: How much more the workspace will hold then; 0 or less is always allowed.
            new_entries: How many files and directories will be made.

        Raises:
            ToolFailed: There is no room for it.
        """
        if new_bytes <= 0 and not new_entries:
            return
        cost = max(new_bytes, 0) + new_entries * BLOCK_BYTES
        if self._take(workspace, cost, new_entries):
            return
        held = look_through(workspace)
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
                self._granted.clear()  # each is counted anew
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
    """Watches one command; what it uses too much of ends it.

    Attributes:
        most_bytes: What its workspace may hold; one that held more before must not grow.
        held: What it held before.
        memory_bytes: None where the kernel bounds memory and processes.
        most_processes: None in a sandbox, whose processes all stay in one tree.
    """

    most_bytes: int
    workspace: Path
    held: Held
    memory_bytes: int | None = None
    most_processes: int | None = None
    _calls_to_look: int = 0

    def __call__(self, pid: int) -> str:
        """Return what a command, by its first process, uses too much of; empty for nothing."""
        pids = processes.tree(pid)
        if self.most_processes is not None:
            # An orphan stays in the group, and is no child of ours.
            pids = tuple({*pids, *processes.living(pid)})
        if why := self._running(pids):
            return why
        self._calls_to_look -= 1
        if self._calls_to_look > 0:
            return ""
        held = look_through(self.workspace)
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
    """Return what processes have of memory that is nobody else's, each page once.

    Pages that they share without a file (`MAP_SHARED | MAP_ANONYMOUS`) stay when whoever wrote them
    ends, and count with nobody who does not touch them; so such a piece counts as a whole.
    """
    own = 0
    shared: dict[int, int] = {}
    for pid in pids:
        own += _own_bytes(pid)
        for one in _mapped(pid):
            if one.is_shared_memory:
                shared[one.inode] = max(one.size, shared.get(one.inode, 0))
    return own + sum(shared.values())


def nameless_bytes(pids: tuple[int, ...], workspace: Path) -> int:
    """Return what files take on a workspace's disk that lost their names and are still held open.

    Of one that is only mapped, what is mapped counts, for how large it is nobody is told.
    """
    try:
        device = workspace.stat().st_dev
    except OSError:
        return 0  # counting the workspace says that it is gone
    named = f"{os.major(device):02x}:{os.minor(device):02x}"
    found: dict[int, int] = {}
    for pid in pids:
        for one in _mapped(pid):
            if one.device == named:
                found[one.inode] = max(one.size, found.get(one.inode, 0))
    for pid in pids:
        for seen in _opened_by(pid):
            if seen.st_nlink == 0 and seen.st_dev == device and stat.S_ISREG(seen.st_mode):
                found[seen.st_ino] = seen.st_blocks * _BLOCK
    return sum(found.values())


def look_through(
    workspace: Path, *, skipped: frozenset[tuple[str, ...]] = frozenset(), owner: int | None = None
) -> Held:
    """Count what a workspace holds; directories that their owner locked are opened again.

    Another disk below it is looked through for secrets, and does not count.

    Args:
        workspace: Its real path.
        skipped: Places, by their names from the workspace down, that are none of its business.
        owner: What is ours becomes this user's, None to leave it ours. What keeps secrets stays
            whose it is, as no command sees it.

    Raises:
        ToolFailed: The workspace can't be opened.
    """
    directory = _opened(str(workspace), None)
    if directory is None:
        message = "the workspace is gone, or is somebody else's"
        raise ToolFailed(message)
    held = Held()
    try:
        found = os.fstat(directory)
        if owner is not None and found.st_uid == os.geteuid():
            os.fchown(directory, owner, owner)
        is_ours = found.st_uid in (os.geteuid(), owner)
        if is_ours and found.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            # Root gets in as it is, and whom its commands run as does not.
            os.fchmod(directory, stat.S_IMODE(found.st_mode) | stat.S_IRWXU)
        counted = _Counted(held, skipped, owner, found.st_dev)
        counted.go_through(directory, (), is_secret=False)
        disk = os.fstatvfs(directory)
    finally:
        os.close(directory)
    held.is_disk_full = disk.f_bavail * disk.f_frsize < SPARE_BYTES
    return held


class _Counted(Struct):
    """What was counted so far; every step is taken from an open directory, so no link leads out."""

    held: Held
    skipped: frozenset[tuple[str, ...]]
    owner: int | None
    device: int
    _ours: int = field(default_factory=os.geteuid)
    _linked: set[int] = field(default_factory=set[int])
    _looked: int = 0

    def go_through(self, directory: int, parts: tuple[str, ...], *, is_secret: bool) -> None:
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
                    continue  # it went while we looked
                self._looked += 1
                is_ours = found.st_dev == self.device  # another disk is not filled through here
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

    def _keeps_secrets(self, parts: tuple[str, ...], found: os.stat_result) -> bool:
        if stat.S_ISLNK(found.st_mode) or not names_secrets(parts[-1]):
            return False
        if len(self.held.secrets) <= MOST_SECRETS:
            rule = Rule(parts=parts, shield="secret")
            self.held.secrets.append(Found(rule=rule, is_directory=stat.S_ISDIR(found.st_mode)))
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

    def _descend(
        self, name: str, directory: int, parts: tuple[str, ...], *, is_secret: bool
    ) -> None:
        if len(parts) > MOST_DEPTH:
            self.held.is_whole = False
            return
        inner = _opened(name, directory)
        if inner is None:
            return
        try:
            self.go_through(inner, parts, is_secret=is_secret)
        finally:
            os.close(inner)


class _Mapped(Value):
    """A mapped file that has lost its name, or never had one."""

    inode: int
    device: str
    size: int
    is_shared_memory: bool


def _opened(name: str, directory: int | None) -> int | None:
    """Open a directory, unlocked where its owner, who is us, locked it."""
    # It went, became something else, or is somebody else's, so no command of ours put anything there.
    with suppress(OSError):
        with suppress(PermissionError):
            return os.open(name, _OPENED, dir_fd=directory)
        place = os.open(name, os.O_PATH | _OPENED, dir_fd=directory)
        try:
            # A place that is open is changed, and none that took its name meanwhile.
            at = Path(f"/proc/self/fd/{place}")
            at.chmod(stat.S_IMODE(os.fstat(place).st_mode) | stat.S_IRWXU)
            return os.open(at, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            os.close(place)
    return None


def _opened_by(pid: int) -> Iterator[os.stat_result]:
    try:
        opened = tuple((processes.PROC / str(pid) / "fd").iterdir())
    except OSError:
        return  # it ended while we looked
    for one in opened:
        with suppress(OSError):
            yield one.stat()


def _own_bytes(pid: int) -> int:
    lines = _read(pid, "status")
    found = dict(line.split(":", 1) for line in lines if line.startswith(("RssAnon:", "VmSwap:")))
    return sum(int(told.split()[0]) * _KB for told in found.values())


def _mapped(pid: int) -> Iterator[_Mapped]:
    """Yield what a process maps of files without a name; what it shares without a file is one."""
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
    with suppress(OSError):  # it ended while we looked
        return (processes.PROC / str(pid) / name).read_text("utf-8", "replace").splitlines()
    return []
