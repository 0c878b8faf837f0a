"""`zeroclaw doctor`: why is the bot silent?"""

import sys
from pathlib import Path

import click
from msgspec.structs import asdict

from zeroclaw.cli.invocation import copyable
from zeroclaw.cli.options import as_json, print_result, with_places
from zeroclaw.host import resolver


@click.command("doctor")
@with_places
@as_json
def command(config: Path | None, data_dir: Path | None, *, as_json: bool) -> None:
    """Find out why the bot is silent, and what to do.

    Prints one line for each check: the configuration, proxies and certificates, the provider, each
    channel, the sandbox, stored and waiting messages, the audit, the disk, the clock, permissions,
    versions and the last errors. It changes nothing, needs no running daemon, and asks a model
    server only for its list of models, never for an answer. Exits with 1 if a check fails.
    """
    from zeroclaw.cli.doctor.checks import exit_code, in_words, run_checks
    from zeroclaw.cli.doctor.probes import probe

    results = run_checks(resolver.run(probe(config, data_dir)))
    checks = [{**asdict(result), "remedy": copyable(result.remedy)} for result in results]
    report = {"healthy": exit_code(results) == 0, "checks": checks}
    print_result(report, map(in_words, results), as_json=as_json)
    sys.exit(exit_code(results))
