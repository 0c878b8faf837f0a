"""What to type next is shown as it can be typed."""

import os
import shutil
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from zeroclaw.cli import COMMANDS, root
from zeroclaw.cli.invocation import command, copyable, program, typed
from zeroclaw.cli.options import with_places


@pytest.mark.parametrize(
    ("started", "path", "expected"),
    [
        (".venv/bin/zeroclaw", "/nowhere", ".venv/bin/zeroclaw"),
        ("{0}/.venv/bin/zeroclaw", "/nowhere", ".venv/bin/zeroclaw"),
        ("{0}/.venv/bin/zeroclaw", "{0}/.venv/bin", "zeroclaw"),
        ("{0}/.venv/bin/zeroclaw", "{0}/another", ".venv/bin/zeroclaw"),
        ("/opt/z/bin/zeroclaw", "/nowhere", "/opt/z/bin/zeroclaw"),
        ("{0}/zeroclaw/cli/__main__.py", "/nowhere", "zeroclaw"),
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
