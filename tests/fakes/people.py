"""The people of a configuration that a test names."""

from collections.abc import Mapping

from zeroclaw.channel import ChannelManifest
from zeroclaw.config.model import ChannelSettings, Config, PersonSettings
from zeroclaw.inbound.identity import People
from zeroclaw.text.language import Language


def configured(
    *people: PersonSettings, allowed: Mapping[str, tuple[str, ...]], language: Language = "en"
) -> Config:
    """A configuration of these people, whose channels let these senders in."""
    channels = {name: ChannelSettings(allowed_users=ids) for name, ids in allowed.items()}
    return Config(people=people, channels=channels, language=language)


def local(*names: str) -> dict[str, ChannelManifest]:
    """Channels whose every sender is the operator."""
    return {
        name: ChannelManifest(kind=name, adapter="", settings="", local_operator=True)
        for name in names
    }


def people_of(
    *people: PersonSettings, allowed: Mapping[str, tuple[str, ...]], language: Language = "en"
) -> People:
    """These people, on channels of which `web` and `terminal` are local."""
    config = configured(*people, allowed=allowed, language=language)
    return People(config, local(*(name for name in allowed if name in {"web", "terminal"})))
