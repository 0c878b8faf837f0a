"""`zeroclaw models`: lists models, and tests what one can do."""

import asyncio
import os
import sys
from pathlib import Path

import click

from zeroclaw.cli.options import as_json, print_found, with_config

_URL_HELP = "An OpenAI-compatible server, including /v1; asked without a key."


@click.group("models")
def command() -> None:
    """List and test models."""


@command.command("list")
@click.option("--url", default="", metavar="URL", help=_URL_HELP)
@with_config
@as_json
def list_(url: str, config: Path | None, *, as_json: bool) -> None:
    """List the models on this machine and on servers, and the one in use.

    Asks the configured server, and Ollama, LM Studio, llama.cpp and vLLM at their usual ports on
    this machine.
    """
    from zeroclaw.cli.configuration import load
    from zeroclaw.cli.models import listing
    from zeroclaw.cli.models.provider import take_model

    taken = take_model(load(config), os.environ, ask=None)
    found = asyncio.run(listing.listing(taken, url=url))
    print_found(listing.as_json(found), listing.in_words(found), as_json=as_json)


@command.command("test")
@click.option("--url", default="", metavar="URL", help=_URL_HELP)
@click.option(
    "--model", default="", metavar="NAME", help="A model to test instead of the configured one."
)
@with_config
@as_json
def test(url: str, model: str, config: Path | None, *, as_json: bool) -> None:
    """Ask a model for an answer and for a tool call.

    Prints what the model can do. Tests the configured model, unless --url or --model names another.
    The tool is harmless and is never run. Exits with 1 if the model does not answer.
    """
    from zeroclaw.cli.configuration import load
    from zeroclaw.cli.models import trial
    from zeroclaw.cli.models.provider import open_model

    tried = asyncio.run(trial.try_and_close(open_model(load(config), url=url, model=model)))
    print_found(trial.as_json(tried), trial.in_words(tried), as_json=as_json)
    if not tried.answers:
        sys.exit(1)
