"""How to type a command of ours in the current shell, for lines that say what to type next.

In a checkout the program is in `.venv`, where no shell looks for it. And a command about the same
daemon needs the `--config` and `--data-dir` that this one was given.
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
_TAKES = {
    **dict.fromkeys(("demo", "config schema"), ()),
    **dict.fromkeys(("config get", "init", "models", "policy show", "try"), OPTIONS[:1]),
}
"""Commands that select a daemon by fewer of them, or by none."""
_COMMAND = re.compile(r"`zeroclaw ([a-z][^`]*)`")


def noted_path(ctx: click.Context, param: click.Parameter, value: str | None) -> Path | None:
    """Store the path of an option that was given, and return it; a click callback."""
    if value is None:
        return None
    if not value:  # a variable that is not set; as a path it would be this directory
        message = f"{param.opts[-1]}: it is empty; name a path, or leave the option out"
        raise click.UsageError(message, ctx)
    path = Path(value)
    ctx.meta[f"{NAME}.{param.name}"] = str(path)
    return path


def command(words: str) -> str:
    """Return what to type for a command about the same daemon as this one.

    Args:
        words: The command with its own arguments, such as `config set KEY VALUE`.
    """
    first, *more = words.split()
    names = _TAKES.get(" ".join((first, *more[:1])), _TAKES.get(first, OPTIONS))
    return " ".join((program(), words, *map(shlex.quote, handed_on(names))))


def handed_on(names: tuple[str, ...] = OPTIONS) -> tuple[str, ...]:
    """Return the given options that select this command's daemon, for another command."""
    context = click.get_current_context(silent=True)
    meta = cast("dict[str, str]", {} if context is None else context.meta)
    given = {f"--{name.replace('_', '-')}": meta.get(f"{NAME}.{name}") for name in names}
    return tuple(
        part for name, value in given.items() if value is not None for part in (name, value)
    )


def say(text: str) -> None:
    """Print a text, made harmless."""
    click.echo(harmless(text))


def note(line: str) -> None:
    """Print a line beside a command's result, on stderr, made harmless."""
    click.echo(f"zeroclaw: {harmless(line)}", err=True)


def harmless(text: str) -> str:
    """Return a text with our commands as they can be typed here, and no control characters."""
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
    except FileNotFoundError:  # the current directory was removed
        return NAME
    started = Path(sys.argv[0])
    if started.parts[-2:] == (NAME, "__main__.py"):  # `python -m zeroclaw`
        started = Path(sys.executable).with_name(NAME)
    return typed(str(started), path=os.environ.get("PATH", os.defpath), here=here)


def typed(started: str, *, path: str, here: Path) -> str:
    """Return what to type for a program.

    Args:
        started: The path that it was started by; a name other than ours is not shown.
        path: The directories that the person's shell searches, `$PATH`.
        here: The current directory.

    Returns:
        Its name if the shell finds it, else its path, relative to the current directory if inside.
    """
    whole = here / started
    found = shutil.which(NAME, path=path)
    if whole.name != NAME or (found is not None and Path(found).samefile(whole)):
        return NAME
    return shlex.quote(str(whole.relative_to(here) if whole.is_relative_to(here) else whole))
