"""`zeroclaw doctor`: why is this silent?"""

import asyncio
import sys
from pathlib import Path

import click
from msgspec.structs import asdict

from zeroclaw.cli.invocation import copyable
from zeroclaw.cli.options import as_json, print_found, with_places


@click.command("doctor")
@with_places
@as_json
def command(config: Path | None, data_dir: Path | None, *, as_json: bool) -> None:
    """Find out why the bot is silent, and what to do.

    Prints one line for each check: the configuration, proxies and certificates, the provider, each
    channel, the sandbox, stored and waiting messages, the audit, the disk, the clock, permissions,
    versions and the last errors. It changes nothing, needs no running daemon, and asks a model server only
    for its list of models, never for an answer. Exits with 1 if a check fails.
    """
    from zeroclaw.cli.doctor.checks import exit_code, in_words, run_checks
    from zeroclaw.cli.doctor.probes import probe

    lines = run_checks(asyncio.run(probe(config, data_dir)))
    checks = [{**asdict(one), "remedy": copyable(one.remedy)} for one in lines]
    told = {"healthy": exit_code(lines) == 0, "checks": checks}
    print_found(told, map(in_words, lines), as_json=as_json)
    sys.exit(exit_code(lines))
