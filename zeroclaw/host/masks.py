"""Masks places in a workspace, or in a skill's folder, so that they don't exist for tools."""

import os
import stat
from pathlib import Path

from zeroclaw.errors import ToolFailed, system_words
from zeroclaw.secret_names import names_secrets
from zeroclaw.value import Value

Parts = tuple[str, ...]
"""A place, by its names from the workspace or the folder down."""

MOST_ENTRIES = 5_000
"""Most entries of a folder next to the workspace; each is checked before each command."""


class Mask(Value):
    """The mask over a place that exists; everything below it is masked too.

    Attributes:
        parts: The place.
        is_directory: Whether it is a directory.
        is_secret: It is masked for its name. If a command moves the directory above it, the mask
            moves along; other places must not be moved.
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
    return any(parts[: len(one)] == one for one in hidden)


def masks_of(workspace: Path, hidden: tuple[Parts, ...]) -> tuple[Mask, ...]:
    """Return the masks of the hidden places that exist; blocks, so call it in a thread.

    Raises:
        ToolFailed: The path to one of them contains a symbolic link, so masking it would mask
            something else.
    """
    return tuple(
        Mask(parts=parts, is_directory=stat.S_ISDIR(seen.st_mode))
        for parts in hidden
        if (seen := _look(workspace, parts)) is not None
    )


def _look(workspace: Path, parts: Parts) -> os.stat_result | None:
    seen = workspace.lstat()
    for depth in range(1, len(parts) + 1):
        place = workspace.joinpath(*parts[:depth])
        try:
            seen = place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISLNK(seen.st_mode):
            name = "/".join(parts[:depth])
            message = f"`{name}` is protected, but is a symbolic link: remove the link first"
            raise ToolFailed(message)
    return seen


def is_closed(name: str) -> bool:
    """Whether no tool sees a file or directory of this name in a skill's folder."""
    return name[0] == "." or names_secrets(name)


def masks_in(folder: Path) -> tuple[Mask, ...]:
    """Return what a command must not see in a skill's folder: hidden and special files, and secrets.

    Links stay visible: within a sandbox they lead nowhere else on this machine.

    Raises:
        ValueError: The folder must not be mounted, because it became a link, is world-writable, or
            has too many entries. The message is half a sentence.
    """
    found: list[Mask] = []
    left = [folder]
    count = 0
    try:
        if folder != Path(os.path.realpath(folder, strict=True)):
            message = "became a symbolic link"
            raise ValueError(message)
        while left:
            for one in sorted((here := left.pop()).iterdir()):
                seen, count = one.lstat(), count + 1
                is_directory = stat.S_ISDIR(seen.st_mode)
                is_plain = is_directory or stat.S_ISREG(seen.st_mode)
                if count > MOST_ENTRIES:
                    message = f"holds more than {MOST_ENTRIES:,} files"
                    raise ValueError(message)
                if (is_plain and is_closed(one.name)) or not (is_plain or one.is_symlink()):
                    found.append(
                        Mask(parts=one.relative_to(folder).parts, is_directory=is_directory)
                    )
                elif is_directory:
                    left.append(one)
                elif is_plain and seen.st_mode & stat.S_IWOTH:
                    raise _written_by_all()
            if here.stat().st_mode & stat.S_IWOTH:
                raise _written_by_all()
    except OSError as error:
        message = f"can't be read: {system_words(error)}"
        raise ValueError(message) from error
    return tuple(found)


def _written_by_all() -> ValueError:
    return ValueError("can be written by everybody on this machine: `chmod -R o-w` it")
