"""`zeroclaw init`: asks for a first configuration, tries it and writes it."""

import os
import sys
from pathlib import Path

import click
import msgspec
from click.core import ParameterSource

from zeroclaw.cli.options import with_config


@click.command("init")
@with_config
@click.option(
    "--force",
    is_flag=True,
    help="Replace an existing configuration; the old file is kept next to it.",
)
@click.option("--yes", is_flag=True, help="Ask nothing; use the options below and defaults.")
@click.option(
    "--url", default="", metavar="URL", help="An OpenAI-compatible endpoint, including /v1."
)
@click.option("--model", default="", metavar="NAME", help="The model's name there.")
@click.option(
    "--key-env", default="", metavar="NAME", help="The environment variable with its key."
)
@click.option("--key-file", default="", metavar="PATH", help="The file (mode 600) with its key.")
@click.option("--model-file", default="", metavar="PATH", help="A GGUF file on this machine.")
@click.option(
    "--channel",
    "channels",
    multiple=True,
    metavar="KIND",
    help="A channel to add to web and terminal. `--set channels.web.enabled=false` turns one off.",
)
@click.option(
    "--operator",
    "operators",
    multiple=True,
    metavar="CHANNEL:ID",
    help="Your sender id on a channel.",
)
@click.option(
    "--autonomy",
    type=click.Choice(["readonly", "supervised", "full"]),
    default="supervised",
    help="What tools may do without asking.",
)
@click.option("--name", default="owner", metavar="NAME", help="The operator's name in policies.")
@click.option(
    "--language",
    type=click.Choice(["en", "de"]),
    default="en",
    help="The language of the bot's own sentences.",
)
@click.option("--set", "keys", multiple=True, metavar="KEY=VALUE", help="Any other key.")
@click.option("--unchecked", is_flag=True, help="Don't try the model and the platforms.")
def command(
    *, config: Path | None, force: bool, yes: bool, unchecked: bool, **options: object
) -> None:
    """Write a first configuration, after a few questions.

    Asks which model should answer, on which channels, who the operator is and what tools may do;
    further questions are optional. It tries the model with one word, and each channel's settings
    with its platform. The configuration never contains a secret, only where to find it.

    \b
    zeroclaw init
    zeroclaw init --yes --url http://127.0.0.1:11434/v1 --model qwen3:8b
    """  # noqa: D301  the \b is click's
    from zeroclaw.cli.init import flow
    from zeroclaw.errors import ConfigError, Refused
    from zeroclaw.host.atomic_file import back_up, replace_text
    from zeroclaw.host.places import is_there, nearest, new_config, real

    path = new_config(config)
    is_replaced = is_there(path)
    if is_replaced and not force:
        fault = f"`{path}` already exists; change it with `zeroclaw config set`, or give --force"
        raise ConfigError((fault,))
    if is_replaced and not path.is_file():
        fault = f"`{path}` is no file; name another"
        raise ConfigError((fault,))
    place = nearest(real(path).parent)
    # Refuse before the person has answered questions in vain.
    if not (place.is_dir() and os.access(place, os.W_OK)):
        message = (
            f"`{path}` can't be written, because this user can't create files in `{place}`; "
            "name another with --config"
        )
        raise Refused(message)
    only_with_yes = (*flow.Options.__struct_fields__, "unchecked")
    _refuse_idle_options(click.get_current_context(), () if yes else only_with_yes)
    if yes:
        text = flow.from_options(msgspec.convert(options, flow.Options), is_tried=not unchecked)
    elif sys.stdin.isatty() and sys.stdout.isatty():
        click.echo(f"This writes `{path}`. Return takes the answer in brackets.\n")
        try:
            text = flow.from_interview(path.parent)
        except (click.Abort, KeyboardInterrupt) as error:
            click.echo("")
            message = f"`{path}` was not written; `zeroclaw init` asks again"
            raise Refused(message) from error
    else:
        message = "there is no terminal to ask questions on; give --yes, and options"
        raise click.UsageError(message)
    if is_replaced:
        click.echo(f"the old file is kept as `{back_up(path)}`")
    replace_text(path, text)
    click.echo("\n".join(flow.next_steps(path, text)))


def _refuse_idle_options(ctx: click.Context, only_with_yes: tuple[str, ...]) -> None:
    """Refuse options that would be silently ignored: answers to questions, or `--name` alone.

    Raises:
        click.UsageError: Names each of them.
    """
    spellings = {
        parameter.name: parameter.opts[-1]
        for parameter in ctx.command.params
        if ctx.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
    }
    if idle := [spellings[name] for name in only_with_yes if name in spellings]:
        message = (
            f"{', '.join(idle)}: only with --yes, which asks nothing; leave it out to be asked"
        )
        raise click.UsageError(message)
    if "name" in spellings and "operators" not in spellings:
        message = (
            "--name belongs to the operator that --operator CHANNEL:ID names; on web and terminal "
            "you are the operator without either"
        )
        raise click.UsageError(message)
