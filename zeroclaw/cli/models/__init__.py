"""`zeroclaw models`: lists, gets and tests models."""

import json
import os
import re
import sys
from contextlib import aclosing
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

from zeroclaw.cli.invocation import say
from zeroclaw.cli.options import as_json, print_result, progress, with_config
from zeroclaw.host import resolver

_SHA256 = re.compile(r"[0-9a-f]{64}")
_URL_HELP = "An OpenAI-compatible server, including /v1; asked without a key."


@click.group("models")
def command() -> None:
    """List, get and test models."""


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

    loaded = take_model(load(config), os.environ, ask=None)
    listed = resolver.run(listing.listing(loaded, url=url))
    print_result(listing.as_json(listed), listing.in_words(listed), as_json=as_json)


@command.command("get")
@click.argument("source")
@click.option("--sha256", default="", metavar="HEX", help="The file's hash; required for a URL.")
@with_config
def get(source: str, sha256: str, config: Path | None) -> None:
    """Check a GGUF model, from a path or a URL, and say how to use it.

    A model from a URL is put into the models directory once it is complete and its hash is right.
    An interrupted download continues when the command is run again.

    \b
    zeroclaw models get ~/Downloads/qwen3-8b-q4_k_m.gguf
    zeroclaw models get https://host/qwen3-8b-q4_k_m.gguf --sha256 1f2e…
    """  # noqa: D301  the \b is click's
    from zeroclaw.cli.configuration import load
    from zeroclaw.config.model import endpoint_url
    from zeroclaw.host.models.downloads import check_model
    from zeroclaw.host.places import expand

    sha256 = sha256.lower().removeprefix("sha256:")
    is_url = "://" in source
    try:
        endpoint_url(source if is_url else "")
    except ValueError as error:
        message = "a URL begins with http:// or https://, followed by a host"
        raise click.UsageError(message) from error
    if (is_url or sha256) and not _SHA256.fullmatch(sha256):
        message = "give --sha256, 64 characters of 0-9 and a-f; the page of the model shows it"
        raise click.UsageError(message)
    target = expand(source).absolute()
    if is_url:
        name = unquote(urlsplit(source).path).rpartition("/")[2]
        if not name.isprintable() or name.startswith(".") or not name.endswith(".gguf"):
            message = "the URL of a model ends in a file name like `qwen3-8b-q4_k_m.gguf`"
            raise click.UsageError(message)
        target = load(config).places.models / name
    if not is_url or target.exists():
        check_model(target, sha256, target)
    else:
        resolver.run(_fetch(source, target, sha256))
    say(f"{target} is here. To use it, write this into your configuration, and test it:\n")
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

    result = resolver.run(trial.try_and_close(open_model(load(config), url=url, model=model)))
    print_result(trial.as_json(result), trial.in_words(result), as_json=as_json)
    if not result.answers:
        sys.exit(1)


async def _fetch(url: str, target: Path, sha256: str) -> None:
    from zeroclaw.host.http import HttpLimits, http_client
    from zeroclaw.host.models.downloads import fetch

    async with aclosing(http_client(HttpLimits(connect_s=20.0, read_s=60.0))) as http:
        await fetch(http, url, target, sha256=sha256, show=progress(target.name))
