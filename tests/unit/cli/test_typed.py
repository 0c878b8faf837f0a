"""What to type next is shown as it can be typed."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from zeroclaw.cli.typed import program, typed


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
