"""Finds the installed plugins by entry point: channels, tools, providers and the other groups."""

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoints, distributions
from typing import TypeVar

from zeroclaw.errors import ConfigError, ZeroclawError
from zeroclaw.foreign import Raised, call_now

T = TypeVar("T")

CHANNELS = "zeroclaw.channels"
TOOLS = "zeroclaw.tools"
PROVIDERS = "zeroclaw.providers"
STORES = "zeroclaw.stores"
EMULATORS = "zeroclaw.emulators"
CONTEXT_PROVIDERS = "zeroclaw.context_providers"
GROUPS = (CHANNELS, TOOLS, PROVIDERS, STORES, EMULATORS, CONTEXT_PROVIDERS)


def names(group: str) -> tuple[str, ...]:
    """Return the names in a group of entry points, sorted."""
    return tuple(sorted({point.name for point in _in(group)}))


def load(group: str, name: str, *, key: str) -> object:
    """Import what stands under a name.

    Args:
        group: One of the constants above.
        name: As the package that brings it called it.
        key: The key path of the configuration that asks for it.

    Raises:
        ConfigError: Nothing stands there, or it can't be imported.
    """
    for point in _in(group):
        if point.name == name:
            found = call_now(point.load)
            if isinstance(found, Raised):
                fault = f"{key}: `{name}` is installed but can't be loaded ({found.line}); is its extra installed?"
                raise ConfigError((fault,)) from found.error
            return found
    known = ", ".join(f"`{one}`" for one in names(group)) or "nothing"
    raise ConfigError((f"{key}: `{name}` is not installed; installed are {known}",))


def resolve(target: str, *, key: str) -> object:
    """Import `module:name`, as a manifest names its adapter and its settings.

    Raises:
        ConfigError: It can't be imported, for example because an extra is missing.
    """
    module, _, name = target.partition(":")
    found = call_now(lambda: getattr(import_module(module), name))
    if isinstance(found, Raised):
        fault = f"{key}: `{target}` can't be loaded ({found.line}); is its extra installed?"
        raise ConfigError((fault,)) from found.error
    return found


def _in(group: str) -> EntryPoints:
    return _installed(tuple(sys.path)).select(group=group)


@lru_cache(maxsize=1)
def _installed(_path: tuple[str, ...]) -> EntryPoints:
    """Read what every package on the path brings; once, as modules are imported once."""
    # Those of other packages are not parsed: that is two thirds of what `entry_points` takes.
    return EntryPoints(
        point
        for package in distributions()
        if "zeroclaw." in (package.read_text("entry_points.txt") or "")
        for point in package.entry_points
        if point.group in GROUPS
    )


def opened(opener: Callable[[], T], name: str, *, key: str) -> T:
    """Call an opener that may be a stranger's; what it has to say in our own errors is kept."""
    found = call_now(opener)
    if not isinstance(found, Raised):
        return found
    if isinstance(found.error, ZeroclawError):
        raise found.error
    fault = f"{key}: `{name}` can't be opened (it {found.line})"
    raise ConfigError((fault,)) from found.error
