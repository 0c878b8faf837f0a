"""`zeroclaw policy`: the statements, and the decision on a call; needs no daemon."""

import asyncio
from pathlib import Path

import click

from zeroclaw.cli.options import as_json, print_result, with_config, with_places


@click.group("policy")
def command() -> None:
    """Show what may run, and explain why."""


@command.command("show")
@with_config
@as_json
def show(config: Path | None, *, as_json: bool) -> None:
    """Print every statement, the shipped ones and yours.

    `autonomy` selects one of three shipped sets: readonly, supervised or full. Your own statements,
    [[policy.statement]], are added to it. Deny beats ask beats allow; a call that no statement
    matches is denied. Below each statement is what it matches today: tools on this machine,
    commands, and people in the configuration.
    """
    from zeroclaw.cli.configuration import load
    from zeroclaw.cli.policy.show import in_words, set_json, sets_of, today_of

    loaded = load(config).config
    sets, today = sets_of(loaded), asyncio.run(today_of(loaded))
    as_jsons = [set_json(statements, today) for statements in sets]
    print_result(as_jsons, in_words(sets, today), as_json=as_json)


@command.command("explain")
@click.option(
    "--who",
    default="operator",
    show_default=True,
    help="operator, person:<name>, role:<name> or <channel>:<sender id>.",
)
@click.option("--tool", required=True, help="The tool's name, such as shell or write_file.")
@click.option("--args", "arguments", default="", metavar="JSON", help="The call's arguments.")
@click.option(
    "--resource",
    "resources",
    multiple=True,
    help="A resource of the call, such as host:example.org:443; repeatable. Default: as the tool says.",
)
@with_places
@as_json
def explain(
    *,
    who: str,
    tool: str,
    arguments: str,
    resources: tuple[str, ...],
    config: Path | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Answer "may X do Y, and why".

    Prints every statement that was considered. The gate gives the answer, so it takes admitted and
    revoked people, protected resources and a halt into account. No daemon has to run.

    \b
    zeroclaw policy explain --tool shell --args '{"command": "ls"}'
    zeroclaw policy explain --who email:a@b.org --tool read_file
    """  # noqa: D301  the \b is click's
    from zeroclaw.cli.configuration import load
    from zeroclaw.cli.policy.show import explanation, explanation_json, ruling_of

    loaded = load(config, data_dir)
    explained = asyncio.run(
        ruling_of(loaded, who=who, tool=tool, arguments=arguments, resources=resources)
    )
    print_result(explanation_json(explained), explanation(explained), as_json=as_json)
