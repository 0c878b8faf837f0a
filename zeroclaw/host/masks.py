"""Masks places in a workspace, or in a skill's folder, so that they don't exist for tools."""

import os
import stat
from pathlib import Path

from zeroclaw.errors import ToolFailed, refused_as, system_words
from zeroclaw.secret_names import names_secrets
from zeroclaw.value import Value

Parts = tuple[str, ...]
"""A place, by its names from the workspace or the folder down."""

MAX_ENTRIES = 5_000
"""Limit of entries of a folder next to the workspace; each is checked before each command."""


class Mask(Value):
    """The mask over a place that exists; everything below it is masked too.

    Attributes:
        parts: The place.
        is_directory: Whether it is a directory.
        is_secret: It is masked because of its name. If a command moves the directory above it, the
            mask moves along; other places must not be moved.
    """

    parts: Parts
    is_directory: bool
    is_secret: bool = False


def hidden_in(workspace: Path, hidden: tuple[Path, ...]) -> tuple[Parts, ...]:
    """Return the hidden places of one workspace, given by its real path (no links).

    `hidden` are absolute paths anywhere on this machine; most are in no workspace.
    """
    return tuple(
        place.relative_to(workspace).parts for place in hidden if place.is_relative_to(workspace)
    )


def is_masked(parts: Parts, hidden: tuple[Parts, ...]) -> bool:
    """Whether a place must not be seen or changed."""
    return any(parts[: len(prefix)] == prefix for prefix in hidden)


def masks_of(workspace: Path, hidden: tuple[Parts, ...]) -> tuple[Mask, ...]:
    """Return the masks of the hidden places that exist; blocks, so call it in a thread.

    Raises:
        ToolFailed: The path to one of them contains a symbolic link, so a mask would cover another
            place; or the way there is closed, for example by a `chmod` of an earlier command.
    """
    return tuple(
        Mask(parts=parts, is_directory=stat.S_ISDIR(status.st_mode))
        for parts in hidden
        if (status := _status(workspace, parts)) is not None
    )


def _status(workspace: Path, parts: Parts) -> os.stat_result | None:
    status = workspace.lstat()
    for depth in range(1, len(parts) + 1):
        name = "/".join(parts[:depth])
        with refused_as(ToolFailed, f"`{name}` is protected, but can't be looked at"):
            try:
                status = (workspace / name).lstat()
            except (FileNotFoundError, NotADirectoryError):
                return None
        if stat.S_ISLNK(status.st_mode):
            message = f"`{name}` is protected, but is a symbolic link: remove the link first"
            raise ToolFailed(message)
    return status


def is_hidden(name: str) -> bool:
    """Whether no tool sees a file or directory of this name in a skill's folder."""
    return name[0] == "." or names_secrets(name)


def masks_in(folder: Path) -> tuple[Mask, ...]:
    """Return the masks of a skill's folder, over hidden and special files and secrets.

    Links stay visible: within a sandbox they lead nowhere else on this machine.

    Raises:
        ValueError: The folder must not be mounted, because it became a link, is world-writable, or
            has too many entries. The message is half a sentence.
    """
    masks: list[Mask] = []
    pending = [folder]
    count = 0
    try:
        if folder != Path(os.path.realpath(folder, strict=True)):
            message = "became a symbolic link"
            raise ValueError(message)
        while pending:
            directory = pending.pop()
            for path in sorted(directory.iterdir()):
                mode, count = path.lstat().st_mode, count + 1
                is_directory = stat.S_ISDIR(mode)
                is_plain = is_directory or stat.S_ISREG(mode)
                if count > MAX_ENTRIES:
                    message = f"holds more than {MAX_ENTRIES:,} files"
                    raise ValueError(message)
                if (is_plain and is_hidden(path.name)) or not (is_plain or path.is_symlink()):
                    parts = path.relative_to(folder).parts
                    masks.append(Mask(parts=parts, is_directory=is_directory))
                elif is_directory:
                    pending.append(path)
                elif is_plain and mode & stat.S_IWOTH:
                    raise _world_writable()
            if directory.stat().st_mode & stat.S_IWOTH:
                raise _world_writable()
    except OSError as error:
        message = f"can't be read: {system_words(error)}"
        raise ValueError(message) from error
    return tuple(masks)


def _world_writable() -> ValueError:
    return ValueError("can be written by every user of this machine: `chmod -R o-w` it")
