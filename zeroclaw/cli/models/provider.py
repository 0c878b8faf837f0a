"""The model of a command: discovered if `[provider]` leaves it open, and opened."""

import os
import sys
from collections.abc import Mapping

import click

from zeroclaw.cli.configuration import Loaded, in_file, start_of
from zeroclaw.cli.models.choice import Confirm, Discovered, choose, configured, keys_in
from zeroclaw.config.model import Config, ProviderSettings
from zeroclaw.daemon.foundation import open_provider
from zeroclaw.errors import ConfigError
from zeroclaw.host import resolver
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.models.listing import USUAL
from zeroclaw.host.models.servers import NoOffer, address_of, offers_of, on_loopback
from zeroclaw.host.places import expand
from zeroclaw.provider import Provider
from zeroclaw.redact import without_credentials
from zeroclaw.value import replace


def take_model(loaded: Loaded, environment: Mapping[str, str], *, ask: Confirm | None) -> Loaded:
    """Find a model if the configuration leaves it open; blocks, and runs its own event loop.

    Otherwise the configuration is returned unchanged. The result has the reason of the choice.

    Args:
        loaded: As read.
        environment: `os.environ`, for keys.
        ask: None without a person to ask; then no key is used.
    """
    settings = loaded.config.provider
    if settings.kind != "auto":
        return loaded
    found = resolver.run(discover(settings, environment))
    choice = choose(settings, found, ask)
    config = loaded.config.model_copy(update={"provider": choice.settings})
    return replace(loaded, config=config, written=loaded.config, reason=choice.reason)


def at_the_terminal() -> Confirm | None:
    """Return a function that asks the person at this terminal, None if there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return lambda question: click.confirm(question, default=False, err=True)


def open_model(loaded: Loaded, *, url: str, model: str) -> Provider:
    """Open the configured model, or another one; blocks, and the caller closes it.

    Args:
        loaded: As read.
        url: A server to use instead of the configured one, or empty. It gets no other server's key.
        model: A model to use instead of the configured one; for a local model a file, or its name
            in the models directory. If empty, the configured one, or the first that `url` offers.

    Raises:
        ZeroclawError: A file, a key or a package that it needs is missing; the text says what to do.
    """
    settings = _selected(loaded, url=url, model=model)
    # A fault in another table does not concern this command.
    only_provider = replace(loaded, config=Config(provider=settings))
    loaded = take_model(only_provider, os.environ, ask=at_the_terminal())
    start = start_of(loaded, os.environ, needs_all=False)  # the provider reports its own file
    if missing := tuple(start.checked.missing.values()):
        raise ConfigError(in_file(start.places.config, missing))
    return open_provider(start, SystemClock())


def _selected(loaded: Loaded, *, url: str, model: str) -> ProviderSettings:
    """Return the configured settings, overridden by the command line's values."""
    settings = loaded.config.provider
    if url and url.rstrip("/") != settings.base_url.rstrip("/"):
        settings = ProviderSettings(
            kind="openai",
            base_url=address_of(url),
            model=model or resolver.run(first_of(url)),
            connect_s=settings.connect_s,
            stall_s=settings.stall_s,
            attempts=settings.attempts,
        )
    elif model and settings.kind == "local":
        file = loaded.places.models / model
        path = str(file if file.is_file() else expand(model))
        settings = settings.model_copy(update={"model_file": path})
    elif model:
        settings = settings.model_copy(update={"model": model})
    return settings


async def first_of(url: str) -> str:
    """Return the first model that a server offers.

    Raises:
        NoOffer: It does not answer, or offers none.
    """
    server = await offers_of(url)
    if not server.models:
        message = (
            f"`{without_credentials(url)}` offers no model; load one there, or name it with --model"
        )
        raise NoOffer(message)
    return server.models[0]


async def discover(settings: ProviderSettings, environment: Mapping[str, str]) -> Discovered:
    """Find servers and keys; within a second, and on this machine only.

    Args:
        settings: If they name a model themselves, the search is skipped.
        environment: `os.environ`.
    """
    if configured(settings) is not None:
        return Discovered()
    return Discovered(servers=await on_loopback(USUAL), keys=keys_in(environment))
