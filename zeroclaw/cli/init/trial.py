"""Tries the answers of `zeroclaw init` before they are written: the model, and each channel."""

import asyncio
from collections.abc import Mapping

from zeroclaw.cli.configuration import Loaded, ask_platform
from zeroclaw.cli.init.template import ChosenChannel
from zeroclaw.cli.models.provider import open_model
from zeroclaw.cli.models.trial import try_and_close
from zeroclaw.config.model import ChannelSettings, Config, ProviderSettings
from zeroclaw.daemon.config_check import check
from zeroclaw.errors import ConfigError, ZeroclawError
from zeroclaw.foreign import Raised
from zeroclaw.host.places import places_of
from zeroclaw.manifest import ChannelManifest
from zeroclaw.value import Value

CHECK_S = 30.0
"""Seconds that a platform may take to answer."""


class Seen(Value):
    """What came of trying.

    Attributes:
        is_well: It works, or there was nothing to try.
        line: One sentence for a person.
    """

    is_well: bool
    line: str


def model_seen(settings: ProviderSettings) -> Seen:
    """Ask a model for one short answer; blocks, and runs a loop of its own."""
    loaded = Loaded(config=Config(provider=settings), places=places_of())
    try:
        tried = asyncio.run(try_and_close(open_model(loaded, url="", model=""), is_brief=True))
    except ZeroclawError as error:
        return Seen(is_well=False, line=" ".join(str(error).split()))
    if not tried.answers:
        reason = tried.answer.failed or "nothing came"
        return Seen(is_well=False, line=f"`{tried.model}` does not answer: {reason}")
    first_s = tried.answer.first_s or 0.0
    return Seen(is_well=True, line=f"`{tried.model}` answers, after {first_s:.1f} s")


def channel_seen(
    channel: ChosenChannel, manifest: ChannelManifest, environment: Mapping[str, str]
) -> Seen:
    """Look at a channel's settings and secrets, and ask its platform where its manifest can."""
    settings = ChannelSettings.model_validate(dict(channel.own))
    try:
        checked = check(Config(channels={channel.kind: settings}), environment)
        if not manifest.check:
            return Seen(is_well=True, line=f"{channel.kind}: its settings are well-formed")
        (part,) = checked.channels
        said = asyncio.run(ask_platform(part, within_s=CHECK_S))
    except ConfigError as error:
        return Seen(is_well=False, line="; ".join(error.faults))
    line = said.line if isinstance(said, Raised) else said
    return Seen(
        is_well=not isinstance(said, Raised),
        line=f"{channel.kind}: {' '.join(checked.redactor.redact(line).split())}",
    )
