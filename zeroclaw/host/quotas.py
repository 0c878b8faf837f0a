"""Measures a command: the memory of all its processes, and the space in its workspace.

The walk that measures a workspace also finds its places with secrets.

Without a cgroup (`cgroups`) the kernel limits each process by itself (setrlimit(2)), so a command
with many processes could use many times the limit. The watch then adds up their memory several
times a second, from proc(5). It measures the workspace in any case, because no cgroup limits that.
Everything blocks: call it in a thread.
"""

import errno
import os
import stat
import threading
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from zeroclaw.errors import ToolFailed, system_words
from zeroclaw.host import processes
from zeroclaw.host.atomic_file import closing_descriptor
from zeroclaw.host.masks import Mask, Parts
from zeroclaw.recent import Recent
from zeroclaw.secret_names import names_secrets
from zeroclaw.value import Struct, Value, field

MAX_ENTRIES = 200_000
MAX_DEPTH = 64
MAX_SECRETS = 1_000
"""Limit of places with secrets; each is a mount in the sandbox of every command."""
_COUNTED_ENTRIES = 2 * MAX_ENTRIES  # with a margin, to see how far it is over and whether it grows
SPARE_BYTES = 268_435_456
"""Space that stays free on the disk of a workspace, also if other programs fill it."""

GRANT_BYTES = 67_108_864
"""Bytes that tools may write into a workspace before it is measured again."""
BLOCK_BYTES = 4_096
"""Charged for each name, and the unit that file sizes are rounded up to: the usual block size."""
_MAX_GRANTS = 1_000
_ENTRIES_A_CALL = 10_000  # a full workspace is walked less often than a small one
_BLOCK = 512  # unit of `st_blocks`, stat(2)
_KB = 1_024  # unit in proc(5)
_WATCHING = threading.Lock()
"""Held by the command whose workspace is measured while it runs: a full workspace takes a second of
the interpreter, so several at once would hold up every other thread."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Errors of places that are gone, are no directories, or are closed to commands as well.
_UNSEEN = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EROFS}
    | {errno.ENOTCONN, errno.ESTALE}  # a network file system without its server
)


class DiskUsage(Struct, kw_only=True):
    """The contents of a workspace, measured.

    Attributes:
        bytes_: Disk space; of sparse files the occupied part, of hard links one.
        entries: Number of files, directories and other entries.
        is_whole: Whether everything was counted; if not, there are far too many entries, or some
            are nested deeper than `MAX_DEPTH`.
        is_disk_full: Whether its disk has less than `SPARE_BYTES` left.
        largest_bytes: Size of its largest file, holes included.
        secrets: The outermost places with names of secrets, at most `MAX_SECRETS` + 1. Links don't
            count: the names of their targets do.
    """

    bytes_: int = 0
    entries: int = 0
    is_whole: bool = True
    is_disk_full: bool = False
    largest_bytes: int = 0
    secrets: list[Mask] = field(default_factory=list[Mask])

    def excess(self, max_bytes: int, max_entries: int = MAX_ENTRIES) -> str:
        """Return which limit is exceeded; empty if none is."""
        if not self.is_whole or self.entries > max_entries:
            return (
                f"the workspace holds more than {max_entries:,} files, or directories nested"
                f" deeper than {MAX_DEPTH}"
            )
        if self.bytes_ > max_bytes:
            return f"the workspace holds more than its {max_bytes:,} bytes"
        return "the disk of the workspace is nearly full" if self.is_disk_full else ""


class Quota:
    """Bounds the files that tools write into workspaces; thread-safe.

    Measuring a large workspace is slow, so each measurement grants an allowance, and the next one
    is taken when that is spent. Writes of commands in the meantime are not counted: a workspace can
    exceed its limit by up to `GRANT_BYTES`.
    """

    def __init__(self, max_bytes: int = 2_147_483_648) -> None:
        """Set the limit of each workspace."""
        self._max_bytes = max_bytes
        self._granted: Recent[Path, tuple[int, int]] = Recent(_MAX_GRANTS)
        self._lock = threading.Lock()

    def spend(
        self, workspace: Path, *, new_bytes: int, new_entries: int, skipped: Container[Parts] = ()
    ) -> None:
        """Charge a write before it happens; blocks.

        Args:
            workspace: Its real path.
            new_bytes: How many bytes the workspace grows by; always allowed if 0 or less.
            new_entries: How many files and directories are created.
            skipped: See `measure`.

        Raises:
            ToolFailed: There is no room for it.
        """
        cost = max(new_bytes, 0) + new_entries * BLOCK_BYTES
        if self._take(workspace, cost, new_entries):
            return
        usage = measure(workspace, skipped=skipped)
        if excess := usage.excess(self._max_bytes):
            message = f"{excess}: remove something first"
            raise ToolFailed(message)
        free_bytes = self._max_bytes - usage.bytes_
        free_entries = MAX_ENTRIES - usage.entries
        if cost > free_bytes or new_entries > free_entries:
            message = (
                f"the workspace has no room for it: {max(free_bytes, 0):,} of its"
                f" {self._max_bytes:,} bytes and {free_entries:,} of its {MAX_ENTRIES:,} files"
                " are free"
            )
            raise ToolFailed(message)
        with self._lock:
            self._granted[workspace] = (max(cost, min(free_bytes, GRANT_BYTES)), free_entries)
        self._take(workspace, cost, new_entries)

    def _take(self, workspace: Path, cost: int, entries: int) -> bool:
        with self._lock:
            free_bytes, free_entries = self._granted.get(workspace, (0, 0))
            if cost > free_bytes or entries > free_entries:
                return False
            self._granted[workspace] = (free_bytes - cost, free_entries - entries)
            return True


class Meter(Struct, kw_only=True):
    """Watches one command, and reports when it exceeds a limit.

    Attributes:
        max_bytes: Limit of its workspace; a workspace that is larger at the start must not grow.
        usage: The workspace's contents at the start.
        skipped: See `measure`; as at the start.
        memory_bytes: Limit of its memory; None if a cgroup bounds memory and processes.
        max_processes: Limit of its processes; None in a sandbox, whose processes stay in one tree.
    """

    max_bytes: int
    workspace: Path
    usage: DiskUsage
    skipped: Container[Parts] = ()
    memory_bytes: int | None = None
    max_processes: int | None = None
    _calls_to_skip: int = 0

    def __call__(self, pid: int) -> str:
        """Return which limit the command (by its first process) exceeds; empty if none."""
        pids = processes.tree(pid)
        if self.max_processes is not None:
            # An orphan leaves the tree, but stays in the group.
            pids = tuple({*pids, *processes.living(pid)})
        if excess := self._process_excess(pids):
            return excess
        self._calls_to_skip -= 1
        if self._calls_to_skip > 0 or not _WATCHING.acquire(blocking=False):
            return ""
        try:
            usage = measure(self.workspace, skipped=self.skipped)
        finally:
            _WATCHING.release()
        usage.bytes_ += nameless_bytes(pids, self.workspace)
        self._calls_to_skip = 1 + usage.entries // _ENTRIES_A_CALL
        before = self.usage
        usage.is_disk_full &= not before.is_disk_full
        return usage.excess(max(self.max_bytes, before.bytes_), max(MAX_ENTRIES, before.entries))

    def _process_excess(self, pids: tuple[int, ...]) -> str:
        if self.memory_bytes is None:
            return ""
        if self.max_processes is not None and len(pids) > self.max_processes:
            return f"more than {self.max_processes} of its processes ran at once"
        if memory_bytes(pids) > self.memory_bytes:
            return f"its processes together used more than {self.memory_bytes:,} bytes of memory"
        return ""


def memory_bytes(pids: tuple[int, ...]) -> int:
    """Return the private memory of the processes, and the memory they share, each piece once.

    Anonymous shared pages (`MAP_SHARED | MAP_ANONYMOUS`) outlive their writer and are charged to no
    process that does not touch them. So the whole mapping counts.
    """
    shared = _mapped_bytes(pids, lambda mapped: mapped.is_shared_memory)
    return sum(map(_private_bytes, pids)) + sum(shared.values())


def nameless_bytes(pids: tuple[int, ...], workspace: Path) -> int:
    """Return the disk space of deleted files that the processes still hold open on this disk.

    For a file that is only mapped, the mapped size counts; its real size can't be read.
    """
    try:
        device = workspace.stat().st_dev
    except OSError:
        return 0  # measuring the workspace reports that it is gone
    device_name = f"{os.major(device):02x}:{os.minor(device):02x}"
    sizes = _mapped_bytes(pids, lambda mapped: mapped.device == device_name)
    for pid in pids:
        for status in _open_files(pid):
            if status.st_nlink == 0 and status.st_dev == device and stat.S_ISREG(status.st_mode):
                sizes[status.st_ino] = status.st_blocks * _BLOCK
    return sum(sizes.values())


def measure(
    workspace: Path, *, skipped: Container[Parts] = (), owner: int | None = None
) -> DiskUsage:
    """Measure a workspace; directories that a command made inaccessible are unlocked.

    Another file system mounted below it is searched for secrets, but does not count.

    Args:
        workspace: Its real path.
        skipped: Places to skip, as commands and tools can't change them, by their names from the
            workspace down.
        owner: User id that takes over the daemon's files; None to leave them. Secrets keep their
            owner, because no command sees them.

    Raises:
        ToolFailed: The workspace can't be opened.
    """
    directory = _open_directory(str(workspace), None)
    if directory is None:
        message = "the workspace is gone, or belongs to another user"
        raise ToolFailed(message)
    usage = DiskUsage()
    with closing_descriptor(directory):
        status = os.fstat(directory)
        if owner is not None and status.st_uid == os.geteuid():
            os.fchown(directory, owner, owner)
        is_ours = status.st_uid in (os.geteuid(), owner)
        if is_ours and status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            # Root can enter anyway, but the user that runs its commands can't.
            os.fchmod(directory, stat.S_IMODE(status.st_mode) | stat.S_IRWXU)
        measurement = _Measurement(usage, skipped, owner, status.st_dev)
        measurement.walk(directory, (), is_secret=False)
        disk = os.fstatvfs(directory)
    usage.is_disk_full = disk.f_bavail * disk.f_frsize < SPARE_BYTES
    return usage


class _Measurement(Struct):
    """The state of a walk. Every step starts from an open directory, so no link leads outside."""

    usage: DiskUsage
    skipped: Container[Parts]
    owner: int | None
    device: int
    _daemon_uid: int = field(default_factory=os.geteuid)
    _linked: set[int] = field(default_factory=set[int])
    _visited: int = 0

    def walk(self, directory: int, parts: Parts, *, is_secret: bool) -> None:
        with os.scandir(directory) as entries:
            for entry in entries:
                if self._visited >= _COUNTED_ENTRIES:
                    self.usage.is_whole = False
                    return
                inner = (*parts, entry.name)
                if inner in self.skipped:
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError as error:
                    _demand_unseen(error)
                    continue
                self._visited += 1
                is_on_disk = status.st_dev == self.device  # other disks don't count
                if is_on_disk:
                    self._count(status)
                is_inner_secret = is_secret or self._note_secret(inner, status)
                if self.owner is not None and is_on_disk and not is_inner_secret:
                    self._change_owner(entry.name, directory, status, self.owner)
                if stat.S_ISDIR(status.st_mode):
                    self._descend(entry.name, directory, inner, is_secret=is_inner_secret)

    def _note_secret(self, parts: Parts, status: os.stat_result) -> bool:
        """Note a place whose name is one of secrets; return whether it is."""
        if stat.S_ISLNK(status.st_mode) or not names_secrets(parts[-1]):
            return False
        if len(self.usage.secrets) <= MAX_SECRETS:
            is_directory = stat.S_ISDIR(status.st_mode)
            self.usage.secrets.append(Mask(parts=parts, is_directory=is_directory, is_secret=True))
        return True

    def _count(self, status: os.stat_result) -> None:
        self.usage.entries += 1
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            if status.st_ino in self._linked:
                return
            self._linked.add(status.st_ino)
        self.usage.bytes_ += status.st_blocks * _BLOCK
        if stat.S_ISREG(status.st_mode):
            self.usage.largest_bytes = max(self.usage.largest_bytes, status.st_size)

    def _change_owner(self, name: str, directory: int, status: os.stat_result, owner: int) -> None:
        if status.st_uid == self._daemon_uid:
            with suppress(FileNotFoundError):
                os.chown(name, owner, owner, dir_fd=directory, follow_symlinks=False)

    def _descend(self, name: str, directory: int, parts: Parts, *, is_secret: bool) -> None:
        if len(parts) > MAX_DEPTH:
            self.usage.is_whole = False
            return
        inner = _open_directory(name, directory)
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


def _open_directory(name: str, directory: int | None) -> int | None:
    """Open a directory; if the daemon owns it without access, give access first.

    Raises:
        ToolFailed: The system has no room to open it, or fails.
    """
    try:
        with closing_descriptor(os.open(name, os.O_PATH | _DIRECTORY, dir_fd=directory)) as place:
            with suppress(PermissionError):
                # `.` also takes the right to enter. Without it, entries have names, but no status.
                return os.open(".", _DIRECTORY, dir_fd=place)
            # chmod the opened directory, not another one that may have taken its name.
            path = Path(f"/proc/self/fd/{place}")
            path.chmod(stat.S_IMODE(os.fstat(place).st_mode) | stat.S_IRWXU)
            return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        _demand_unseen(error)
    return None


def _demand_unseen(error: OSError) -> None:
    """Refuse to pass over a place that a command might see, as secrets in it would stay unmasked."""
    if error.errno not in _UNSEEN:
        message = f"the workspace can't be measured: {system_words(error)}"
        raise ToolFailed(message) from error


def _open_files(pid: int) -> Iterator[os.stat_result]:
    with suppress(OSError):  # it ended meanwhile
        for descriptor in tuple((processes.PROC / str(pid) / "fd").iterdir()):
            with suppress(OSError):
                yield descriptor.stat()


def _private_bytes(pid: int) -> int:
    lines = _read(pid, "status")
    sizes = [line.split()[1] for line in lines if line.startswith(("RssAnon:", "VmSwap:"))]
    return sum(int(size) * _KB for size in sizes)


def _mapped_bytes(pids: tuple[int, ...], counts: Callable[[_Mapped], bool]) -> dict[int, int]:
    """Return the largest mapped size of each deleted file that counts, by inode."""
    sizes: dict[int, int] = {}
    for mapped in filter(counts, chain.from_iterable(map(_mapped, pids))):
        sizes[mapped.inode] = max(mapped.size, sizes.get(mapped.inode, 0))
    return sizes


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
