"""Opens the model that a command is about, without the rest of the daemon."""

import asyncio
import os

from zeroclaw.cli.loading import Loaded
from zeroclaw.cli.starting import start_of
from zeroclaw.cli.taking import at_the_terminal, take_model
from zeroclaw.config.model import Config, ProviderSettings
from zeroclaw.daemon.parts import open_provider
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.ids import SystemIds
from zeroclaw.host.models.servers import NoOffer, offers_of, probing_client
from zeroclaw.provider import Provider
from zeroclaw.redact import without_credentials
from zeroclaw.value import replace


def open_model(loaded: Loaded, *, url: str, model: str) -> Provider:
    """Open the configured model, or another one; blocks, the caller closes it.

    Args:
        loaded: As read.
        url: A server in place of the configured one; empty for that. It gets no key of another.
        model: A name in place of the configured one; of a local model, a file, or its name in the
            models directory. Empty for the configured one, and for the first that `url` offers.

    Raises:
        ZeroclawError: What it takes is not there; the text says what to do.
    """
    settings = _named(loaded, url=url, model=model)
    # A fault in another table is not this command's business.
    alone = replace(loaded, config=Config(provider=settings))
    taken = take_model(alone, os.environ, ask=at_the_terminal())
    clock = SystemClock()
    return open_provider(start_of(taken.loaded, os.environ), clock, SystemIds(clock))


def _named(loaded: Loaded, *, url: str, model: str) -> ProviderSettings:
    """Return the configured settings with what the command line says instead."""
    settings = loaded.config.provider
    if url and url.rstrip("/") != settings.base_url.rstrip("/"):
        settings = ProviderSettings(
            kind="openai",
            base_url=url,
            model=model or asyncio.run(first_of(url)),
            connect_s=settings.connect_s,
            stall_s=settings.stall_s,
            attempts=settings.attempts,
        )
    elif model and settings.kind == "local":
        beside = loaded.places.models / model
        path = str(beside if beside.is_file() else os.path.expanduser(model))  # noqa: PTH111  a text
        settings = settings.model_copy(update={"model_file": path})
    elif model:
        settings = settings.model_copy(update={"model": model})
    return settings


async def first_of(url: str) -> str:
    """Return the first model that a server offers.

    Raises:
        NoOffer: It does not answer, or offers none.
    """
    http = probing_client()
    try:
        server = await offers_of(http, url)
    finally:
        await http.aclose()
    if not server.models:
        message = (
            f"`{without_credentials(url)}` offers no model; load one there, or name it with --model"
        )
        raise NoOffer(message)
    return server.models[0]
