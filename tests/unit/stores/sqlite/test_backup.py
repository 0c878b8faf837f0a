"""A store is copied while in use, and a copy is restored while it is not."""

import errno
import os
import resource
import shutil
import sqlite3
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from zeroclaw.errors import StoreUnusable
from zeroclaw.store import Put, RowKind
from zeroclaw.stores.sqlite.backup import back_up, restore
from zeroclaw.stores.sqlite.files import FILE_NAME, open_for_writing

T = TypeVar("T")

FILES = ("keys.json",)


def quietly(done: int, every: int) -> None:
    """Ignore the progress."""


@contextmanager
def open_store_of(place: Path) -> Generator[sqlite3.Connection]:
    """A store as a daemon has it open."""
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


def fill_store(place: Path, *keys: str) -> None:
    """Put these rows into a store, and close it."""
    with open_store_of(place) as connection:
        add(connection, *keys)


def keys_in(place: Path) -> list[str]:
    """The keys of a store's rows."""
    with open_store_of(place) as connection:
        rows: list[tuple[str]] = connection.execute(
            "SELECT key FROM stored_row ORDER BY key"
        ).fetchall()
    return [key for (key,) in rows]


def put_files(place: Path, body: str) -> None:
    place.joinpath(*FILES).write_text(body, encoding="utf-8")


# --- the copy -------------------------------------------------------------------------------------


def test_a_store_is_copied_while_it_is_open(tmp_path: Path) -> None:
    """The copy holds what was committed, the original goes on, and the last progress is the
    total."""
    data, copy = tmp_path / "data", tmp_path / "new" / "copy"
    reports: list[tuple[int, int]] = []

    def progress(done: int, every: int) -> None:
        reports.append((done, every))

    with open_store_of(data) as connection:
        add(connection, "before")
        put_files(data, "secret")
        back_up(data, copy, files=(*FILES, "absent"), progress=progress)
        add(connection, "after")

    assert keys_in(data) == ["after", "before"]

    assert keys_in(copy) == ["before"]
    assert copy.joinpath(*FILES).read_text(encoding="utf-8") == "secret"
    assert reports[-1][0] == reports[-1][1] > 0
    assert [path.name for path in copy.parent.iterdir()] == ["copy"]


def test_a_copy_is_of_one_moment_despite_commits_meanwhile(tmp_path: Path) -> None:
    """Rows written while pages are copied are not in it, and do not restart it."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    steps: list[int] = []
    with open_store_of(data) as connection:
        connection.execute("BEGIN")
        add(connection, *(f"{number:04}" for number in range(3000)), body=bytes(4000))
        connection.execute("COMMIT")

        def progress(done: int, every: int) -> None:
            steps.append(done)
            connection.execute("DELETE FROM stored_row WHERE key = ?", (f"{len(steps):04}",))

        back_up(data, copy, files=(), progress=progress)

    assert 2 < len(steps) < 10
    assert steps == sorted(steps)
    assert len(keys_in(copy)) == 3000
    assert len(keys_in(data)) == 3000 - len(steps)


def test_a_pipe_is_left_out_of_a_copy(tmp_path: Path) -> None:
    """Reading one would wait without end."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    fill_store(data, "one")
    os.mkfifo(data / "pipe")
    (data / "more").mkdir()
    os.mkfifo(data / "more" / "pipe")
    back_up(data, copy, files=("pipe", "more"), progress=quietly)
    assert sorted(path.name for path in copy.rglob("*")) == ["more", FILE_NAME]


def test_a_copy_is_private(tmp_path: Path) -> None:
    """It holds all messages."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    fill_store(data, "a")
    put_files(data, "secret")
    back_up(data, copy, files=FILES, progress=quietly)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in copy.iterdir()}
    assert modes == {FILE_NAME: 0o600, "keys.json": 0o600}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700


def test_an_existing_target_is_refused(tmp_path: Path) -> None:
    """The copy does not overwrite it."""
    fill_store(tmp_path / "data", "a")
    (tmp_path / "copy").mkdir()
    with pytest.raises(StoreUnusable, match="already exists"):
        back_up(tmp_path / "data", tmp_path / "copy", files=(), progress=quietly)
    assert list((tmp_path / "copy").iterdir()) == []


def test_an_empty_directory_is_not_copied(tmp_path: Path) -> None:
    """So is one whose first start made the file and had no room for a table (P10)."""
    for name in ("nothing", FILE_NAME):
        (tmp_path / name).touch()
        with pytest.raises(StoreUnusable, match="holds no data yet"):
            back_up(tmp_path, tmp_path / "copy", files=(), progress=quietly)


def test_a_copy_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """Half a copy never looks like a whole one."""
    data = tmp_path / "data"
    fill_store(data, "a")
    (data / FILE_NAME).write_bytes(b"my diary\n" * 1000)
    with pytest.raises(StoreUnusable, match=f"^`{data / FILE_NAME}` is not an SQLite database; "):
        back_up(data, tmp_path / "copy", files=(), progress=quietly)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_directory_that_can_not_be_read_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy without it would look whole; the error names it, and not the copy."""
    data = tmp_path / "data"
    fill_store(data, "a")
    email = data / "channels" / "email"
    email.mkdir(parents=True)

    def refusing(read: Callable[[str], T]) -> Callable[[str], T]:
        def refuse(path: str) -> T:
            if str(path).endswith("email"):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return read(path)

        return refuse

    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    monkeypatch.setattr(os, "listdir", refusing(os.listdir))
    line = f"`{email}` can't be used; give zeroclaw's user the right to read and write it"
    with pytest.raises(StoreUnusable, match=f"^{line}$"):
        back_up(data, tmp_path / "copy", files=("channels",), progress=quietly)


def test_an_interrupted_copy_leaves_nothing_behind(tmp_path: Path) -> None:
    """After Ctrl-C no half copy of the messages remains."""
    fill_store(tmp_path / "data", "a")

    def interrupted(done: int, every: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(tmp_path / "data", tmp_path / "copy", files=(), progress=interrupted)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("begin", [100, 8192], ids=["its schema", "a page"])
def test_a_damaged_store_gives_no_backup(tmp_path: Path, begin: int) -> None:
    """It could not be restored, and would replace the last good one."""
    data = tmp_path / "data"
    fill_store(data, "a")
    damage(data, begin)
    with pytest.raises(StoreUnusable, match=f"^`{data / FILE_NAME}` is damaged; "):
        back_up(data, tmp_path / "copy", files=(), progress=quietly)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def damage(place: Path, begin: int = 8192) -> None:
    """Overwrite a page of a store."""
    body = bytearray((place / FILE_NAME).read_bytes())
    body[begin : begin + 3996] = b"\xff" * 3996
    (place / FILE_NAME).write_bytes(body)


# --- restoring ------------------------------------------------------------------------------


def backed_up(tmp_path: Path) -> Path:
    """A backup that holds `old` and the keys `old keys`."""
    fill_store(tmp_path / "source", "old")
    put_files(tmp_path / "source", "old keys")
    back_up(tmp_path / "source", tmp_path / "copy", files=FILES, progress=quietly)
    return tmp_path / "copy"


def test_a_backup_is_restored_into_an_empty_place(tmp_path: Path) -> None:
    """The directory is made, and the backup stays."""
    copy = backed_up(tmp_path)
    restore(copy, tmp_path / "data", files=FILES)
    assert keys_in(tmp_path / "data") == ["old"]
    assert (tmp_path / "data").joinpath(*FILES).read_text(encoding="utf-8") == "old keys"
    assert keys_in(copy) == ["old"]


def test_existing_data_is_replaced_only_with_force(tmp_path: Path) -> None:
    """It is replaced whole: the log beside the old file is not read into the new one."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    fill_store(data, "new")
    with pytest.raises(StoreUnusable, match="--force"):
        restore(copy, data, files=FILES)
    assert keys_in(data) == ["new"]

    connection = sqlite3.connect(data / FILE_NAME, isolation_level=None)
    connection.execute("DELETE FROM stored_row")
    wal = (data / f"{FILE_NAME}-wal").read_bytes()
    connection.close()
    (data / f"{FILE_NAME}-wal").write_bytes(wal)
    put_files(data, "new keys")
    restore(copy, data, files=FILES, overwrite=True)

    assert keys_in(data) == ["old"]
    assert data.joinpath(*FILES).read_text(encoding="utf-8") == "old keys"


def test_a_restore_killed_before_it_replaces_the_store_loses_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last commits may be in SQLite's log alone, which goes before the store does."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    with open_store_of(tmp_path / "open") as connection:
        add(connection, "new")
        shutil.copytree(tmp_path / "open", data)

    def killed(path: Path, target: Path) -> None:
        raise KeyboardInterrupt(path, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        restore(copy, data, files=FILES, overwrite=True)
    assert keys_in(data) == ["new"]


def test_a_restore_on_a_full_disk_replaces_nothing(tmp_path: Path) -> None:
    """The rows that it adds fit into SQLite's log, and not into the file: a close would hide
    that."""
    source, copy, data = tmp_path / "source", tmp_path / "copy", tmp_path / "data"
    with open_store_of(source) as connection:
        add(connection, *(f"{number:03}" for number in range(200)), body=bytes(4000))
    back_up(source, copy, files=(), progress=quietly)
    fill_store(data, "new")
    rows = [Put(kind=RowKind.PERSON, key=f"{it}", body=bytes(4000)) for it in range(20)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((copy / FILE_NAME).stat().st_size, before[1]))
    try:
        with pytest.raises(StoreUnusable, match="disk"):
            restore(copy, data, files=(), rows=rows, overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert keys_in(data) == ["new"]


def test_files_missing_from_the_backup_are_removed(tmp_path: Path) -> None:
    """They belong to another store."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    copy.joinpath(*FILES).unlink()
    fill_store(data, "new")
    put_files(data, "new keys")
    restore(copy, data, files=FILES, overwrite=True)
    assert not data.joinpath(*FILES).exists()


def test_nothing_is_restored_under_a_daemon(tmp_path: Path) -> None:
    """The daemon that holds the directory goes on undisturbed."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    with open_store_of(data) as connection:
        with pytest.raises(StoreUnusable, match="another zeroclaw"):
            restore(copy, data, files=FILES, overwrite=True)
        add(connection, "new")
    assert keys_in(data) == ["new"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes for others")
def test_files_restored_by_root_belong_to_the_directorys_owner(tmp_path: Path) -> None:
    """Otherwise the daemon, which runs as another user, could not open it."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    fill_store(data, "a")
    put_files(data, "one")
    back_up(data, copy, files=FILES, progress=quietly)
    os.chown(data, 65534, 65534)
    restore(copy, data, files=FILES, overwrite=True)
    assert {(data / name).stat().st_uid for name in (FILE_NAME, *FILES)} == {65534}

    empty = tmp_path / "empty"
    empty.mkdir(mode=0o700)
    os.chown(empty, 65534, 65534)
    restore(copy, empty, files=FILES)
    assert {path.stat().st_uid for path in empty.iterdir()} == {65534}


def test_a_copy_by_hand_under_a_running_daemon_is_no_backup(tmp_path: Path) -> None:
    """Its last commits are in SQLite's log beside it, and would be lost without a message."""
    opened = open_for_writing(tmp_path / "data")
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    opened.close()
    with pytest.raises(StoreUnusable, match="make a backup of it"):
        restore(tmp_path / "copy", tmp_path / "data", files=FILES, overwrite=True)
    back_up(tmp_path / "copy", tmp_path / "made", files=FILES, progress=quietly)
    (tmp_path / "made" / f"{FILE_NAME}-wal").touch()  # nothing is left in an empty one
    restore(tmp_path / "made", tmp_path / "data", files=FILES, overwrite=True)


def killed_while_it_restored(data: Path, backup: Path) -> None:
    """Leave the files that a kill leaves: a copy, and its log of pending changes."""
    half = data / f"{FILE_NAME}.restoring"
    shutil.copyfile(backup / FILE_NAME, half)
    connection = sqlite3.connect(half)
    add(connection, "half")
    connection.commit()
    log = half.with_name(f"{half.name}-wal")
    shutil.copyfile(log, data / "log")
    connection.close()
    (data / "log").rename(log)


def test_leftovers_of_a_killed_restore_do_not_join_the_next(tmp_path: Path) -> None:
    """SQLite would apply the log to the file beside it."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    fill_store(data, "new")
    killed_while_it_restored(data, copy)
    restore(copy, data, files=FILES, drops=(RowKind.GRANT,), overwrite=True)
    assert keys_in(data) == ["old"]


def test_leftovers_of_a_killed_restore_are_removed_at_the_next_start(tmp_path: Path) -> None:
    """They hold all messages, and neither retention nor `/forget` knows of them."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    fill_store(data, "new")
    killed_while_it_restored(data, copy)
    assert keys_in(data) == ["new"]
    assert [path.name for path in data.iterdir() if "restoring" in path.name] == []


@pytest.mark.parametrize("begin", [0, 100, 8192], ids=["header", "schema", "a table"])
def test_a_damaged_backup_replaces_nothing(tmp_path: Path, begin: int) -> None:
    """The whole backup is checked first."""
    copy, data = backed_up(tmp_path), tmp_path / "data"
    fill_store(data, "new")
    damage(copy, begin)
    with pytest.raises(
        StoreUnusable, match="is damaged; take another backup, nothing was replaced"
    ):
        restore(copy, data, files=FILES, overwrite=True)
    assert keys_in(data) == ["new"]
    assert not (data / f"{FILE_NAME}.restoring").exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("PRAGMA user_version = 99", "newer zeroclaw"),
        ("PRAGMA application_id = 7", "another program"),
    ],
)
def test_a_backup_that_is_not_ours_is_refused(tmp_path: Path, change: str, reason: str) -> None:
    """It is from a newer release, or not from this program at all."""
    copy = backed_up(tmp_path)
    connection = sqlite3.connect(copy / FILE_NAME)
    connection.execute(change)
    connection.close()
    with pytest.raises(StoreUnusable, match=reason):
        restore(copy, tmp_path / "data", files=FILES)


@pytest.mark.parametrize("body", [None, b"", b"my diary\n" * 1000])
def test_a_file_that_is_no_backup_is_refused(tmp_path: Path, body: bytes | None) -> None:
    """A missing file, an empty one, another kind."""
    copy = tmp_path / "copy"
    copy.mkdir()
    if body is not None:
        (copy / FILE_NAME).write_bytes(body)
    with pytest.raises(StoreUnusable):
        restore(copy, tmp_path / "data", files=FILES)
