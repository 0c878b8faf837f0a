"""Finds the settings' model of every installed kind of channel, for the schema."""

from collections.abc import Mapping

from pydantic import BaseModel

from zeroclaw.channel import ChannelManifest
from zeroclaw.host.shelves import CHANNELS, load, names, resolve


def channel_models() -> Mapping[str, type[BaseModel]]:
    """Return the model of each kind's own keys; imports no SDK.

    Raises:
        ConfigError: A channel is installed but can't be loaded.
    """
    models: dict[str, type[BaseModel]] = {}
    for name in names(CHANNELS):
        key = f"channels.{name}"
        manifest = load(CHANNELS, name, key=key)
        if isinstance(manifest, ChannelManifest):
            model = resolve(manifest.settings, key=key)
            if isinstance(model, type) and issubclass(model, BaseModel):
                models[manifest.kind] = model
    return models
