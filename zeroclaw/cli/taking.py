"""Takes the model that `[provider] kind = "auto"` leaves open, and asks who sits at the terminal."""

import asyncio
import sys
from collections.abc import Mapping

import click

from zeroclaw.cli.loading import Loaded
from zeroclaw.daemon.choice import AUTO, Question
from zeroclaw.daemon.choosing import Ask, look, settle
from zeroclaw.host.models.listing import USUAL
from zeroclaw.value import Value, replace


class Taken(Value):
    """A configuration that names its model.

    Attributes:
        loaded: As it was, but for a provider that was left open.
        why: One line about what was taken; empty where the configuration names it.
    """

    loaded: Loaded
    why: str


def take_model(
    loaded: Loaded,
    environment: Mapping[str, str],
    *,
    ask: Ask | None,
    addresses: tuple[str, ...] = tuple(USUAL),
) -> Taken:
    """Find a model where the configuration leaves it open; blocks, and runs a loop of its own.

    Args:
        loaded: As read.
        environment: `os.environ`, for keys.
        ask: None where nobody can be asked; then no key is taken.
        addresses: Where servers are looked for.
    """
    settings = loaded.config.provider
    if settings.kind != AUTO:
        return Taken(loaded=loaded, why="")
    found = asyncio.run(look(settings, environment, can_ask=ask is not None, addresses=addresses))
    choice = settle(settings, found, ask or _nobody)
    config = loaded.config.model_copy(update={"provider": choice.settings})
    return Taken(loaded=replace(loaded, config=config), why=choice.reason)


def at_the_terminal() -> Ask | None:
    """Return how to ask the person at this terminal, None where there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return lambda question: click.confirm(question.text, default=False, err=True)


def _nobody(_question: Question) -> bool:
    """Say no: there is nobody who could say yes."""
    return False
