"""Which plugins are installed."""

from pathlib import Path

import pytest

from tests.fakes.installed import install
from zeroclaw.channel import ChannelManifest
from zeroclaw.errors import ConfigError
from zeroclaw.host import plugins


def test_built_in_plugins_are_listed() -> None:
    """They are listed by name, sorted, and loaded on demand."""
    assert {"scripted", "openai", "local"} <= set(plugins.names(plugins.PROVIDERS))
    manifest = plugins.load(plugins.CHANNELS, "terminal", key="channels.terminal")
    assert isinstance(manifest, ChannelManifest)


def test_an_unknown_plugin_is_reported_with_the_installed_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fault is at the key that named it (P10)."""
    with pytest.raises(
        ConfigError, match=r"provider\.kind: `nope` is not installed; installed are `"
    ):
        plugins.load(plugins.PROVIDERS, "nope", key="provider.kind")
    with pytest.raises(ConfigError, match=r"x: `nope` is not installed; installed are none"):
        plugins.load("zeroclaw.nothing", "nope", key="x")


def test_a_broken_plugin_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault has the exception's type, not its text (P10)."""
    install(tmp_path, monkeypatch, "[zeroclaw.tools]\nbroken = no_such_module:tools\n")
    assert "broken" in plugins.names(plugins.TOOLS)
    with pytest.raises(
        ConfigError, match=r"tools\.broken: `broken` is installed but can't be loaded"
    ):
        plugins.load(plugins.TOOLS, "broken", key="tools.broken")


@pytest.mark.parametrize(
    ("group", "name"),
    [(plugins.TOOLS, "shell"), (plugins.PROVIDERS, "openai"), (plugins.TOOLS, "twice")],
)
def test_what_two_packages_offer_is_not_loaded(
    group: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which one ran would depend on the path, and the person would not see that it is not ours."""
    for package in ("other", "another"):
        install(tmp_path, monkeypatch, f"[{group}]\n{name} = {package}:open\n", package=package)
    assert name in plugins.names(group, of_others=True)
    with pytest.raises(ConfigError, match=rf"x: several packages offer `{name}`: .*`other:open`"):
        plugins.load(group, name, key="x")


def test_a_target_is_imported_by_its_name() -> None:
    """As manifests name adapters and settings; only what can't be imported may lack an extra."""
    assert plugins.resolve("pathlib:Path", key="x") is Path
    with pytest.raises(ConfigError, match=r"x: `pathlib:Nope` can't be loaded \([^;]*\)$"):
        plugins.resolve("pathlib:Nope", key="x")
    with pytest.raises(ConfigError, match=r"can't be loaded \([^;]*\); is its extra installed\?$"):
        plugins.resolve("no_such_module:Path", key="x")
