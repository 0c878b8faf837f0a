"""Where one run of a file tool works: a workspace, opened name by name, following no link.

Every step starts from the descriptor of the directory before it (openat(2) with `O_NOFOLLOW`), so
a name that is swapped for a link between the decision and the run is refused, not followed. All of
this blocks: call it in a thread.

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
from typing import Literal

from zeroclaw.errors import ToolFailed, system_words
from zeroclaw.host.executors import FairShare
from zeroclaw.host.protected import Rule
from zeroclaw.host.usage import Quota
from zeroclaw.tools import quoted
from zeroclaw.value import Value, field

INSIDE = "/workspace"  # what a command in the sandbox calls the workspace

Parts = tuple[str, ...]
Kind = Literal["file", "directory", "link", "special"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK the opening of a pipe that was swapped in waits for a writer for ever.
_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAKING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def parts_of(path: str, workspace: Path) -> Parts:
    """Split a path into the names from the workspace down; pure.

    Args:
        path: Relative to the workspace, or absolute and inside it by either of its names.
        workspace: Its path.

    Raises:
        ToolFailed: The path leaves the workspace, or goes up.
    """
    inside = path
    for root in (INSIDE, str(workspace)):
        if path == root or path.startswith(f"{root}/"):
            inside = path[len(root) :].lstrip("/")
            break
    if inside.startswith("/"):
        message = f"{quoted(path)} is outside the workspace: give a path relative to it"
        raise ToolFailed(message)
    parts = tuple(part for part in inside.split("/") if part not in {"", "."})
    if ".." in parts:
        message = f"{quoted(path)} goes up with `..`: give the path from the workspace down"
        raise ToolFailed(message)
    return parts


def shown(parts: Parts) -> str:
    """Return a path as people and models read it, in backticks."""
    return quoted("/".join(parts) or ".")


def kind_of(mode: int) -> Kind:
    """Return what a file's mode says that it is; pure."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "special"


def resolve(workspace: Path, parts: Parts) -> Path:
    """Return the real path of a place, which need not exist.

    Args:
        workspace: Its real path.
        parts: From there down.

    Raises:
        ToolFailed: A link is on the way, so the path names something else.
    """
    for depth in range(1, len(parts) + 1):
        try:
            seen = workspace.joinpath(*parts[:depth]).lstat()
        except (FileNotFoundError, NotADirectoryError):
            break  # the rest does not exist
        except OSError as error:
            raise failure(error, parts[:depth], "look at") from error
        if stat.S_ISLNK(seen.st_mode):
            raise _link(parts[:depth])
    return workspace.joinpath(*parts)


def missing_parts(workspace: Path, parts: Parts) -> tuple[Parts, os.stat_result | None]:
    """Return the names of a path that do not exist yet, and what stands at its end.

    Only an estimate of what making the path costs: making it looks again, name by name.
    """
    seen: os.stat_result | None = None
    for depth in range(1, len(parts) + 1):
        try:
            seen = workspace.joinpath(*parts[:depth]).lstat()
        except OSError:
            return parts[depth - 1 :], None
    return (), seen


@contextmanager
def opened_directory(workspace: Path, parts: Parts, *, make: bool = False) -> Generator[int]:
    """Open a directory; the descriptor closes with the block.

    Args:
        workspace: Trusted; links above it are followed.
        parts: From the workspace down.
        make: Make what is missing on the way.

    Raises:
        ToolFailed: There is none, or a link is on the way.
    """
    try:
        here = os.open(workspace, _DIRECTORY & ~os.O_NOFOLLOW)
    except OSError as error:
        raise failure(error, (), "enter") from error
    try:
        for depth, name in enumerate(parts, start=1):
            if make:
                _make(here, name, parts[:depth])
            there = _enter(here, name, parts[:depth])
            os.close(here)
            here = there
        yield here
    finally:
        os.close(here)


@contextmanager
def opened_file(workspace: Path, parts: Parts) -> Generator[int]:
    """Open a regular file for reading; the descriptor closes with the block.

    Raises:
        ToolFailed: There is none, it is no regular file, or a link is on the way.
    """
    if not parts:
        message = "the workspace is a directory: give the path of a file in it"
        raise ToolFailed(message)
    with opened_directory(workspace, parts[:-1]) as directory:
        file = open_at(directory, parts)
        try:
            yield file
        finally:
            os.close(file)


def open_at(directory: int, parts: Parts) -> int:
    """Open the regular file that is called by the last name in an open directory.

    Raises:
        ToolFailed: As `opened_file`.
    """
    seen = stat_at(directory, parts)
    if seen is None:
        message = f"{shown(parts)} does not exist"
        raise ToolFailed(message)
    _demand_file(seen, parts)  # looked at first, because opening a device may do something
    try:
        file = os.open(parts[-1], _READING, dir_fd=directory)
    except OSError as error:
        raise failure(error, parts, "open") from error
    try:
        _demand_file(os.fstat(file), parts)
    except ToolFailed:
        os.close(file)
        raise
    return file


def stat_at(directory: int, parts: Parts) -> os.stat_result | None:
    """Look at the last name in an open directory; None when there is nothing of that name."""
    try:
        return os.stat(parts[-1], dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failure(error, parts, "look at") from error


def replace_at(
    directory: int, parts: Parts, data: bytes, *, replaces: os.stat_result | None
) -> None:
    """Put a file with this content in place of the last name, whole or not at all.

    Args:
        directory: The open directory.
        parts: The whole path, for messages; the last name is the file's.
        data: All of the new content.
        replaces: What is there now; its permissions are kept, and if it has changed meanwhile
            nothing is written.

    Raises:
        ToolFailed: It could not be written; then everything is as it was.
    """
    # A name that can't be guessed, so that no trap can wait there.
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
        os.fsync(directory)
    except OSError as error:
        raise failure(error, parts, "write") from error


def failure(error: OSError, parts: Parts, doing: str) -> ToolFailed:
    """Return the one line about a refusal of the operating system."""
    if error.errno == errno.ELOOP:
        return _link(parts)
    return ToolFailed(f"can't {doing} {shown(parts)}: {system_words(error)}")


def _link(parts: Parts) -> ToolFailed:
    return ToolFailed(f"{shown(parts)} is a symbolic link, and links are not followed")


def _demand_file(seen: os.stat_result, parts: Parts) -> None:
    match kind_of(seen.st_mode):
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
    now = stat_at(directory, parts)
    if _version(now) != _version(before):
        message = f"{shown(parts)} was changed by somebody else meanwhile: read it again"
        raise ToolFailed(message)


def _version(seen: os.stat_result | None) -> tuple[int, int, int] | None:
    return None if seen is None else (seen.st_ino, seen.st_size, seen.st_mtime_ns)


def _make(directory: int, name: str, parts: Parts) -> None:
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        return  # the usual case; whether it is a directory is seen when it is entered
    except OSError as error:
        raise failure(error, parts, "make") from error


def _enter(directory: int, name: str, parts: Parts) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except FileNotFoundError:
        message = f"{shown(parts)} does not exist"
        raise ToolFailed(message) from None
    except NotADirectoryError:
        # A link says the same when a directory is demanded of it.
        seen = stat_at(directory, parts)
        if seen is not None and stat.S_ISLNK(seen.st_mode):
            raise _link(parts) from None
        message = f"{shown(parts)} is not a directory"
        raise ToolFailed(message) from None
    except OSError as error:
        raise failure(error, parts, "enter") from error


# --- what a run is handed ------------------------------------------------------------------------


class FilesSettings(Value):
    """What the file tools may cost.

    Attributes:
        max_read_bytes: Of one answer.
        max_write_bytes: Of one file, before and after.
        max_send_bytes: Of one file that goes to a chat, whatever the chat takes.
        max_entries: Of one list.
        max_search_bytes: Read by one search, all files together.
        max_search_cpu_s: Seconds of its thread's processor time that one search may take.
        max_searched_file_bytes: Larger files are passed over by a search, and counted.
        hidden: Places anywhere on this machine that don't exist for the tools.
        share: The places for all of this, one a conversation.
        quota: What a workspace may hold.
    """

    max_read_bytes: int = 262_144
    max_write_bytes: int = 1_048_576
    max_send_bytes: int = 10_000_000
    max_entries: int = 1_000
    max_search_bytes: int = 67_108_864
    max_search_cpu_s: float = 5.0
    max_searched_file_bytes: int = 4_194_304
    hidden: tuple[Path, ...] = ()
    share: FairShare = field(default_factory=lambda: FairShare("calls on files", at_once=4))
    quota: Quota = field(default_factory=Quota)


class Place(Value):
    """What the thread of one run is handed.

    Attributes:
        workspace: Its real path.
        rules: What of it is protected.
        settings: What the run may cost.
        stopped: Set when the caller no longer waits for the answer.
        permits: What of a directory may be touched, see `ToolContext.permits`.
        max_file_bytes: Of one file that the chat takes; 0 where it takes none.
    """

    workspace: Path
    rules: tuple[Rule, ...]
    settings: FilesSettings
    stopped: threading.Event
    permits: Callable[[str], bool]
    max_file_bytes: int = 0

    def go_on(self) -> None:
        """Stop here when the call was cancelled.

        Raises:
            ToolFailed: It was; this is not read.
        """
        if self.stopped.is_set():
            message = "stopped"
            raise ToolFailed(message)
