"""Masks places in a workspace, or in a skill's folder, so that they don't exist for tools."""

import os
import stat
from pathlib import Path
from typing import Literal

from zeroclaw.errors import ToolFailed, system_words
from zeroclaw.value import Value

Shield = Literal["masked", "secret"]
"""How a place is protected. `secret` masks the name it has now; if a command moves the directory
above it, the mask moves along."""


MOST_ENTRIES = 5_000
"""Most entries of a folder next to the workspace; each is checked before each command."""


class Rule(Value):
    """One protected place of one workspace.

    Attributes:
        parts: Its names from the workspace down; everything below it is protected too.
        shield: How it is protected.
    """

    parts: tuple[str, ...]
    shield: Shield


class Found(Value):
    """A protected place that exists.

    Attributes:
        rule: The rule that protects it.
        is_directory: Whether it is a directory.
    """

    rule: Rule
    is_directory: bool


def rules(hidden: tuple[Path, ...], workspace: Path) -> tuple[Rule, ...]:
    """Return the rules of one workspace, given by its real path (no links).

    `hidden` are absolute paths anywhere on this machine; most are in no workspace.
    """
    return tuple(
        Rule(parts=place.relative_to(workspace).parts, shield="masked")
        for place in hidden
        if place.is_relative_to(workspace)
    )


def is_masked(parts: tuple[str, ...], by: tuple[Rule, ...]) -> bool:
    """Whether a place, by its names from the workspace down, must not be seen or changed."""
    return any(parts[: len(rule.parts)] == rule.parts for rule in by)


def find(workspace: Path, by: tuple[Rule, ...]) -> tuple[Found, ...]:
    """Return the protected places that exist; blocks, so call it in a thread.

    Raises:
        ToolFailed: The path to one of them contains a symbolic link, so masking it would mask
            something else.
    """
    found = [(rule, _look(workspace, rule)) for rule in by]
    return tuple(
        Found(rule=rule, is_directory=stat.S_ISDIR(seen.st_mode))
        for rule, seen in found
        if seen is not None
    )


def _look(workspace: Path, rule: Rule) -> os.stat_result | None:
    seen = workspace.lstat()
    for depth in range(1, len(rule.parts) + 1):
        place = workspace.joinpath(*rule.parts[:depth])
        try:
            seen = place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISLNK(seen.st_mode):
            name = "/".join(rule.parts[:depth])
            message = f"`{name}` is protected, but is a symbolic link: remove the link first"
            raise ToolFailed(message)
    return seen


def masked_in(folder: Path) -> tuple[Found, ...]:
    """Return what a command must not see in a skill's folder: hidden and special files.

    Links stay visible: within a sandbox they lead nowhere else on this machine.

    Raises:
        ValueError: The folder must not be mounted, because it became a link, is world-writable, or
            has too many entries. The message is half a sentence.
    """
    found: list[Found] = []
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
                if one.name[0] == "." or not (is_plain or one.is_symlink()):
                    rule = Rule(parts=one.relative_to(folder).parts, shield="masked")
                    found.append(Found(rule=rule, is_directory=is_directory))
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
