"""Completes the `zeroclaw` commands in hints, so that a person can paste them into their shell.

In a checkout the program is in `.venv`, where no shell looks for it. And a command about the same
daemon needs the `--config` and `--data-dir` of this one.
"""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import cast

import click

NAME = "zeroclaw"
OPTIONS = ("config", "data_dir")
"""The options to pass on, by parameter name, in the order in which they are typed."""
_FEWER_OPTIONS = {
    **dict.fromkeys(("demo", "config schema"), ()),
    **dict.fromkeys(("config get", "init", "models", "policy show", "try"), OPTIONS[:1]),
}
"""Commands that have only some of these options, or none."""
_COMMAND = re.compile(r"`zeroclaw ([a-z][^`]*)`")


def noted_path(ctx: click.Context, param: click.Parameter, value: str | None) -> Path | None:
    """Store the path of an option on the command line, and return it; a click callback."""
    if value is None:
        return None
    if not value:  # from an unset variable; as a path it would be this directory
        message = f"{param.opts[-1]}: it is empty; name a path, or leave the option out"
        raise click.UsageError(message, ctx)
    path = Path(value)
    ctx.meta[f"{NAME}.{param.name}"] = str(path)
    return path


def command(subcommand: str) -> str:
    """Return the shell command that runs a subcommand on the same daemon as this one.

    Args:
        subcommand: With its arguments, such as `config set KEY VALUE`.
    """
    first, *rest = subcommand.split()
    names = _FEWER_OPTIONS.get(" ".join((first, *rest[:1])), _FEWER_OPTIONS.get(first, OPTIONS))
    return " ".join((program(), subcommand, *map(shlex.quote, daemon_options(names))))


def daemon_options(names: tuple[str, ...] = OPTIONS) -> tuple[str, ...]:
    """Return those of this command's options that select its daemon, for another command."""
    context = click.get_current_context(silent=True)
    meta = cast("dict[str, str]", {} if context is None else context.meta)
    values = {f"--{name.replace('_', '-')}": meta.get(f"{NAME}.{name}") for name in names}
    return tuple(part for name, text in values.items() if text is not None for part in (name, text))


def say(text: str) -> None:
    """Print a text, made harmless."""
    click.echo(harmless(text))


def note(line: str) -> None:
    """Print a line that is not part of a command's result, on stderr, made harmless."""
    click.echo(f"zeroclaw: {harmless(line)}", err=True)


def harmless(text: str) -> str:
    """Return a text with complete commands, and without control characters."""
    from zeroclaw.text.escape import escape_invisible

    return copyable(escape_invisible(text))


def copyable(text: str) -> str:
    """Return a text in which every `zeroclaw …` can be pasted into this shell."""

    def completed(found: re.Match[str]) -> str:
        subcommand = found[1]
        is_complete = " --config " in subcommand or subcommand.endswith("--help")
        return found[0] if is_complete else f"`{command(subcommand)}`"

    return _COMMAND.sub(completed, text)


def program() -> str:
    """Return the shell word that starts this process's program; reads the disk."""
    try:
        cwd = Path.cwd()
    except FileNotFoundError:  # the current directory was removed
        return NAME
    started = Path(sys.argv[0])
    if started.parts[-2:] == (NAME, "__main__.py"):  # `python -m zeroclaw`
        started = Path(sys.executable).with_name(NAME)
    return shell_word(str(started), path=os.environ.get("PATH", os.defpath), cwd=cwd)


def shell_word(started: str, *, path: str, cwd: Path) -> str:
    """Return the shell word that starts a program.

    Args:
        started: The path that started it; if it has another name than `NAME`, it is not used.
        path: The directories that the person's shell searches, `$PATH`.
        cwd: The current directory.

    Returns:
        Its name if the shell finds it, else its path, relative to the current directory if inside.
    """
    absolute = cwd / started
    found = os.path.realpath(shutil.which(NAME, path=path) or "/")
    if absolute.name != NAME or found == os.path.realpath(absolute):
        return NAME
    return shlex.quote(str(absolute.relative_to(cwd) if absolute.is_relative_to(cwd) else absolute))
