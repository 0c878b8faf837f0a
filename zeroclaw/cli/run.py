"""`zeroclaw run`: the daemon."""

import gc
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Literal

import click

from zeroclaw.cli.options import with_places

_STDIN = 0


@click.command("run")
@with_places
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="The lowest level that is logged.",
)
@click.option(
    "--log-form",
    type=click.Choice(["lines", "json"]),
    default="lines",
    show_default=True,
    help="Lines for people, or JSON for machines.",
)
@click.option("--until-stdin-ends", is_flag=True, hidden=True)  # for `chat` and `demo`
def command(
    *,
    config: Path | None,
    data_dir: Path | None,
    log_level: Literal["debug", "info", "warning", "error"],
    log_form: Literal["lines", "json"],
    until_stdin_ends: bool,
) -> None:
    """Run the daemon until a signal stops it.

    Without a configuration it uses built-in defaults: a small model on this machine, the web page
    on 127.0.0.1:8420, the terminal, and tools that ask before they do more than read. SIGTERM or
    Ctrl-C ends it, after a grace period for unfinished answers. SIGHUP reads the
    configuration again, like `zeroclaw reload`. The log goes to stderr.
    """
    mode = os.fstat(_STDIN).st_mode
    if until_stdin_ends and not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        message = "--until-stdin-ends needs a pipe as standard input"
        raise click.UsageError(message)
    from zeroclaw.host.hangup import Hangup

    hangup = Hangup()
    hangup.keep()
    # Starting creates no garbage; searching for it took a tenth of the start.
    gc.disable()
    from zeroclaw import daemon
    from zeroclaw.cli.configuration import load, start_of
    from zeroclaw.cli.greeting import greeting
    from zeroclaw.host import logs

    loaded = load(config, data_dir)
    if loaded.config.provider.kind == "auto":  # otherwise discovery is not imported
        from zeroclaw.cli.models.provider import at_the_terminal, take_model

        loaded = take_model(loaded, os.environ, ask=at_the_terminal())
    start = start_of(loaded, os.environ)
    stop_logging = logs.set_up(redact=start.checked.redactor.redact, form=log_form, level=log_level)

    if reason := loaded.reason:
        kind, model = loaded.config.provider.kind, loaded.config.provider.model
        logs.EventLog("daemon")("provider_chosen", kind=kind, model=model, reason=reason)

    def greet(facts: daemon.ReadyFacts) -> None:
        gc.freeze()  # code and services live as long as the process
        gc.enable()
        lines = greeting(facts, loaded)
        # A closed pipe or a full disk must not end the daemon.
        with suppress(OSError):
            click.echo("\n".join(lines))
            sys.stdout.flush()

    try:
        lifeline = _STDIN if until_stdin_ends else None
        daemon.run(start, on_ready=greet, lifeline=lifeline, hangup=hangup)
    finally:
        stop_logging()
