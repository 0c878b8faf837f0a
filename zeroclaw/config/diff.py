"""Compares configurations, and tells which changes a running daemon applies.

The models mark each key that a reload applies as `Live`. All other keys, including those of a
channel's own kind, take effect after a restart. A list of tables, such as `people`, is one key.
"""

from collections.abc import Collection, Iterator
from typing import TypeVar, cast

from pydantic import BaseModel

from zeroclaw.config.model import LIVE_MARK, ChannelSettings, Config

Model = TypeVar("Model", bound=BaseModel)


def _live_keys(model: type[BaseModel], path: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _live_keys(inner, f"{path}{name}.")
        elif LIVE_MARK in field.metadata:
            yield f"{path}{name}"


LIVE = frozenset((*_live_keys(Config, ""), *_live_keys(ChannelSettings, "channels.*.")))
"""The keys that a reload applies; `*` stands for a channel's name."""


def is_live(key: str) -> bool:
    """Whether a reload applies a change of this key, given as `changed_keys` returns it."""
    parts = key.split(".")
    if parts[0] == "channels" and len(parts) > 1:
        parts[1] = "*"
    return ".".join(parts) in LIVE


def changed_keys(before: Config, after: Config) -> tuple[str, ...]:
    """Return the keys that differ, in the order of the models.

    An added or removed channel is one key, such as `channels.mail`.
    """
    kept = before.channels.keys() & after.channels.keys()
    old, new = dict(_values(before, kept)), dict(_values(after, kept))
    keys = (*new, *(key for key in old if key not in new))
    return tuple(key for key in keys if (key in old, old.get(key)) != (key in new, new.get(key)))


def merge_live(running: Config, new: Config) -> Config:
    """Return the running configuration with the live keys of a new one.

    A channel that only one of them has is neither added nor removed.
    """
    merged = _merged(running, new, "")
    channels = {
        name: _merged(settings, new.channels.get(name, settings), "channels.*.")
        for name, settings in running.channels.items()
    }
    return merged.model_copy(update={"channels": channels})


def _merged(running: Model, new: Model, path: str) -> Model:
    updates: dict[str, object] = {}
    for name in type(running).model_fields:
        old_value = cast("object", getattr(running, name))
        new_value = cast("object", getattr(new, name))
        if isinstance(old_value, BaseModel) and isinstance(new_value, BaseModel):
            updates[name] = _merged(old_value, new_value, f"{path}{name}.")
        elif f"{path}{name}" in LIVE:
            updates[name] = new_value
    return running.model_copy(update=updates)


def _values(config: Config, kept: Collection[str]) -> Iterator[tuple[str, object]]:
    """Yield every key with its value, without descending into tables that are a key's value.

    A channel is a key without a value; its own keys follow if it is one of those `kept`.
    """
    yield from _of(config, "")
    for name, settings in config.channels.items():
        yield f"channels.{name}", None
        if name in kept:
            yield from _of(settings, f"channels.{name}.")


def _of(settings: BaseModel, path: str) -> Iterator[tuple[str, object]]:
    for name in type(settings).model_fields:
        value = cast("object", getattr(settings, name))
        if isinstance(value, BaseModel):
            yield from _of(value, f"{path}{name}.")
        elif f"{path}{name}" != "channels":
            yield f"{path}{name}", value
    if isinstance(settings, ChannelSettings):
        yield from ((f"{path}{name}", value) for name, value in settings.own().items())
