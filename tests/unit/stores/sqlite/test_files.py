"""Opening the store: private files, one daemon, one line for each fault."""

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from tests.fakes.unprivileged import unprivileged
from zeroclaw.errors import StoreUnusable
from zeroclaw.host.places import LOCK
from zeroclaw.stores.sqlite.files import (
    FILE_NAME,
    Opened,
    has_database,
    has_wal_reset_bug,
    open_for_reading,
    open_for_writing,
)
from zeroclaw.stores.sqlite.schema import APPLICATION_ID, Migration, backup_path, shipped


def opened_and_closed(directory: Path) -> Opened:
    """Open a store and close it again, as an idle daemon does."""
    opened = open_for_writing(directory)
    opened.close()
    return opened


def refusal(directory: Path) -> str:
    """The line with which opening is refused."""
    with pytest.raises(StoreUnusable) as refused:
        open_for_writing(directory)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def modes(directory: Path) -> dict[str, int]:
    """The permissions of the directory and of its files."""
    return {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in [directory, *directory.iterdir()]
    }


# --- private -------------------------------------------------------------------------------------


def test_only_the_owner_can_read_the_store(tmp_path: Path) -> None:
    """The directory is 0700 and each file in it 0600, whatever the umask says (P8)."""
    directory = tmp_path / "made" / "data"
    had = os.umask(0)
    try:
        opened = open_for_writing(directory)
        assert modes(directory) == {
            "data": 0o700,
            "lock": 0o600,
            FILE_NAME: 0o600,
            f"{FILE_NAME}-wal": 0o600,
            f"{FILE_NAME}-shm": 0o600,
        }
        opened.close()
    finally:
        os.umask(had)


def test_files_that_others_could_read_are_closed_to_them(tmp_path: Path) -> None:
    """Opening revokes permissions that a copy or a service manager gave."""
    opened_and_closed(tmp_path)
    tmp_path.chmod(0o755)
    (tmp_path / FILE_NAME).chmod(0o644)

    opened_and_closed(tmp_path)

    assert modes(tmp_path) == {tmp_path.name: 0o700, "lock": 0o600, FILE_NAME: 0o600}


def test_a_shared_directory_keeps_its_permissions(tmp_path: Path) -> None:
    """A data directory that is set to /tmp by mistake must not close /tmp to the machine."""
    tmp_path.chmod(0o1777)

    opened_and_closed(tmp_path)

    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


# --- one daemon ----------------------------------------------------------------------------------


def test_a_second_daemon_is_refused_with_the_first_ones_pid(tmp_path: Path) -> None:
    """Two daemons on one directory would break the one-writer rule."""
    (tmp_path / LOCK).write_text("4194304\n")  # of an earlier daemon, with a longer pid
    first = open_for_writing(tmp_path)
    try:
        assert refusal(tmp_path) == (
            f"another zeroclaw (pid {os.getpid()}) runs on `{tmp_path}`; "
            "stop it, or name another data directory"
        )
    finally:
        first.close()
    opened_and_closed(tmp_path)


def test_each_opening_has_a_later_epoch(tmp_path: Path) -> None:
    """Fences of an earlier process are older than any of this one."""
    assert [opened_and_closed(tmp_path).epoch for _ in range(3)] == [1, 2, 3]


def test_commits_are_synced_to_the_disk(tmp_path: Path) -> None:
    """FULL and a write-ahead log: answered messages survive a power failure."""
    opened = open_for_writing(tmp_path)
    pragmas = [
        opened.connection.execute(f"PRAGMA {name}").fetchall()
        for name in ("synchronous", "journal_mode", "foreign_keys", "trusted_schema")
    ]
    opened.close()

    assert pragmas == [[(2,)], [("wal",)], [(1,)], [(0,)]]


def test_the_reader_can_not_write(tmp_path: Path) -> None:
    """One connection writes; the other can't, even by mistake."""
    opened = open_for_writing(tmp_path)
    reader = open_for_reading(tmp_path)
    try:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM boot")
    finally:
        reader.close()
        opened.close()


# --- faults ---------------------------------------------------------------------------


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    """The line names the path and what to do (P10)."""
    path = tmp_path / "file"
    path.write_text("")

    assert refusal(path) == f"`{path}` is not a directory; name another directory"
    assert refusal(path / "below") == (f"`{path}/below` is not a directory; name another directory")


def test_a_directory_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    """The line names the path (P10)."""
    (tmp_path / FILE_NAME).mkdir()

    assert f"`{tmp_path / FILE_NAME}`" in refusal(tmp_path)


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    """A text file under our name is refused, not overwritten."""
    path = tmp_path / FILE_NAME
    path.write_text("my diary\n" * 1000)

    assert refusal(tmp_path) == (
        f"`{path}` is not an SQLite database; move it away, or name another data directory"
    )
    assert path.read_text() == "my diary\n" * 1000


def test_a_directory_of_another_user_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise `doctor` and `export` say there that nothing is stored yet (P10)."""
    data = tmp_path / "data"
    opened_and_closed(data)
    monkeypatch.setattr(Path, "exists", os.path.exists)  # Python 3.14's, False for any error
    data.chmod(0)
    with unprivileged(), pytest.raises(StoreUnusable) as refused:
        has_database(data)
    data.chmod(0o700)
    assert str(refused.value) == f"`{data}` can't be read: permission denied; try again as its user"
    assert (has_database(data), has_database(tmp_path)) == (True, False)


def test_another_programs_database_is_left_as_it_is(tmp_path: Path) -> None:
    """Another program's tables are refused before anything is changed."""
    path = tmp_path / FILE_NAME
    stranger = sqlite3.connect(path)
    stranger.execute("CREATE TABLE diary (line)")
    stranger.close()
    before = path.read_bytes()

    assert refusal(tmp_path) == (
        f"`{path}` belongs to another program; name another data directory"
    )
    assert path.read_bytes() == before


def test_a_damaged_file_is_left_as_it_is(tmp_path: Path) -> None:
    """The line says to keep a copy and to restore a backup."""
    opened_and_closed(tmp_path)
    path = tmp_path / FILE_NAME
    content = bytearray(path.read_bytes())
    content[100:200] = b"\xff" * 100  # the root page of the schema, behind the file's header
    path.write_bytes(content)

    assert refusal(tmp_path) == (
        f"`{path}` is damaged; stop zeroclaw, keep a copy of the directory, and put a backup in its "
        "place: `zeroclaw restore --force BACKUP`"
    )
    assert path.read_bytes() == bytes(content)


def test_a_file_of_a_newer_release_names_the_release_needed(tmp_path: Path) -> None:
    """An older release does not touch what it does not understand."""
    opened_and_closed(tmp_path)
    path = tmp_path / FILE_NAME
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 99")
    newer.close()

    assert refusal(tmp_path) == (
        f"`{path}` was written by a newer zeroclaw: it has schema 99 and this release knows "
        f"{shipped()[-1].number}; install a release that knows schema 99"
    )


def test_a_refused_opening_releases_the_directory(tmp_path: Path) -> None:
    """After a refused opening the same process can try again."""
    path = tmp_path / FILE_NAME
    path.write_text("my diary\n" * 1000)
    refusal(tmp_path)
    path.unlink()

    opened_and_closed(tmp_path)


# --- schema --------------------------------------------------------------------------------------

STEPS = (
    Migration(
        number=1, sql="CREATE TABLE boot (epoch INTEGER NOT NULL); INSERT INTO boot VALUES (0);"
    ),
    Migration(number=2, sql="CREATE TABLE second (a);"),
    Migration(number=3, sql="CREATE TABLE third (a); INSERT INTO third VALUES (3);"),
)
BROKEN = (*STEPS[:2], Migration(number=3, sql="CREATE TABLE third (a); CREATE TABLE third (a);"))


def tables(path: Path) -> list[str]:
    """The tables of a database, sorted."""
    connection = sqlite3.connect(path)
    rows: list[tuple[str]] = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
    ).fetchall()
    connection.close()
    return [name for (name,) in rows]


def test_the_shipped_steps_count_from_one_without_gaps() -> None:
    """A step's number is the schema it leads to."""
    numbers = [step.number for step in shipped()]

    assert numbers == list(range(1, len(numbers) + 1))


def test_a_new_file_gets_every_step_and_no_backup(tmp_path: Path) -> None:
    """There is nothing to copy before the first schema."""
    opened = open_for_writing(tmp_path, migrations=lambda: STEPS)
    opened.close()

    assert (opened.schema_before, opened.schema) == (0, 3)
    assert tables(tmp_path / FILE_NAME) == ["boot", "second", "third"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", FILE_NAME]


def test_an_older_file_is_copied_and_then_migrated(tmp_path: Path) -> None:
    """The copy is whole, private, and of the schema before."""
    open_for_writing(tmp_path, migrations=lambda: STEPS[:1]).close()

    opened = open_for_writing(tmp_path, migrations=lambda: STEPS)
    opened.close()

    copy = backup_path(tmp_path / FILE_NAME, 1)
    assert (opened.schema_before, opened.schema, opened.epoch) == (1, 3, 2)
    assert tables(tmp_path / FILE_NAME) == ["boot", "second", "third"]
    assert tables(copy) == ["boot"]
    assert modes(tmp_path)[copy.name] == 0o600


def test_a_file_is_copied_in_a_directory_whose_name_is_no_text(tmp_path: Path) -> None:
    """SQLite takes the name of a file to open as bytes, but that of a statement as text."""
    directory = tmp_path / os.fsdecode(b"\xff")
    open_for_writing(directory, migrations=lambda: STEPS[:1]).close()

    open_for_writing(directory, migrations=lambda: STEPS).close()

    assert tables(backup_path(directory / FILE_NAME, 1)) == ["boot"]


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """All missing steps are one transaction; the release before still opens the file."""
    open_for_writing(tmp_path, migrations=lambda: STEPS[:1]).close()

    with pytest.raises(StoreUnusable):
        open_for_writing(tmp_path, migrations=lambda: BROKEN)

    assert tables(tmp_path / FILE_NAME) == ["boot"]
    opened = open_for_writing(tmp_path, migrations=lambda: STEPS[:1])
    opened.close()
    assert opened.schema == 1


def test_a_copy_left_half_by_a_kill_does_not_stop_the_next_opening(tmp_path: Path) -> None:
    """Only a finished copy gets its name."""
    open_for_writing(tmp_path, migrations=lambda: STEPS[:1]).close()
    copy = backup_path(tmp_path / FILE_NAME, 1)
    copy.with_name(f"{copy.name}.unfinished").write_bytes(b"half")

    open_for_writing(tmp_path, migrations=lambda: STEPS).close()

    assert tables(copy) == ["boot"]


def test_the_file_says_whose_it_is(tmp_path: Path) -> None:
    """`file zeroclaw.db` shows the application id."""
    opened_and_closed(tmp_path)

    assert int.from_bytes((tmp_path / FILE_NAME).read_bytes()[68:72]) == APPLICATION_ID


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 0), False),
    ],
)
def test_releases_with_the_wal_reset_bug_are_known(
    version: tuple[int, int, int], affected: bool
) -> None:
    """The ranges of sqlite.org/wal.html, read 2026-11."""
    assert has_wal_reset_bug(version) is affected
