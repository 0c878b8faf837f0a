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


def installed(path: Path, monkeypatch: pytest.MonkeyPatch, functions: Iterable[str]) -> None:
    lines = [f"{function} = {__name__}:{function.partition('_')[0]}" for function in functions]
    install(path, monkeypatch, "\n".join(("[zeroclaw.context_providers]", *lines)))


def test_what_other_packages_bring_is_opened(
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
        (["broken"], "`broken` can't be opened (it raised RuntimeError)"),
    ],
)
def test_a_name_that_is_taken_and_one_that_fails_are_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, functions: list[str], fault: str
) -> None:
    """With the package that it comes from."""
    installed(tmp_path, monkeypatch, functions)
    with pytest.raises(ConfigError) as raised:
        open_context_providers()
    assert raised.value.faults == (f"context.{functions[-1]}: {fault}",)


async def test_the_daemons_own_follow_the_configuration(tmp_path: Path) -> None:
    """The operator's words as they are by now; files only where they may take room."""
    config = Config(context=ContextSettings(file_tokens=0))
    settings, store = LiveConfig(config, ()), MemoryStore(clock=ManualClock())
    found = built_in_context(settings, tmp_path, store)
    assert [one.spec.name for one in found] == [
        "identity",
        "setting",
        "rules",
        "sensitive",
        "operator",
    ]
    settings.config = Config(runtime=RuntimeSettings(prompt="Be brief."))
    (text,) = await found[-1].texts(context_request())
    assert text.text == "Be brief."
    more = built_in_context(settings, tmp_path, store)
    assert RESERVED.issuperset(one.spec.name for one in more)
    assert more[1].spec.name == "files"
    (tmp_path / "SOUL.md").write_text("kind", encoding="utf-8")
    assert [text.text for text in await more[1].texts(context_request())] == ["kind"]
