"""The options that commands share, and the output of their results."""

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TypeVar

import click

from zeroclaw.cli.invocation import noted_path, say
from zeroclaw.host.places import data_place

C = TypeVar("C", bound=Callable[..., object])


class Integer(click.IntRange):
    """An integer in a range; click's own name would give "x is not a valid integer range"."""

    name = "integer"


with_config = click.option(
    "--config",
    callback=noted_path,
    type=click.Path(readable=False),
    metavar="PATH",
    help="The configuration file. Default: $ZEROCLAW_CONFIG, or "
    "$XDG_CONFIG_HOME/zeroclaw/config.toml if it exists, or built-in defaults.",
)
"""Adds `--config`."""
_with_data_dir = click.option(
    "--data-dir",
    callback=noted_path,
    type=click.Path(readable=False),
    metavar="PATH",
    help="The data directory, instead of the configured one.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""Adds `--json`."""


def with_places(function: C) -> C:
    """Add `--config` and `--data-dir`."""
    return with_config(_with_data_dir(function))


def at_place(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--config` and `--data-dir`, and pass the data directory that they select."""

    @with_places
    @wraps(function)
    def command(*, config: Path | None, data_dir: Path | None, **arguments: object) -> None:
        function(data_place(config, data_dir), **arguments)

    return command


def print_result(result: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a command's result: all of it as JSON, or lines for people."""
    if as_json:
        from zeroclaw.text import escape

        click.echo(escape.as_json(result, indent=2))
    else:
        say("\n".join(lines))


def progress(name: str) -> Callable[[int, int], None]:
    """Return a function that shows how many bytes are done, on one line and on a terminal only."""

    def show(done: int, total: int) -> None:
        if not sys.stderr.isatty():
            return
        share = f"{total / 1e6:,.0f} MB, {done * 100 // max(total, 1)} %"
        end = "\n" if done == total else ""
        click.echo(f"\r{name}  {done / 1e6:,.0f} of {share}  {end}", nl=False, err=True)

    return show
