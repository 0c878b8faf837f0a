"""Configurations with people, for tests."""

from collections.abc import Mapping

from zeroclaw.channel import ChannelManifest
from zeroclaw.config.model import ChannelSettings, Config, PersonSettings
from zeroclaw.inbound.identity import People
from zeroclaw.text.language import Language


def configured(
    *people: PersonSettings, allowed: Mapping[str, tuple[str, ...]], language: Language = "en"
) -> Config:
    """Return a configuration with these people, whose channels allow these senders."""
    channels = {name: ChannelSettings(allowed_users=ids) for name, ids in allowed.items()}
    return Config(people=people, channels=channels, language=language)


def local(*names: str) -> dict[str, ChannelManifest]:
    """Return channels on which every sender is the operator."""
    return {
        name: ChannelManifest(kind=name, adapter="", settings="", local_operator=True)
        for name in names
    }


def people_of(
    *people: PersonSettings, allowed: Mapping[str, tuple[str, ...]], language: Language = "en"
) -> People:
    """Return these people, on channels of which `web` and `terminal` are local."""
    config = configured(*people, allowed=allowed, language=language)
    return People(config, local(*(name for name in allowed if name in {"web", "terminal"})))
