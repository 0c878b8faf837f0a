"""What to type next is shown as it can be typed."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from zeroclaw.cli import COMMANDS, CommandFailed, root
from zeroclaw.cli.invocation import command, copyable, program, say, typed
from zeroclaw.cli.options import print_found, with_places


@pytest.mark.parametrize(
    ("started", "path", "expected"),
    [
        (".venv/bin/zeroclaw", "/nowhere", ".venv/bin/zeroclaw"),
        ("{0}/.venv/bin/zeroclaw", "/nowhere", ".venv/bin/zeroclaw"),
        ("{0}/.venv/bin/zeroclaw", "{0}/.venv/bin", "zeroclaw"),
        ("{0}/.venv/bin/zeroclaw", "{0}/another", ".venv/bin/zeroclaw"),
        ("/opt/z/bin/zeroclaw", "/nowhere", "/opt/z/bin/zeroclaw"),
        ("/usr/bin/pytest", "/nowhere", "zeroclaw"),
    ],
)
def test_a_program_is_typed_by_its_name_where_the_shell_finds_it(
    started: str, path: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else by its path from where the person stands; another of that name is not it."""
    for place in (".venv/bin", "another"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "zeroclaw").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    assert typed(started.format(tmp_path), path=path.format(tmp_path), here=tmp_path) == expected


def test_a_module_that_was_run_is_typed_as_the_program_beside_its_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So `python -m zeroclaw` says what can be typed, and so does a daemon that `chat` started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["/checkout/zeroclaw/__main__.py"])
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv/bin/python"))
    monkeypatch.setitem(os.environ, "PATH", "/nowhere")
    assert program() == ".venv/bin/zeroclaw"


def test_where_nobody_can_stand_the_name_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory may be removed under a shell."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setattr(sys, "argv", [".venv/bin/zeroclaw"])
    monkeypatch.setitem(os.environ, "PATH", "/nowhere")
    assert program() == ".venv/bin/zeroclaw"
    shutil.rmtree(gone)
    assert program() == "zeroclaw"


@pytest.mark.parametrize(
    ("given", "said", "shown"),
    [
        ((), "run", "zeroclaw run"),
        (("--config", "a b.toml"), "run", "zeroclaw run --config 'a b.toml'"),
        (("--config", "c"), "config set KEY VALUE", "zeroclaw config set KEY VALUE --config c"),
        (("--config", "c", "--data-dir", "d"), "chat", "zeroclaw chat --config c --data-dir d"),
        (("--config", "c", "--data-dir", "d"), "models list", "zeroclaw models list --config c"),
        (("--config", "c"), "demo --auto", "zeroclaw demo --auto"),
    ],
)
def test_a_command_is_typed_with_the_options_that_this_one_was_given(
    given: tuple[str, ...], said: str, shown: str
) -> None:
    """What is copied from a line of ours is about the same daemon."""

    @click.command()
    @with_places
    def telling(**_given: object) -> None:
        click.echo(command(said))
        click.echo(copyable(f"; `zeroclaw {said}` does, {said} and `/new` stay"))
        click.echo(copyable(copyable(f"`zeroclaw {said}`")))

    done = CliRunner().invoke(telling, given, catch_exceptions=False)
    assert done.output.splitlines() == [
        shown,
        f"; `{shown}` does, {said} and `/new` stay",
        f"`{shown}`",
    ]


def test_every_command_that_takes_an_option_is_shown_with_it() -> None:
    """What is suggested can be run: no command is given an option that it does not know."""
    told: dict[str, set[str]] = {}

    @click.command()
    @with_places
    def telling(**_given: object) -> None:
        for name in COMMANDS:
            words = command(name).split()
            told[name] = {one for one in words if one.startswith("--")}

    CliRunner().invoke(telling, ["--config", "c", "--data-dir", "d"], catch_exceptions=False)
    unknown = [
        (name, option)
        for name in COMMANDS
        for one in _leaves(root.get_command(click.Context(root), name))
        for option in told[name]
        if option not in {opt for parameter in one.params for opt in parameter.opts}
        and one.name != "schema"
    ]
    assert unknown == []


def _leaves(found: click.Command | None) -> list[click.Command]:
    assert found is not None
    if not isinstance(found, click.Group):
        return [found]
    return [leaf for one in found.commands.values() for leaf in _leaves(one)]


EVIL = "\x1b[2J\x9b7m\u202e\u200b\x08\r"
"""What a terminal obeys, or does not show."""


@pytest.mark.parametrize(
    "shown",
    [
        lambda: say(EVIL),
        lambda: print_found([EVIL], [EVIL], as_json=False),
        lambda: print_found([EVIL], [EVIL], as_json=True),
        lambda: CommandFailed(f"the server said {EVIL}").show(),
    ],
    ids=["words", "lines", "json", "an error"],
)
def test_nothing_that_a_command_tells_is_obeyed_by_a_terminal(
    shown: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """A model made up the tool of a receipt, a server wrote its error, a stranger their name (P5)."""
    shown()
    told = "".join(capsys.readouterr())
    assert [sign for sign in EVIL if not sign.isprintable() and sign in told] == []
    assert "[2J" in told


def test_json_says_the_same_with_what_nobody_sees_escaped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_found({EVIL: ["straße 日本 👩\u200d👩"]}, (), as_json=True)
    told = capsys.readouterr().out
    assert json.loads(told) == {EVIL: ["straße 日本 👩\u200d👩"]}
    assert "straße 日本 👩\u200d👩" in told
