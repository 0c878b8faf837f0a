"""What of a workspace, or of a skill's folder, does not exist for a tool: it is masked, whole."""

import os
import stat
from pathlib import Path
from typing import Literal

from zeroclaw.errors import ToolFailed, system_words
from zeroclaw.value import Value

Shield = Literal["masked", "secret"]
"""How a place is protected; `secret` is masked for the name that it has now, and where a command
moves the directory above it, the mask goes along."""


MOST_ENTRIES = 5_000
"""Of a folder beside the workspace; each is looked at before each command."""


class Rule(Value):
    """One protected place of one workspace.

    Attributes:
        parts: The names from the workspace down to it; what lies below it is protected as well.
        shield: How.
    """

    parts: tuple[str, ...]
    shield: Shield


class Found(Value):
    """A protected place that exists.

    Attributes:
        rule: The rule that protects it.
        is_directory: Else it is anything else.
    """

    rule: Rule
    is_directory: bool


def rules(hidden: tuple[Path, ...], workspace: Path) -> tuple[Rule, ...]:
    """Return the rules of one workspace, whose path must be real (no links).

    `hidden` are places anywhere on this machine, absolute; most lie in no workspace.
    """
    return tuple(
        Rule(parts=place.relative_to(workspace).parts, shield="masked")
        for place in hidden
        if place.is_relative_to(workspace)
    )


def is_masked(parts: tuple[str, ...], by: tuple[Rule, ...]) -> bool:
    """Tell whether a place, by its names from the workspace down, is not to be seen or changed."""
    return any(parts[: len(rule.parts)] == rule.parts for rule in by)


def find(workspace: Path, by: tuple[Rule, ...]) -> tuple[Found, ...]:
    """Look which protected places exist; blocks, so call it in a thread.

    Raises:
        ToolFailed: One of them is reached by a symbolic link, so protecting its name would
            protect something else.
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
    """Return what of a skill's folder no command is to see: what is hidden, and what is no file.

    Links are there as they are: within a sandbox they lead to nothing else of this machine.

    Raises:
        ValueError: It can't be shown to a command, for it became a link, others may write in it, or it
            holds too much to be looked through; half a sentence.
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
