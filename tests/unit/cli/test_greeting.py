"""The daemon's greeting once it is up."""

from pathlib import Path

import pytest

from zeroclaw.cli.configuration import Loaded
from zeroclaw.cli.greeting import greeting
from zeroclaw.config.validate import parse
from zeroclaw.daemon.foundation import ReadyFacts
from zeroclaw.host.places import Places
from zeroclaw.providers.local.provider import NO_TOOLS_NOTE, SHIPPED_NOTE

PLACES = Places(config=None, data=Path("/d"), workspaces=Path("/w"), models=Path("/m"))

CHOSEN = '[provider]\nkind = "local"\nmodel_file = "/m/big.gguf"\n'


def greeted(config: str, *, note: str = "", reason: str = "") -> str:
    facts = ReadyFacts(
        model="m", note=note, web_url="", channels=("terminal",), shell="", halted=""
    )
    return "\n".join(greeting(facts, Loaded(config=parse(config), places=PLACES, reason=reason)))


def test_the_small_models_limits_are_shown_once() -> None:
    """First that it calls no tools, then what to do about it."""
    words = greeted("", note=SHIPPED_NOTE)
    assert words.count("small") == words.count("never calls a tool") == 1
    assert words.count("`zeroclaw demo`") == words.count("/tool shell") == 1
    assert "name a model that calls tools, with `zeroclaw init`" in words


def test_a_chosen_model_without_a_place_for_tools_is_advised_the_same() -> None:
    """Its note gives the reason; the advice is the same."""
    words = greeted(CHOSEN, note=NO_TOOLS_NOTE)
    assert words.count("tools: it only chats") == words.count("/tool shell") == 1
    assert "name a model that calls tools, with `zeroclaw init`" in words


def test_a_chosen_model_that_calls_tools_needs_no_advice() -> None:
    """It has no note."""
    assert greeted(CHOSEN) == (
        "zeroclaw is ready: terminal\n  model     m\n  terminal  zeroclaw chat"
    )


def test_a_daemon_run_by_root_is_advised_against_it() -> None:
    """At every start."""
    facts = ReadyFacts(
        model="m", note="", web_url="", channels=(), shell="", halted="", is_root=True
    )
    assert "  root      should not run this; give it its own user" in "\n".join(
        greeting(facts, Loaded(config=parse(CHOSEN), places=PLACES))
    )


def test_the_greeting_says_how_to_become_the_operator() -> None:
    """The greeting has the code, and where to send it."""
    facts = ReadyFacts(
        model="m",
        note="",
        web_url="",
        channels=("terminal",),
        shell="",
        halted="",
        claim="ABCD2345",
    )
    lines = list(greeting(facts, Loaded(config=parse(CHOSEN), places=PLACES)))
    assert lines[2] == (
        "  operator  nobody yet: send ABCD2345 to the bot in a private chat, within the hour"
    )


def test_a_model_that_was_found_comes_with_the_reason() -> None:
    """The greeting names the model, and why it was chosen."""
    lines = greeted(CHOSEN, reason="taken because Ollama offers it").splitlines()
    assert lines[1:3] == ["  model     m", "            taken because Ollama offers it"]


def test_commands_are_shown_as_they_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a checkout, the shell knows no `zeroclaw`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [".venv/bin/zeroclaw", "run"])
    monkeypatch.setenv("PATH", "")
    facts = ReadyFacts(
        model="m",
        note=SHIPPED_NOTE,
        web_url="http://here",
        channels=("terminal",),
        shell="",
        halted="web:ann",
    )
    lines = "\n".join(greeting(facts, Loaded(config=parse(""), places=PLACES)))
    for command in ("resume", "status", "chat", "demo", "init"):
        assert f".venv/bin/zeroclaw {command}" in lines
        assert f"`zeroclaw {command}`" not in lines
