"""Looks at what there is for `[provider] kind = "auto"`, and asks the person who is there."""

from collections.abc import Callable, Mapping

from zeroclaw.config.model import ProviderSettings
from zeroclaw.daemon.choice import Choice, Found, Question, choose, keys_in, named
from zeroclaw.host.models.listing import USUAL
from zeroclaw.host.models.servers import on_loopback, probing_client
from zeroclaw.value import replace

Ask = Callable[[Question], bool]
"""Puts a question to a person; blocks until it is answered."""


async def look(
    settings: ProviderSettings,
    environment: Mapping[str, str],
    *,
    can_ask: bool,
    addresses: tuple[str, ...] = tuple(USUAL),
) -> Found:
    """Find what there is; within a second, and on this machine only.

    Args:
        settings: Where they name a model themselves, nobody is looked for.
        environment: `os.environ`.
        can_ask: There is a person to ask.
        addresses: Where servers are looked for, up to and with `/v1`.
    """
    if named(settings) is not None:
        return Found()
    http = probing_client()
    try:
        servers = await on_loopback(http, addresses)
    finally:
        await http.aclose()
    return Found(servers=servers, keys=keys_in(environment), can_ask=can_ask)


def settle(settings: ProviderSettings, found: Found, ask: Ask) -> Choice:
    """Choose, asking as often as it takes."""
    while isinstance(chosen := choose(settings, found), Question):
        answers = {**found.answers, chosen.key.variable: ask(chosen)}
        found = replace(found, answers=answers)
    return chosen
