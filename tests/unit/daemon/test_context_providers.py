"""Context Providers of other packages: found by their entry point, refused where two share a name."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.fakes.context_requests import context_request
from tests.fakes.installed import install
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore
from zeroclaw.config.model import Config, ContextSettings, RuntimeSettings
from zeroclaw.context.prompt import FixedText, fixed
from zeroclaw.daemon.extensions import RESERVED, built_in_context, open_context_providers
from zeroclaw.errors import ConfigError
from zeroclaw.inbound.live_config import LiveConfig


def brings(name: str) -> tuple[FixedText, ...]:
    return (fixed(name, lambda _: "text"),)


def feed() -> tuple[FixedText, ...]:
    return brings("feed")


def ours() -> tuple[FixedText, ...]:
    return brings("rules")


def broken() -> tuple[FixedText, ...]:
    raise RuntimeError("no network")


BROKEN_AT = f"test_context_providers.py:{broken.__code__.co_firstlineno + 1}"


def installed(path: Path, monkeypatch: pytest.MonkeyPatch, functions: Iterable[str]) -> None:
    lines = [f"{function} = {__name__}:{function.partition('_')[0]}" for function in functions]
    install(path, monkeypatch, "\n".join(("[zeroclaw.context_providers]", *lines)))


def test_context_providers_of_other_packages_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_context_providers() == ()
    installed(tmp_path, monkeypatch, ["feed"])
    assert [provider.spec.name for provider in open_context_providers()] == ["feed"]


@pytest.mark.parametrize(
    ("functions", "fault"),
    [
        (["feed", "feed_too"], "`feed` is a context provider already; uninstall one of the two"),
        (["ours"], "`rules` is a context provider already; uninstall one of the two"),
        (["broken"], f"`broken` can't be opened (it raised RuntimeError at {BROKEN_AT})"),
    ],
)
def test_a_duplicate_name_and_a_failing_provider_are_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, functions: list[str], fault: str
) -> None:
    """The fault names the package."""
    installed(tmp_path, monkeypatch, functions)
    with pytest.raises(ConfigError) as raised:
        open_context_providers()
    assert raised.value.faults == (f"context.{functions[-1]}: {fault}",)


async def test_the_daemons_own_follow_the_configuration(tmp_path: Path) -> None:
    """The operator's prompt is the current one; files only if a budget allows them."""
    config = Config(context=ContextSettings(file_tokens=0))
    settings, store = LiveConfig(config, ()), MemoryStore(clock=ManualClock())
    providers = built_in_context(settings, tmp_path, store)
    assert [provider.spec.name for provider in providers] == [
        "identity",
        "setting",
        "rules",
        "sensitive",
        "operator",
    ]
    settings.config = Config(runtime=RuntimeSettings(prompt="Be brief."))
    (text,) = await providers[-1].texts(context_request())
    assert text.text == "Be brief."
    with_files = built_in_context(settings, tmp_path, store)
    assert RESERVED.issuperset(provider.spec.name for provider in with_files)
    assert with_files[1].spec.name == "files"
    (tmp_path / "SOUL.md").write_text("kind", encoding="utf-8")
    assert [text.text for text in await with_files[1].texts(context_request())] == ["kind"]
