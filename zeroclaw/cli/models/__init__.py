"""`zeroclaw models`: lists models, gets one, and tests what one can do."""

import asyncio
import json
import os
import re
import sys
from contextlib import aclosing
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

from zeroclaw.cli.invocation import say
from zeroclaw.cli.options import as_json, print_found, progress, with_config

_SHA256 = re.compile(r"[0-9a-f]{64}")
_URL_HELP = "An OpenAI-compatible server, including /v1; asked without a key."


@click.group("models")
def command() -> None:
    """List, add and test models."""


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


@command.command("get")
@click.argument("source")
@click.option("--sha256", default="", metavar="HEX", help="The file's hash; required for a URL.")
@click.option("--name", default="", metavar="NAME.gguf", help="Its file name here.")
@click.option("--copy", "copies", is_flag=True, help="Copy the file instead of linking to it.")
@with_config
def get(source: str, sha256: str, name: str, config: Path | None, *, copies: bool) -> None:
    """Add a GGUF model, from a path or a URL.

    It appears in the models directory once it is complete and checked. A download that was
    interrupted continues when the command is run again.

    \b
    zeroclaw models get ~/Downloads/qwen3-8b-q4_k_m.gguf
    zeroclaw models get https://host/qwen3-8b-q4_k_m.gguf --sha256 1f2e…
    """  # noqa: D301  the \b is click's
    from zeroclaw.cli.configuration import load
    from zeroclaw.config.model import endpoint_url
    from zeroclaw.host.models.files import is_here, place_for, take
    from zeroclaw.host.places import expand

    sha256 = sha256.lower().removeprefix("sha256:")
    is_url = "://" in source
    try:
        endpoint_url(source if is_url else "")
    except ValueError as error:
        message = "a URL begins with http:// or https://, followed by a host"
        raise click.UsageError(message) from error
    if sha256 and not _SHA256.fullmatch(sha256):
        message = "--sha256 is 64 characters of 0-9 and a-f; the page of the model shows it"
        raise click.UsageError(message)
    if is_url and not sha256:
        message = "a URL needs --sha256, so that you get the file you meant"
        raise click.UsageError(message)
    last = unquote(urlsplit(source).path).rpartition("/")[2] if is_url else Path(source).name
    target = place_for(name or last, load(config).places.models)
    if is_here(target, sha256):
        click.echo(f"{target} already exists")
        return
    if is_url:
        asyncio.run(_fetch(source, target, sha256))
    else:
        take(expand(source), target, copies=copies, sha256=sha256, show=progress(target.name))
    say(
        f"added {target}\nTo use it, write this into your configuration; `zeroclaw models test` tests it:\n"
    )
    click.echo(f'[provider]\nkind = "local"\nmodel_file = {json.dumps(str(target))}')


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


async def _fetch(url: str, target: Path, sha256: str) -> None:
    from zeroclaw.host.http import HttpLimits, http_client
    from zeroclaw.host.models.downloads import fetch

    async with aclosing(http_client(HttpLimits(connect_s=20.0, read_s=60.0))) as http:
        await fetch(http, url, target, sha256=sha256, show=progress(target.name))
