"""`zeroclaw backup` and `zeroclaw restore`."""

import sqlite3
from contextlib import closing
from pathlib import Path

from click.testing import CliRunner

from zeroclaw.cli import root
from zeroclaw.stores.sqlite.files import FILE_NAME, open_for_writing


def run(*arguments: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(root, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout, done.stderr


def test_a_backup_is_made_while_a_daemon_runs_and_restored_when_none_does(tmp_path: Path) -> None:
    """The keys of receipts go with it; errors are one line each."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    opened = open_for_writing(data)
    (data / "receipt-keys.json").write_text("keys", encoding="utf-8")

    assert run("backup", copy, "--data-dir", data) == (0, f"backed up to {copy}\n", "")
    code, _, err = run("restore", copy, "--force", "--data-dir", data)
    assert (code, err.count("\n")) == (1, 1)
    assert "another zeroclaw" in err
    opened.close()

    code, _, err = run("restore", copy, "--data-dir", data)
    assert (code, "--force" in err) == (1, True)
    (data / "receipt-keys.json").unlink()
    code, out, _ = run("restore", copy, "--force", "--data-dir", data)
    assert (code, out) == (0, f"restored {data} from {copy}\n")
    assert (data / "receipt-keys.json").read_text(encoding="utf-8") == "keys"
    assert (data / FILE_NAME).is_file()


def test_there_is_nothing_to_back_up_before_the_first_start(tmp_path: Path) -> None:
    """It is said, and nothing is made."""
    code, out, err = run("backup", tmp_path / "copy", "--data-dir", tmp_path)
    assert (code, out) == (1, "")
    assert "zeroclaw run" in err
    assert not (tmp_path / "copy").exists()


def test_what_workspaces_hold_is_not_known_after_a_restore(tmp_path: Path) -> None:
    """No backup has them, so the store says when: those of before are not trusted."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    open_for_writing(data).close()
    assert run("backup", copy, "--data-dir", data)[0] == 0
    assert run("restore", copy, "--force", "--data-dir", data)[0] == 0
    with closing(sqlite3.connect(data / FILE_NAME)) as store:
        kept = store.execute("SELECT kind, key, length(place) FROM stored_row").fetchall()
    assert kept == [("workspace", "/restored", 26)]
    assert {one.name for one in data.iterdir()} >= {FILE_NAME}
    assert not [one.name for one in data.iterdir() if "restoring" in one.name]
