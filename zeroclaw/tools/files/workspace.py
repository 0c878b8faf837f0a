"""Opens the files of a workspace for one run, name by name, without following links.

Every step starts from the descriptor of the directory before it (openat(2) with `O_NOFOLLOW`), so a
name that is swapped for a link between the decision and the run is refused, not followed. All
functions block: call them in a thread.

A hard link is an ordinary file here and can't be told from one. It can be read like one; a write
replaces the name and leaves the other names of the old file alone.
"""

import errno
import os
import secrets
import stat
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from zeroclaw.config import model
from zeroclaw.errors import ToolFailed, refused_as, system_words
from zeroclaw.host.executors import FairShare
from zeroclaw.host.masks import Parts
from zeroclaw.host.quotas import MAX_DEPTH, Quota
from zeroclaw.host.sandbox import WORKSPACE
from zeroclaw.tools import quoted
from zeroclaw.value import Value, field

Kind = Literal["file", "directory", "link", "special"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe that was swapped in would wait for a writer forever.
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAKING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def parts_of(path: str, workspace: Path) -> Parts:
    """Split a path into its names from the workspace down; pure.

    Args:
        path: Relative to the workspace, or absolute: below `/workspace` or below its real path.
        workspace: Its real path.

    Raises:
        ToolFailed: The path leaves the workspace, contains `..`, or is too deep.
    """
    relative = path
    for root in (WORKSPACE, str(workspace)):
        if path == root or path.startswith(f"{root}/"):
            relative = path[len(root) :].lstrip("/")
            break
    if relative.startswith("/"):
        message = f"{quoted(path)} is outside the workspace: give a path relative to it"
        raise ToolFailed(message)
    parts = tuple(part for part in relative.split("/") if part not in {"", "."})
    if ".." in parts:
        message = f"{quoted(path)} goes up with `..`: give the path from the workspace down"
        raise ToolFailed(message)
    if len(parts) > MAX_DEPTH:
        message = f"the path goes through more than {MAX_DEPTH} directories: give a shorter one"
        raise ToolFailed(message)
    return parts


def shown(parts: Parts) -> str:
    """Return a path in backticks, as shown to people and models."""
    return quoted("/".join(parts) or ".")


def kind_of(mode: int) -> Kind:
    """Return the file type of a stat mode; pure."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "special"


def resolve(workspace: Path, parts: Parts) -> Path:
    """Return a real path, which need not exist.

    Args:
        workspace: Its real path.
        parts: Names from the workspace down.

    Raises:
        ToolFailed: The path contains a link, so it names something else.
    """
    place = workspace
    for depth, name in enumerate(parts, start=1):
        place /= name
        try:
            status = place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            break  # the rest does not exist
        except OSError as error:
            raise failure(error, parts[:depth], "look at") from error
        if stat.S_ISLNK(status.st_mode):
            raise _link(parts[:depth])
    return workspace.joinpath(*parts)


def missing_parts(workspace: Path, parts: Parts) -> tuple[Parts, os.stat_result | None]:
    """Return the names of a path that don't exist yet, and the stat of its last name if it does.

    Only an estimate of what creating the path costs: creating it checks again, name by name.
    """
    status: os.stat_result | None = None
    for depth in range(1, len(parts) + 1):
        try:
            status = workspace.joinpath(*parts[:depth]).lstat()
        except OSError:
            return parts[depth - 1 :], None
    return (), status


@contextmanager
def opened_directory(workspace: Path, parts: Parts, *, make: bool = False) -> Generator[int]:
    """Open a directory; the descriptor closes with the block.

    Args:
        workspace: Trusted; links above it are followed.
        parts: Names from the workspace down.
        make: Whether to create missing directories.

    Raises:
        ToolFailed: The directory does not exist, or the path contains a link.
    """
    try:
        current = os.open(workspace, _DIRECTORY & ~os.O_NOFOLLOW)
    except OSError as error:
        raise failure(error, (), "enter") from error
    try:
        for depth, name in enumerate(parts, start=1):
            if make:
                _make(current, name, parts[:depth])
            child = _enter(current, name, parts[:depth])
            os.close(current)
            current = child
        yield current
    finally:
        os.close(current)


@contextmanager
def opened_file(workspace: Path, parts: Parts) -> Generator[BinaryIO]:
    """Open a regular file for reading; it closes with the block.

    Raises:
        ToolFailed: It does not exist, is not a regular file, or the path contains a link.
    """
    if not parts:
        message = "the workspace is a directory: give the path of a file in it"
        raise ToolFailed(message)
    with opened_directory(workspace, parts[:-1]) as directory, open_at(directory, parts) as file:
        yield file


def open_at(directory: int, parts: Parts) -> BinaryIO:
    """Open a regular file, the last of `parts`, in an open directory, for reading.

    Raises:
        ToolFailed: As for `opened_file`.
    """
    status = stat_at(directory, parts)
    if status is None:
        message = f"{shown(parts)} does not exist"
        raise ToolFailed(message)
    _demand_file(status, parts)  # checked before, because opening a device may have side effects
    try:
        file = os.open(parts[-1], _READING, dir_fd=directory)
    except OSError as error:
        raise failure(error, parts, "open") from error
    try:
        _demand_file(os.fstat(file), parts)
    except ToolFailed:
        os.close(file)
        raise
    return os.fdopen(file, "rb")


def stat_at(directory: int, parts: Parts) -> os.stat_result | None:
    """Return the stat of the last name in an open directory; None if it does not exist."""
    try:
        return os.stat(parts[-1], dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failure(error, parts, "look at") from error


def replace_at(
    directory: int, parts: Parts, data: bytes, *, replaces: os.stat_result | None
) -> None:
    """Atomically create or replace a file, the last of `parts`, with this content.

    Args:
        directory: Descriptor of the open directory.
        parts: The whole path, for messages; the last name is the file's.
        data: The new content.
        replaces: Stat of the present file. Its permissions are kept, and if it has changed
            meanwhile, the write fails.

    Raises:
        ToolFailed: The file could not be written, and the old one is unchanged; or it was written,
            but the disk did not confirm it. The message says which.
    """
    # An unpredictable name, so that nothing can be planted there.
    temporary = f".zeroclaw-{secrets.token_hex(8)}"
    try:
        file = os.open(temporary, _MAKING, 0o666, dir_fd=directory)
        try:
            with os.fdopen(file, "wb") as writer:
                if replaces is not None:
                    os.fchmod(file, stat.S_IMODE(replaces.st_mode) & 0o777)
                writer.write(data)
                writer.flush()
                os.fsync(file)
            _demand_unchanged(directory, parts, replaces)
            os.rename(temporary, parts[-1], src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            os.unlink(temporary, dir_fd=directory)
            raise
    except OSError as error:
        raise failure(error, parts, "write") from error
    with refused_as(ToolFailed, f"{shown(parts)} is written, but a power cut may undo that"):
        os.fsync(directory)


def failure(error: OSError, parts: Parts, action: str) -> ToolFailed:
    """Return a one-line message about an error of the operating system."""
    if error.errno == errno.ELOOP:
        return _link(parts)
    return ToolFailed(f"can't {action} {shown(parts)}: {system_words(error)}")


def _link(parts: Parts) -> ToolFailed:
    return ToolFailed(f"{shown(parts)} is a symbolic link, and links are not followed")


def _demand_file(status: os.stat_result, parts: Parts) -> None:
    match kind_of(status.st_mode):
        case "file":
            return
        case "link":
            raise _link(parts)
        case "directory":
            message = f"{shown(parts)} is a directory"
            raise ToolFailed(message)
        case "special":
            message = f"{shown(parts)} is a pipe, socket or device, not a file"
            raise ToolFailed(message)


def _demand_unchanged(directory: int, parts: Parts, before: os.stat_result | None) -> None:
    current = stat_at(directory, parts)
    if _version(current) != _version(before):
        message = f"{shown(parts)} was changed meanwhile: read it again"
        raise ToolFailed(message)


def _version(status: os.stat_result | None) -> tuple[int, int, int] | None:
    return None if status is None else (status.st_ino, status.st_size, status.st_mtime_ns)


def _make(directory: int, name: str, parts: Parts) -> None:
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        return  # the usual case; `_enter` checks that it is a directory
    except OSError as error:
        raise failure(error, parts, "make") from error


def _enter(directory: int, name: str, parts: Parts) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except FileNotFoundError:
        message = f"{shown(parts)} does not exist"
        raise ToolFailed(message) from None
    except NotADirectoryError:
        # A link fails like this too, because O_DIRECTORY is set.
        status = stat_at(directory, parts)
        if status is not None and stat.S_ISLNK(status.st_mode):
            raise _link(parts) from None
        message = f"{shown(parts)} is not a directory"
        raise ToolFailed(message) from None
    except OSError as error:
        raise failure(error, parts, "enter") from error


# --- settings and state of a run -----------------------------------------------------------------


class FilesSettings(Value):
    """Limits and shared resources of the file tools.

    Attributes:
        limits: Those of the configuration; files above `max_send_bytes` are not sent, whatever the
            chat accepts.
        max_entries: Most entries in one listing.
        max_search_bytes: Most bytes that one search reads, over all files.
        max_search_cpu_s: Seconds of thread CPU time for one search.
        max_searched_file_bytes: A search skips and counts larger files.
        hidden: Paths anywhere on this machine that don't exist for the tools.
        share: Thread slots for all file calls; one per conversation.
        quota: Bounds the size of each workspace.
    """

    limits: model.FilesSettings = model.FilesSettings.model_construct()
    max_entries: int = 1_000
    max_search_bytes: int = 67_108_864
    max_search_cpu_s: float = 5.0
    max_searched_file_bytes: int = 4_194_304
    hidden: tuple[Path, ...] = ()
    share: FairShare = field(default_factory=lambda: FairShare("calls on files", at_once=4))
    quota: Quota = field(default_factory=Quota)


class RunContext(Value):
    """The context of one run in its thread.

    Attributes:
        workspace: Its real path.
        hidden: The paths that tools must not see.
        settings: The limits.
        stopped: Set when the caller no longer waits for the answer.
        permits: Whether a path below a directory may be touched, see `ToolContext.permits`.
        max_file_bytes: Largest file that the chat takes; 0 if it takes none.
    """

    workspace: Path
    hidden: tuple[Parts, ...]
    settings: FilesSettings
    stopped: threading.Event
    permits: Callable[[str], bool]
    max_file_bytes: int = 0

    def raise_if_stopped(self) -> None:
        """End the run if the call was cancelled.

        Raises:
            ToolFailed: It was cancelled; no reader gets the message.
        """
        if self.stopped.is_set():
            message = "stopped"
            raise ToolFailed(message)
