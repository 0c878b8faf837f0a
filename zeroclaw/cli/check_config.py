"""`zeroclaw check-config`: every fault of the configuration, before the daemon meets it."""

import asyncio
import os
from pathlib import Path

import click

from zeroclaw.cli.options import with_places


@click.command("check-config")
@with_places
def command(config: Path | None, data_dir: Path | None) -> None:
    """Find every fault of the configuration.

    Checks the file's form, every key of it and of the installed channels, the policy's statements,
    and whether each secret is where the configuration says, here or for the running daemon. Prints
    one line for each fault, and exits with 2 when there is one; what is only odd, such as a role
    that nobody has, is a warning. Starts nothing, changes nothing.
    """
    from zeroclaw.cli.client import held_by_daemon
    from zeroclaw.cli.configuration import faults_in, in_file, load, start_of
    from zeroclaw.daemon.config_check import missing_secrets
    from zeroclaw.errors import ConfigError
    from zeroclaw.host.places import find_config, read_config

    path = find_config(config)
    text = read_config(path)
    if faults_in(text, environment=os.environ, needs_secrets=False):
        raise ConfigError(in_file(path, faults_in(text, environment=os.environ)))
    loaded = load(config, data_dir)
    places = loaded.places
    missing = missing_secrets(loaded.config, os.environ)
    held = asyncio.run(held_by_daemon(places.data)) if missing else frozenset[str]()
    if faults := tuple(fault for key, fault in missing.items() if key not in held):
        raise ConfigError(in_file(path, faults))
    for key in missing:
        click.echo(f"{key}: not known in this shell; the running daemon has it")
    for warning in start_of(loaded, os.environ, needs_secrets=False).checked.warnings:
        click.echo(f"{path}: warning: {warning}")
    click.echo(f"{path or 'the built-in defaults'}: no faults")
    click.echo(f"data in {places.data}, workspaces in {places.workspaces}")
