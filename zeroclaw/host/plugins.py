"""Finds the installed plugins by entry point: channels, tools, providers and the other groups."""

import shlex
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoints, distributions, metadata
from importlib.util import find_spec
from typing import TypeVar

from zeroclaw.errors import ConfigError, ZeroclawError
from zeroclaw.foreign import Raised, call_now, place_of

T = TypeVar("T")

CHANNELS = "zeroclaw.channels"
TOOLS = "zeroclaw.tools"
PROVIDERS = "zeroclaw.providers"
EMULATORS = "zeroclaw.emulators"
CONTEXT_PROVIDERS = "zeroclaw.context_providers"
GROUPS = (CHANNELS, TOOLS, PROVIDERS, EMULATORS, CONTEXT_PROVIDERS)


def names(group: str, *, of_others: bool = False) -> tuple[str, ...]:
    """Return the names in a group of entry points, sorted; only those of other packages if asked."""
    points = (it for it in _in(group) if not (of_others and it.value.startswith("zeroclaw.")))
    return tuple(sorted({point.name for point in points}))


def load(group: str, name: str, *, key: str) -> object:
    """Import the object of an entry point.

    Args:
        group: One of the constants above.
        name: The entry point's name.
        key: Key path of the configuration that uses it, for messages.

    Raises:
        ConfigError: There is no such entry point, it can't be imported, or two packages have one.
    """
    found = {point.value: point for point in _in(group) if point.name == name}
    if len(found) > 1:
        targets = ", ".join(f"`{target}`" for target in sorted(found))
        fault = f"{key}: several packages offer `{name}`: {targets}; uninstall all but one of them"
        raise ConfigError((fault,))
    for point in found.values():
        return _imported(point.load, f"{key}: `{name}` is installed but")
    installed = ", ".join(f"`{other}`" for other in names(group)) or "none"
    raise ConfigError((f"{key}: `{name}` is not installed; installed are {installed}",))


def resolve(target: str, *, key: str) -> object:
    """Import `module:name`, the form in which a manifest names its adapter and its settings.

    Raises:
        ConfigError: It can't be imported, for example because an extra is missing.
    """
    module, _, name = target.partition(":")
    return _imported(lambda: getattr(import_module(module), name), f"{key}: `{target}`")


def are_installed(modules: Iterable[str]) -> bool:
    """Whether all these modules can be found."""
    with suppress(ModuleNotFoundError):  # a package that a module is in
        return all(map(find_spec, modules))
    return False


def interpreter() -> str:
    """Return the Python that runs, for hints that are pasted into a shell in the checkout.

    After `pip install .` there may be no `.venv`, or another one.
    """
    in_checkout = ".venv/bin/python"
    return in_checkout if in_checkout in sys.executable else shlex.quote(sys.executable)


def packages_needed(name: str, *further_extras: str) -> str:
    """Return what to install for a plugin that lacks modules, to end a fault with."""
    provided = metadata("zeroclaw").get_all("Provides-Extra") or ()
    extras = ",".join(extra for extra in (name, *further_extras) if extra in provided)
    remedy = f": {interpreter()} -m pip install -e '.[{extras}]' in the checkout"
    return f"{name} needs more packages{remedy if extras else '; its own package names them'}"


def _imported(load: Callable[[], object], prefix: str) -> object:
    target = call_now(load)
    if isinstance(target, Raised):
        hint = "; is its extra installed?" if isinstance(target.error, ImportError) else ""
        fault = f"{prefix} can't be loaded ({target.line}{place_of(target.error)}){hint}"
        raise ConfigError((fault,)) from target.error
    return target


def _in(group: str) -> EntryPoints:
    return _installed(tuple(sys.path)).select(group=group)


@lru_cache(maxsize=1)
def _installed(_path: tuple[str, ...]) -> EntryPoints:
    """Read the entry points of every package on the path; cached, as modules are imported only once."""
    # Unrelated packages are not parsed, which saves two thirds of the cost of `entry_points`.
    return EntryPoints(
        point
        for package in distributions()
        if "zeroclaw." in (package.read_text("entry_points.txt") or "")
        for point in package.entry_points
        if point.group in GROUPS
    )


def opened(opener: Callable[[], T], name: str, *, key: str) -> T:
    """Call an opener that may be third-party code; other errors than zeroclaw's become a `ConfigError`."""
    result = call_now(opener)
    if not isinstance(result, Raised):
        return result
    if isinstance(result.error, ZeroclawError):
        raise result.error
    fault = f"{key}: `{name}` can't be opened (it {result.line}{place_of(result.error)})"
    raise ConfigError((fault,)) from result.error
