"""Which plugins are installed."""

from pathlib import Path

import pytest

from tests.fakes.installed import install
from zeroclaw.channel import ChannelManifest
from zeroclaw.errors import ConfigError
from zeroclaw.host import plugins


def test_what_comes_along_is_on_its_shelf() -> None:
    """By name, sorted, and loaded when it is asked for."""
    assert {"scripted", "openai", "local"} <= set(plugins.names(plugins.PROVIDERS))
    found = plugins.load(plugins.CHANNELS, "terminal", key="channels.terminal")
    assert isinstance(found, ChannelManifest)


def test_what_is_not_installed_is_told_with_what_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the key that asked for it (P10)."""
    with pytest.raises(
        ConfigError, match=r"provider\.kind: `nope` is not installed; installed are `"
    ):
        plugins.load(plugins.PROVIDERS, "nope", key="provider.kind")
    with pytest.raises(ConfigError, match=r"x: `nope` is not installed; installed are none"):
        plugins.load("zeroclaw.nothing", "nope", key="x")


def test_what_is_installed_but_broken_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the kind of its fault, not by its text (P10)."""
    install(tmp_path, monkeypatch, "[zeroclaw.tools]\nbroken = no_such_module:tools\n")
    assert "broken" in plugins.names(plugins.TOOLS)
    with pytest.raises(
        ConfigError, match=r"tools\.broken: `broken` is installed but can't be loaded"
    ):
        plugins.load(plugins.TOOLS, "broken", key="tools.broken")


def test_a_target_is_imported_by_its_name() -> None:
    """As manifests name adapters and settings; a missing extra is told."""
    assert plugins.resolve("pathlib:Path", key="x") is Path
    with pytest.raises(ConfigError, match=r"x: `pathlib:Nope` can't be loaded .*extra installed"):
        plugins.resolve("pathlib:Nope", key="x")
