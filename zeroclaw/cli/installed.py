"""Finds every installed kind of channel and the model of its settings, for schema and set-up."""

from collections.abc import Mapping

from pydantic import BaseModel

from zeroclaw.host.plugins import CHANNELS, load, names, resolve
from zeroclaw.manifest import ChannelManifest


def channel_manifests() -> Mapping[str, ChannelManifest]:
    """Return the manifest of each kind; imports no SDK.

    Raises:
        ConfigError: A channel is installed but can't be loaded.
    """
    found = (load(CHANNELS, name, key=f"channels.{name}") for name in names(CHANNELS))
    return {one.kind: one for one in found if isinstance(one, ChannelManifest)}


def channel_models() -> Mapping[str, type[BaseModel]]:
    """Return the model of each kind's own keys; imports no SDK.

    Raises:
        ConfigError: A channel is installed but can't be loaded.
    """
    models: dict[str, type[BaseModel]] = {}
    for kind, manifest in channel_manifests().items():
        model = resolve(manifest.settings, key=f"channels.{kind}")
        if isinstance(model, type) and issubclass(model, BaseModel):
            models[kind] = model
    return models
