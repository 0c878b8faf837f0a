"""What a command uses: counted where it can't hide, and given away where it has to be."""

import mmap
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zeroclaw.errors import ToolFailed
from zeroclaw.host import usage
from zeroclaw.host.usage import MOST_DEPTH, MOST_ENTRIES, DiskUsage, Meter, Quota, measure

EMPTY = DiskUsage(bytes_=0, entries=0, is_whole=True)


def test_what_has_a_name_is_counted_once(tmp_path: Path) -> None:
    """Holes take nothing, and a second name takes nothing more; no link is followed."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_bytes(b"x" * 100_000)
    before = measure(tmp_path)
    (tmp_path / "b").hardlink_to(tmp_path / "d" / "a")
    (tmp_path / "out").symlink_to("/usr")
    with (tmp_path / "holes").open("wb") as holes:
        holes.truncate(10**9)
    after = measure(tmp_path)
    assert before.entries == 2
    assert before.bytes_ >= 100_000
    assert after.entries == 5
    assert after.bytes_ < before.bytes_ + 50_000


def test_a_locked_directory_is_looked_into(tmp_path: Path) -> None:
    """Else it would be where to hide what is too much."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_bytes(b"x" * 100_000)
    (tmp_path / "d").chmod(0)
    assert measure(tmp_path).bytes_ >= 100_000


def test_a_locked_workspace_is_opened_again(tmp_path: Path) -> None:
    """One command may lock it, and the next one is still counted; one that is gone is told."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a").write_bytes(b"x" * 100_000)
    (tmp_path / "w").chmod(0)
    assert measure(tmp_path / "w").bytes_ >= 100_000
    with pytest.raises(ToolFailed, match="the workspace is gone"):
        measure(tmp_path / "other")


def test_what_lies_too_deep_is_not_passed_over(tmp_path: Path) -> None:
    """Nobody could say how much there is."""
    place = tmp_path
    for _ in range(MOST_DEPTH + 1):
        place /= "d"
    place.mkdir(parents=True)
    held = measure(tmp_path)
    assert not held.is_whole
    assert "nested deeper" in held.excess(10**12)


def test_too_many_names_end_the_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking takes bounded steps, however many there are."""
    monkeypatch.setattr(usage, "_COUNTED_ENTRIES", 5)
    for n in range(9):
        (tmp_path / str(n)).touch()
    held = measure(tmp_path)
    assert (held.entries, held.is_whole) == (5, False)


@pytest.mark.parametrize(
    ("held", "excess"),
    [
        (EMPTY, ""),
        (DiskUsage(bytes_=100, entries=1, is_whole=True), ""),
        (
            DiskUsage(bytes_=101, entries=1, is_whole=True),
            "the workspace holds more than its 100 bytes",
        ),
        (DiskUsage(bytes_=0, entries=MOST_ENTRIES + 1, is_whole=True), "more than 200,000 files"),
        (DiskUsage(bytes_=0, entries=0, is_whole=True, is_disk_full=True), "nearly full"),
    ],
)
def test_too_much_is_named(held: DiskUsage, excess: str) -> None:
    assert (held.excess(100) == "") == (excess == "")
    assert excess in held.excess(100)


def test_a_workspace_that_was_too_full_must_not_grow(tmp_path: Path) -> None:
    """Neither in bytes nor in names, and a disk that was full before is nobody's fault."""
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    held = measure(tmp_path)
    meter = Meter(memory_bytes=10**12, most_bytes=10, workspace=tmp_path, held=held)
    assert meter(os.getpid()) == ""
    (tmp_path / "b").write_bytes(b"x" * 100_000)
    # A small one is looked through each time.
    assert meter(os.getpid()) == f"the workspace holds more than its {held.bytes_:,} bytes"


def test_a_big_workspace_is_looked_through_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking costs as much as there is, so it takes the same part of the time."""
    looks = 0

    def look(_: Path) -> DiskUsage:
        nonlocal looks
        looks += 1
        return DiskUsage(bytes_=0, entries=100_000, is_whole=True)

    monkeypatch.setattr(usage, "measure", look)
    meter = Meter(memory_bytes=10**12, most_bytes=10, workspace=tmp_path, held=EMPTY)
    assert [meter(os.getpid()) for _ in range(25)] == [""] * 25
    assert looks == 3


def test_memory_is_counted(tmp_path: Path) -> None:
    """Ours, as any process's."""
    meter = Meter(memory_bytes=1_000, most_bytes=10**9, workspace=tmp_path, held=EMPTY)
    assert meter(os.getpid()) == "its processes together used more than 1,000 bytes of memory"
    assert usage.memory_bytes(()) == 0


def test_the_outermost_places_that_keep_secrets_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They count as all else does; a link is none; one more than the bound tells of too many."""
    for name in (".ssh/keys/id_rsa", "app/.env", "app/notes"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 100_000)
    (tmp_path / "x.key").symlink_to("app/notes")
    held = measure(tmp_path)
    assert {("/".join(one.rule.parts), one.is_directory) for one in held.secrets} == {
        (".ssh", True),
        ("app/.env", False),
    }
    assert held.bytes_ >= 300_000
    assert measure(tmp_path, skipped=frozenset({(".ssh",)})).secrets == [
        one for one in held.secrets if one.rule.parts == ("app", ".env")
    ]
    monkeypatch.setattr(usage, "MOST_SECRETS", 0)
    assert len(measure(tmp_path).secrets) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_what_keeps_secrets_stays_whose_it_is(tmp_path: Path) -> None:
    """A key that its reader refuses from anybody else; no command sees it."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").touch()
    measure(tmp_path, owner=65_533)
    owners = [place.stat().st_uid for place in (tmp_path, *tmp_path.rglob("*"))]
    assert owners == [65_533, 0, 0]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.sets(st.text("ab/", min_size=1, max_size=6), max_size=6))
def test_what_is_ours_goes_to_whom_commands_run_as(tmp_path: Path, names: set[str]) -> None:
    """All of it but what is none of their business; what a link points at stays where it was."""
    workspace = tmp_path / str(len(list(tmp_path.iterdir())))
    outside = workspace.with_suffix(".outside")
    (workspace / "private").mkdir(parents=True)
    (workspace / "private" / "key").touch()
    outside.touch()
    (workspace / "link").symlink_to(outside)
    for name in names:
        (workspace / "x" / name.replace("/", "/d")).mkdir(parents=True, exist_ok=True)
    measure(workspace, skipped=frozenset({("private",)}), owner=65_533)
    owners = {place: place.lstat().st_uid for place in workspace.rglob("*")}
    assert {owners.pop(workspace / "private"), owners.pop(workspace / "private" / "key")} == {0}
    assert set(owners.values()) == {65_533}
    assert workspace.stat().st_uid == 65_533
    assert outside.stat().st_uid == 0


def test_what_has_lost_its_name_counts_as_long_as_it_is_held(tmp_path: Path) -> None:
    """Open or mapped, once for all who hold it; a file of another disk does not."""
    us = (os.getpid(), os.getpid(), 999_999_999)
    before = usage.nameless_bytes(us, tmp_path)
    with (tmp_path / "a").open("w+b") as held, (tmp_path / "b").open("w+b") as mapped:
        for file in (held, mapped):
            file.write(b"x" * 100_000)
            file.flush()
        assert usage.nameless_bytes(us, tmp_path) == before
        (tmp_path / "a").unlink()
        with mmap.mmap(mapped.fileno(), 0):
            mapped.close()
            (tmp_path / "b").unlink()
            assert 200_000 <= usage.nameless_bytes(us, tmp_path) - before <= 220_000
            assert usage.nameless_bytes(us, Path("/proc")) == 0
    assert usage.nameless_bytes(us, tmp_path) == before
    assert usage.nameless_bytes(us, tmp_path / "gone") == 0


# --- what tools write ----------------------------------------------------------------------------


def test_a_workspace_is_counted_once_an_allowance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting costs as much as there is, so not each write counts."""
    looks: list[Path] = []

    def look(workspace: Path) -> DiskUsage:
        looks.append(workspace)
        return DiskUsage(bytes_=100_000, entries=10, is_whole=True)

    monkeypatch.setattr(usage, "measure", look)
    monkeypatch.setattr(usage, "GRANT_BYTES", 20_000)
    quota = Quota(most_bytes=10**9)
    for _ in range(10):
        quota.spend(tmp_path, new_bytes=5_000, new_entries=0)
    assert looks == [tmp_path] * 3  # 4, 4 and 2 of them
    quota.spend(tmp_path, new_bytes=50_000, new_entries=0)  # more than one grant, and there is room
    quota.spend(tmp_path / "other", new_bytes=1, new_entries=0)
    assert looks[3:] == [tmp_path, tmp_path / "other"]


@pytest.mark.parametrize(
    ("held", "new", "refusal"),
    [
        (
            DiskUsage(bytes_=60_000, entries=1, is_whole=True),
            (40_001, 0),
            "40,000 of its 100,000 bytes",
        ),
        (DiskUsage(bytes_=97_000, entries=1, is_whole=True), (0, 1), "3,000 of its 100,000 bytes"),
        (
            DiskUsage(bytes_=100_001, entries=1, is_whole=True),
            (1, 0),
            "holds more than its 100,000",
        ),
        (
            DiskUsage(bytes_=0, entries=MOST_ENTRIES - 1, is_whole=True),
            (0, 2),
            "1 of its 200,000 files",
        ),
        (DiskUsage(bytes_=0, entries=1, is_whole=False), (1, 0), "nested deeper"),
        (DiskUsage(bytes_=0, entries=1, is_whole=True, is_disk_full=True), (1, 0), "nearly full"),
    ],
)
def test_what_has_no_room_is_refused(
    monkeypatch: pytest.MonkeyPatch, held: DiskUsage, new: tuple[int, int], refusal: str
) -> None:
    """By bytes, by the block that a name takes, by names, and by the disk; to shrink is free."""

    def look(_: Path) -> DiskUsage:
        return held

    monkeypatch.setattr(usage, "measure", look)
    quota = Quota(most_bytes=100_000)
    with pytest.raises(ToolFailed, match=refusal):
        quota.spend(Path("/w"), new_bytes=new[0], new_entries=new[1])
    quota.spend(Path("/w"), new_bytes=0, new_entries=0)
    quota.spend(Path("/w"), new_bytes=-5, new_entries=0)


def test_allowances_are_remembered_of_so_many_workspaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each conversation of years would stay in memory."""
    looks: list[Path] = []

    def look(workspace: Path) -> DiskUsage:
        looks.append(workspace)
        return EMPTY

    monkeypatch.setattr(usage, "measure", look)
    monkeypatch.setattr(usage, "_MOST_GRANTS", 2)
    quota = Quota()
    for name in ("a", "b", "c", "a"):
        quota.spend(tmp_path / name, new_bytes=1, new_entries=0)
    assert len(looks) == 4


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(writes=st.lists(st.integers(0, 30_000), max_size=20))
def test_what_tools_write_never_exceeds_a_quota(tmp_path: Path, writes: list[int]) -> None:
    """Whatever they write, in whatever order: what the next count finds is within it."""
    workspace = tmp_path / str(len(list(tmp_path.iterdir())))
    workspace.mkdir()
    quota = Quota(most_bytes=100_000)
    for number, size in enumerate(writes):
        with suppress(ToolFailed):
            quota.spend(workspace, new_bytes=size, new_entries=1)
            (workspace / str(number)).write_bytes(b"x" * size)
    assert measure(workspace).bytes_ <= 100_000
