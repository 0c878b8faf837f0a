"""`zeroclaw check-config`: every fault of the configuration, before the daemon meets it."""

import os
from pathlib import Path

import click

from zeroclaw.cli.options import config_place, with_places


@click.command("check-config")
@with_places
def command(config: Path | None, data_dir: Path | None) -> None:
    """Find every fault of the configuration.

    Checks the file's form, every key of it and of the installed channels, the policy's statements,
    and whether each secret is where the configuration says. Prints one line for each fault, and
    exits with 2 when there is one. Starts nothing and changes nothing.
    """
    from zeroclaw.cli.faults import faults_in
    from zeroclaw.cli.loading import in_file, load
    from zeroclaw.errors import ConfigError
    from zeroclaw.host.places import read_config

    path = config_place(config)
    faults = faults_in(read_config(path), environment=os.environ)
    if faults:
        raise ConfigError(in_file(path, faults))
    places = load(config, data_dir).places
    click.echo(f"{path or 'the built-in defaults'}: no faults")
    click.echo(f"data in {places.data}, workspaces in {places.workspaces}")
