"""How a person types a command of ours where they stand, for lines that say what to type next.

A checkout's program lies in its `.venv`, where no shell looks; and a command about the same daemon
needs the `--config` and `--data-dir` that this one was given.
"""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TypeVar, cast

import click

V = TypeVar("V")

NAME = "zeroclaw"
OPTIONS = ("config", "data_dir")
"""What is handed on, by the parameter's name, in the order in which it is typed."""
_WITHOUT = frozenset({"demo", "init"})
"""Commands that take neither of them for what they are about."""
_SCHEMA = "config schema"  # which is the same for every file
_CONFIG_ALONE = frozenset({"config", "models", "policy", "try"})
_COMMAND = re.compile(r"`zeroclaw ([a-z][^`]*)`")


def note_option(ctx: click.Context, param: click.Parameter, value: V) -> V:
    """Note an option that was given, as click's callback of it."""
    if value is not None:
        ctx.meta[f"{NAME}.{param.name}"] = str(value)
    return value


def command(words: str) -> str:
    """Return what to type for a command of ours that is about the same daemon as this one.

    Args:
        words: The command with its own arguments, such as `config set KEY VALUE`.
    """
    first, *_ = words.split()
    names = (
        ()
        if first in _WITHOUT or words == _SCHEMA
        else OPTIONS[:1]
        if first in _CONFIG_ALONE
        else OPTIONS
    )
    return " ".join((program(), words, *map(shlex.quote, handed_on(names))))


def handed_on(names: tuple[str, ...] = OPTIONS) -> tuple[str, ...]:
    """Return the options that lead another command to the same daemon, as this one was given them."""
    context = click.get_current_context(silent=True)
    meta = cast("dict[str, str]", {} if context is None else context.meta)
    given = {f"--{name.replace('_', '-')}": meta.get(f"{NAME}.{name}") for name in names}
    return tuple(
        part for name, value in given.items() if value is not None for part in (name, value)
    )


def say(text: str) -> None:
    """Print a text, harmless."""
    click.echo(harmless(text))


def harmless(text: str) -> str:
    """Return a text as it can be typed here, with nothing in it that a terminal obeys or does not show."""
    from zeroclaw.text.escape import escape_invisible

    return copyable(escape_invisible(text))


def copyable(text: str) -> str:
    """Return a text with every `zeroclaw …` in it as it can be typed here."""

    def typed_out(found: re.Match[str]) -> str:
        words = found[1]
        is_whole = " --config " in words or words.endswith("--help")
        return found[0] if is_whole else f"`{command(words)}`"

    return _COMMAND.sub(typed_out, text)


def program() -> str:
    """Return what to type for this process's program; reads the disk."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # removed while a shell stands there
        return NAME
    started = Path(sys.argv[0])
    if started.parts[-2:] == (NAME, "__main__.py"):  # `python -m zeroclaw`
        started = Path(sys.executable).with_name(NAME)
    return typed(str(started), path=os.environ.get("PATH", os.defpath), here=here)


def typed(started: str, *, path: str, here: Path) -> str:
    """Return what to type for a program.

    Args:
        started: The path that it was started by; another name than ours is not told on.
        path: The directories that the person's shell looks in, `$PATH`.
        here: Where the person stands.

    Returns:
        Its name where the shell finds it, else its path from here or from the root.
    """
    whole = here / started
    found = shutil.which(NAME, path=path)
    if whole.name != NAME or (found is not None and Path(found).samefile(whole)):
        return NAME
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)
