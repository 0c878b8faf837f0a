"""`demo` and `chat` as people start them: real processes, with a daemon of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = 'otherwise = "you said {{user}}"\n'
CONFIG = '[provider]\nkind = "scripted"\nscript = "{script}"\n\n[channels.terminal]\n'


def zeroclaw(home: Path, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """A command with nothing of this user around it."""
    places = {"HOME": str(home), "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": "", "ZEROCLAW_CONFIG": ""}
    return subprocess.run(
        [sys.executable, "-m", "zeroclaw.cli", *arguments],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | places,
    )


def test_the_demo_shows_a_draft_a_card_and_a_receipt(tmp_path: Path) -> None:
    """In a temporary place that is gone afterwards, without network and key."""
    done = zeroclaw(tmp_path, "demo", "--auto")
    assert (done.returncode, done.stderr) == (0, "")
    order = [
        "┌ may this run? asked by operator",
        "✓ 1  write_file approved by operator",
        "> claw in the cold tide",
        "✅ receipt: read_file · ok",
        "⚠️ false receipt",
        "that was the demo",
    ]
    places = [done.stdout.find(words) for words in order]
    assert (min(places) >= 0, places == sorted(places)) == (True, True), done.stdout
    assert [*tmp_path.iterdir()] == []


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    script = tmp_path / "script.toml"
    script.write_text(SCRIPT, encoding="utf-8")
    config = tmp_path / "config.toml"
    config.write_text(CONFIG.format(script=script), encoding="utf-8")
    return config


def test_a_pipe_into_chat_starts_a_daemon_and_ends_it(tmp_path: Path, configured: Path) -> None:
    """Twice, so that the first has let go of everything; and the conversation is still there."""
    for text in ("one", "two"):
        done = zeroclaw(tmp_path, "chat", "--config", str(configured), typed=f"{text}\n")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"you said {text}\n", "")
    assert zeroclaw(tmp_path, "status", "--config", str(configured)).returncode == 3


def test_a_daemon_that_cannot_start_says_why(tmp_path: Path, configured: Path) -> None:
    """P10: its own last word, not that a socket is missing."""
    configured.write_text("autonomy = 3\n", encoding="utf-8")
    done = zeroclaw(tmp_path, "chat", "--config", str(configured), typed="hi\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"zeroclaw: {configured}: autonomy: ")
    assert len(done.stderr.splitlines()) == 1
