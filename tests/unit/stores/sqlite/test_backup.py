"""A store is copied while it is used, and a copy is put back while it is not."""

import os
import shutil
import sqlite3
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from zeroclaw.errors import StoreUnusable
from zeroclaw.store import RowKind
from zeroclaw.stores.sqlite.backup import back_up, restore
from zeroclaw.stores.sqlite.files import FILE_NAME, open_for_writing

FILES = ("keys.json",)


def quietly(done: int, every: int) -> None:
    """Nobody watches."""


@contextmanager
def held(place: Path) -> Generator[sqlite3.Connection]:
    """A store that a daemon has open."""
    opened = open_for_writing(place)
    try:
        yield opened.connection
    finally:
        opened.close()


def add(connection: sqlite3.Connection, *keys: str, body: bytes = b"") -> None:
    for key in keys:
        connection.execute(
            "INSERT INTO stored_row (kind, key, version, state, place, body)"
            " VALUES ('counter', ?, 1, '', '', ?)",
            (key, body),
        )


def keep(place: Path, *keys: str) -> None:
    """Have a store hold these rows, and be closed."""
    with held(place) as connection:
        add(connection, *keys)


def kept(place: Path) -> list[str]:
    """What a store holds when it is opened."""
    with held(place) as connection:
        rows: list[tuple[str]] = connection.execute(
            "SELECT key FROM stored_row ORDER BY key"
        ).fetchall()
    return [key for (key,) in rows]


def put_files(place: Path, body: str) -> None:
    place.joinpath(*FILES).write_text(body, encoding="utf-8")


# --- the copy -------------------------------------------------------------------------------------


def test_a_store_is_copied_while_it_is_open(tmp_path: Path) -> None:
    """The copy holds what was committed, the original goes on, and progress ends at all."""
    data, copy = tmp_path / "data", tmp_path / "new" / "copy"
    told: list[tuple[int, int]] = []

    def progress(done: int, every: int) -> None:
        told.append((done, every))

    with held(data) as connection:
        add(connection, "before")
        put_files(data, "secret")
        back_up(data, copy, files=(*FILES, "absent"), progress=progress)
        add(connection, "after")

    assert kept(data) == ["after", "before"]

    assert kept(copy) == ["before"]
    assert copy.joinpath(*FILES).read_text(encoding="utf-8") == "secret"
    assert told[-1][0] == told[-1][1] > 0
    assert [path.name for path in copy.parent.iterdir()] == ["copy"]


def test_a_copy_is_of_one_moment_though_commits_come_meanwhile(tmp_path: Path) -> None:
    """What is written while pages are copied is not in it, and does not begin it anew."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    steps: list[int] = []
    with held(data) as connection:
        connection.execute("BEGIN")
        add(connection, *(f"{number:04}" for number in range(3000)), body=bytes(4000))
        connection.execute("COMMIT")

        def progress(done: int, every: int) -> None:
            steps.append(done)
            connection.execute("DELETE FROM stored_row WHERE key = ?", (f"{len(steps):04}",))

        back_up(data, copy, files=(), progress=progress)

    assert 2 < len(steps) < 10
    assert steps == sorted(steps)
    assert len(kept(copy)) == 3000
    assert len(kept(data)) == 3000 - len(steps)


def test_a_copy_is_private(tmp_path: Path) -> None:
    """It holds everything that people said."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    keep(data, "a")
    put_files(data, "secret")
    back_up(data, copy, files=FILES, progress=quietly)

    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in copy.iterdir()}
    assert found == {FILE_NAME: 0o600, "keys.json": 0o600}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700


def test_nothing_is_copied_over_something_else(tmp_path: Path) -> None:
    """A place that is taken is refused."""
    keep(tmp_path / "data", "a")
    (tmp_path / "copy").mkdir()
    with pytest.raises(StoreUnusable, match="already exists"):
        back_up(tmp_path / "data", tmp_path / "copy", files=(), progress=quietly)
    assert list((tmp_path / "copy").iterdir()) == []


def test_where_nothing_is_nothing_is_copied(tmp_path: Path) -> None:
    """Also where a first start made the file and had no room for a table (P10)."""
    for name in ("nothing", FILE_NAME):
        (tmp_path / name).touch()
        with pytest.raises(StoreUnusable, match="holds no data yet"):
            back_up(tmp_path, tmp_path / "copy", files=(), progress=quietly)


def test_a_copy_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """Half a copy never looks like one."""
    data = tmp_path / "data"
    keep(data, "a")
    (data / FILE_NAME).write_bytes(b"my diary\n" * 1000)
    with pytest.raises(StoreUnusable, match=f"^`{data / FILE_NAME}` is not an SQLite database; "):
        back_up(data, tmp_path / "copy", files=(), progress=quietly)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_copy_that_a_person_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    """Ctrl-C in the middle: half of what everybody said must not lie about."""
    keep(tmp_path / "data", "a")

    def interrupted(done: int, every: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(tmp_path / "data", tmp_path / "copy", files=(), progress=interrupted)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_damaged_store_gives_no_backup(tmp_path: Path) -> None:
    """It could not be restored, and would push out the last one that can."""
    data = tmp_path / "data"
    keep(data, "a")
    damage(data)
    with pytest.raises(StoreUnusable, match=f"^`{data / FILE_NAME}` is damaged; "):
        back_up(data, tmp_path / "copy", files=(), progress=quietly)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def damage(place: Path, begin: int = 8192) -> None:
    """Have a page of a store hold nothing of it."""
    body = bytearray((place / FILE_NAME).read_bytes())
    body[begin : begin + 3996] = b"\xff" * 3996
    (place / FILE_NAME).write_bytes(body)


# --- putting it back ------------------------------------------------------------------------------


def backed_up(tmp_path: Path) -> Path:
    """A backup that holds `old` and the keys `old keys`."""
    keep(tmp_path / "source", "old")
    put_files(tmp_path / "source", "old keys")
    back_up(tmp_path / "source", tmp_path / "copy", files=FILES, progress=quietly)
    return tmp_path / "copy"


def test_a_backup_is_put_where_nothing_is(tmp_path: Path) -> None:
    """The directory is made, and the backup stays."""
    copy = backed_up(tmp_path)
    restore(copy, tmp_path / "data", files=FILES)
    assert kept(tmp_path / "data") == ["old"]
    assert (tmp_path / "data").joinpath(*FILES).read_text(encoding="utf-8") == "old keys"
    assert kept(copy) == ["old"]


def test_data_is_replaced_only_by_force(tmp_path: Path) -> None:
    """And then wholly: the log beside the old file is not read into the new one."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    keep(data, "new")
    with pytest.raises(StoreUnusable, match="--force"):
        restore(copy, data, files=FILES)
    assert kept(data) == ["new"]

    left = sqlite3.connect(data / FILE_NAME, isolation_level=None)
    left.execute("DELETE FROM stored_row")
    wal = (data / f"{FILE_NAME}-wal").read_bytes()
    left.close()
    (data / f"{FILE_NAME}-wal").write_bytes(wal)
    put_files(data, "new keys")
    restore(copy, data, files=FILES, overwrite=True)

    assert kept(data) == ["old"]
    assert data.joinpath(*FILES).read_text(encoding="utf-8") == "old keys"


def test_files_that_a_backup_has_not_are_another_stores(tmp_path: Path) -> None:
    """They don't stay beside what was restored."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    copy.joinpath(*FILES).unlink()
    keep(data, "new")
    put_files(data, "new keys")
    restore(copy, data, files=FILES, overwrite=True)
    assert not data.joinpath(*FILES).exists()


def test_nothing_is_restored_under_a_daemon(tmp_path: Path) -> None:
    """Whoever holds the directory goes on undisturbed."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    with held(data) as connection:
        with pytest.raises(StoreUnusable, match="another zeroclaw"):
            restore(copy, data, files=FILES, overwrite=True)
        add(connection, "new")
    assert kept(data) == ["new"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes for others")
def test_what_root_restores_is_its_owners(tmp_path: Path) -> None:
    """Else the daemon, which is another user's, could not open it."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    keep(data, "a")
    put_files(data, "one")
    back_up(data, copy, files=FILES, progress=quietly)
    os.chown(data, 65534, 65534)
    restore(copy, data, files=FILES, overwrite=True)
    assert {(data / name).stat().st_uid for name in (FILE_NAME, *FILES)} == {65534}

    empty = tmp_path / "empty"
    empty.mkdir(mode=0o700)
    os.chown(empty, 65534, 65534)
    restore(copy, empty, files=FILES)
    assert {one.stat().st_uid for one in empty.iterdir()} == {65534}


def test_what_was_copied_by_hand_under_a_daemon_is_no_backup(tmp_path: Path) -> None:
    """Its last commits are in SQLite's log beside it, and would be left behind without a word."""
    opened = open_for_writing(tmp_path / "data")
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    opened.close()
    with pytest.raises(StoreUnusable, match="make a backup of it"):
        restore(tmp_path / "copy", tmp_path / "data", files=FILES, overwrite=True)
    back_up(tmp_path / "copy", tmp_path / "made", files=FILES, progress=quietly)
    (tmp_path / "made" / f"{FILE_NAME}-wal").touch()  # nothing is left in an empty one
    restore(tmp_path / "made", tmp_path / "data", files=FILES, overwrite=True)


def killed_while_it_restored(data: Path, backup: Path) -> None:
    """Leave what a kill leaves: a copy, and the log of what was about to be changed in it."""
    half = data / f"{FILE_NAME}.restoring"
    shutil.copyfile(backup / FILE_NAME, half)
    connection = sqlite3.connect(half)
    add(connection, "half")
    connection.commit()
    log = half.with_name(f"{half.name}-wal")
    shutil.copyfile(log, data / "log")
    connection.close()
    (data / "log").rename(log)


def test_what_a_killed_restore_left_is_no_part_of_the_next(tmp_path: Path) -> None:
    """SQLite would apply the log to whatever stands beside it."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    keep(data, "new")
    killed_while_it_restored(data, copy)
    restore(copy, data, files=FILES, drops=(RowKind.GRANT,), overwrite=True)
    assert kept(data) == ["old"]


def test_what_a_killed_restore_left_is_gone_with_the_next_start(tmp_path: Path) -> None:
    """It is all that everybody said, and neither retention nor `/forget` knows of it."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    keep(data, "new")
    killed_while_it_restored(data, copy)
    assert kept(data) == ["new"]
    assert [one.name for one in data.iterdir() if "restoring" in one.name] == []


@pytest.mark.parametrize("begin", [0, 100, 8192], ids=["header", "schema", "a table"])
def test_a_damaged_backup_replaces_nothing(tmp_path: Path, begin: int) -> None:
    """It is looked through whole first."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    keep(data, "new")
    damage(copy, begin)
    with pytest.raises(
        StoreUnusable, match="is damaged; take another backup, nothing was replaced"
    ):
        restore(copy, data, files=FILES, overwrite=True)
    assert kept(data) == ["new"]
    assert not (data / f"{FILE_NAME}.restoring").exists()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("PRAGMA user_version = 99", "newer zeroclaw"),
        ("PRAGMA application_id = 7", "another program"),
    ],
)
def test_a_backup_that_is_not_ours_is_refused(tmp_path: Path, change: str, why: str) -> None:
    """Of a newer release, or no backup of this program at all."""
    copy = backed_up(tmp_path)
    connection = sqlite3.connect(copy / FILE_NAME)
    connection.execute(change)
    connection.close()
    with pytest.raises(StoreUnusable, match=why):
        restore(copy, tmp_path / "data", files=FILES)


@pytest.mark.parametrize("body", [None, b"", b"my diary\n" * 1000])
def test_what_is_no_backup_is_refused(tmp_path: Path, body: bytes | None) -> None:
    """Nothing, an empty file, something else."""
    copy = tmp_path / "copy"
    copy.mkdir()
    if body is not None:
        (copy / FILE_NAME).write_bytes(body)
    with pytest.raises(StoreUnusable):
        restore(copy, tmp_path / "data", files=FILES)
