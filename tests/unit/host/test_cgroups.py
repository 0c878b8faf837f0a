"""What a command uses: its cgroup on a tree that imitates a delegated one, and what is counted without.

What the kernel makes of the bounds was tried on Linux 6.1 with systemd, beside the limits and the
watch; what it makes of the end of a group is tried here, where a group can be made.
"""

import asyncio
import errno
import mmap
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zeroclaw.errors import ToolFailed
from zeroclaw.host import cgroups, processes, quotas, sandbox
from zeroclaw.host.cgroups import AROUND, DAEMON, RUN, Closed, Group
from zeroclaw.host.processes import OutputCaps
from zeroclaw.host.quotas import MAX_DEPTH, MAX_ENTRIES, DiskUsage, Meter, Quota, measure
from zeroclaw.host.sandbox import Bare, Box
from zeroclaw.tool import Spawned

# The files of an imitated cgroup; their forms are those of cgroup-v2.rst, "Interface Files" of
# each controller.
FORMS = {
    "cgroup.procs": r"(\d+\n)*",
    "cgroup.controllers": r"([a-z_]+( [a-z_]+)*\n?)?",
    "cgroup.subtree_control": r"([a-z_]+( [a-z_]+)*\n?)?",
    "cgroup.kill": "",
    "cgroup.events": r"populated [01]\nfrozen [01]\n",
    "memory.events": r"low \d+\nhigh \d+\nmax \d+\noom \d+\noom_kill \d+\n",
    "memory.swap.max": r"max|\d+",
}
FILES = {
    "cgroup.procs": "",
    "cgroup.controllers": "cpu memory pids",
    "cgroup.subtree_control": "",
    "cgroup.kill": "",
    "cgroup.events": "populated 0\nfrozen 0\n",
    "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
    "memory.swap.max": "max",
}


def fill(place: Path, **files: str) -> Path:
    for name, content in {**FILES, **files}.items():
        (place / name).write_text(content)
    return place


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cgroup that this process was started in: directories appear and disappear with their
    files."""
    make = Path.mkdir

    def create(
        place: Path, mode: int = 0o777, *, parents: bool = False, exist_ok: bool = False
    ) -> None:
        make(place, mode, parents, exist_ok)
        if place.is_relative_to(tmp_path):
            fill(place)

    monkeypatch.setattr(Path, "mkdir", create)
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)
    (tmp_path / "cgroup").write_text("1:pids:/\n0::/system.slice/zeroclaw.service\n")
    (tmp_path / "mountinfo").write_text(
        "25 1 0:22 / /proc rw - proc proc rw\n"
        f"26 1 0:23 / {tmp_path}/fs rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
    )
    monkeypatch.setattr(cgroups, "_CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(cgroups, "_MOUNTS", tmp_path / "mountinfo")
    place = tmp_path / "fs/system.slice/zeroclaw.service"
    place.mkdir(parents=True)
    (place / "cgroup.procs").write_text(f"{os.getpid()}\n")
    return place


def test_an_imitated_cgroup_has_files_as_the_kernel_documents_them() -> None:
    assert FILES.keys() == FORMS.keys()
    assert [name for name, form in FORMS.items() if not re.fullmatch(form, FILES[name])] == []


def groups(own: Path) -> list[Path]:
    return list(own.glob(f"{RUN}*"))


def read(place: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in place.iterdir() if file.is_file()}


def test_a_delegated_subtree_is_made_ready(own: Path) -> None:
    """The daemon moves to its own leaf, since a group with inner groups may hold no process."""
    assert cgroups.take_over() == own
    assert (own / DAEMON / "cgroup.procs").read_text() == str(os.getpid())
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert [place.name for place in own.iterdir() if place.is_dir()] == [
        DAEMON
    ]  # no trial group remains


def test_controllers_are_enabled_once_the_cgroup_is_empty(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the kernel refuses ("No Internal Process Constraint"); so the daemon moves out
    first."""
    write, refused = Path.write_text, list[str]()

    def wrote(place: Path, text: str, encoding: str | None = None) -> int:
        if place.name == "cgroup.procs":
            for other in own.rglob("cgroup.procs"):
                write(other, other.read_text().replace(text, "").strip())
        elif place == own / "cgroup.subtree_control" and (own / "cgroup.procs").read_text():
            refused.append(text)
            raise OSError(16, "Device or resource busy")
        return write(place, text, encoding)

    monkeypatch.setattr(Path, "write_text", wrote)
    assert (cgroups.take_over(), refused) == (own, [])
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_a_subtree_can_be_taken_over_again(own: Path, tmp_path: Path) -> None:
    """A second takeover gives the same result."""
    cgroups.take_over()
    (tmp_path / "cgroup").write_text(f"0::/system.slice/zeroclaw.service/{DAEMON}\n")
    assert cgroups.take_over() == own


def test_groups_of_an_earlier_run_are_killed_and_removed(own: Path) -> None:
    """A command that survived a crash runs on in its group, and is found by it."""
    leftover = own / f"{RUN}0a"
    leftover.mkdir()
    killed: list[str] = []
    write = Path.write_text

    def wrote(place: Path, text: str, encoding: str | None = None) -> int:
        if place.name == "cgroup.kill":
            killed.append(place.parent.name)
        return write(place, text, encoding)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "write_text", wrote)
        cgroups.take_over()
    assert leftover.name in killed
    assert not leftover.exists()


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"cgroup.procs": f"{os.getpid()}\n1\n"}, "other programs share its cgroup"),
        ({"cgroup.procs": ""}, "other programs share its cgroup"),
        ({"cgroup.controllers": "cpu pids"}, "its cgroup has no controller for memory"),
        ({"cgroup.controllers": ""}, "its cgroup has no controller for memory and pids"),
    ],
)
def test_a_shared_cgroup_is_left_as_it_is(own: Path, files: dict[str, str], reason: str) -> None:
    fill(own, **{"cgroup.procs": f"{os.getpid()}\n", **files})
    before = read(own)
    assert cgroups.take_over() == reason
    assert read(own) == before
    assert not (own / DAEMON).exists()


def test_a_kernel_without_cgroup_kill_is_not_used(own: Path) -> None:
    (own / "cgroup.kill").unlink()
    result = cgroups.take_over()
    assert isinstance(result, str)
    assert "older than 5.14" in result
    assert not (own / DAEMON).exists()


def test_a_refusal_half_way_leaves_the_daemon_in_its_cgroup(own: Path) -> None:
    """A group in which we may not enable controllers is not used."""
    write = Path.write_text

    def wrote(place: Path, text: str, encoding: str | None = None) -> int:
        if text == "+memory +pids":
            raise PermissionError(13, "Permission denied")
        return write(place, text, encoding)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "write_text", wrote)
        result = cgroups.take_over()
    assert result == "its cgroup was not delegated to it (permission denied)"
    assert (own / "cgroup.procs").read_text() == str(os.getpid())
    assert not (own / DAEMON).exists()


@pytest.mark.parametrize("missing", ["cgroup", "mountinfo"])
def test_a_machine_without_cgroups_of_version_2_says_so(
    own: Path, tmp_path: Path, missing: str
) -> None:
    (tmp_path / missing).write_text("4:memory:/x\n" if missing == "cgroup" else "")
    assert cgroups.take_over() == "this machine has no cgroups of version 2"
    (tmp_path / missing).unlink()
    assert cgroups.take_over() == "this machine has no cgroups of version 2"
    assert own.exists()


def test_a_command_gets_a_group_with_its_bounds(own: Path) -> None:
    """All bounds are set before a process enters, and its memory is never swapped."""
    group = cgroups.open_group(own, memory_bytes=1_000, processes=64)
    group.enter(123)
    files = read(group.place)
    assert group.place.name.startswith(RUN)
    assert {name: files[name] for name in ("memory.max", "memory.swap.max", "pids.max")} == {
        "memory.max": "1000",
        "memory.swap.max": "0",
        "pids.max": str(64 + AROUND),
    }
    assert (files["memory.oom.group"], files["cgroup.procs"]) == ("1", "123")


@pytest.mark.parametrize(
    ("events", "excess"),
    [
        (FILES["memory.events"], ""),
        ("oom 1\noom_kill 4\n", "its processes together used more than 1,000 bytes of memory"),
        (
            "oom 0\noom_kill 1\n",
            "the daemon and its commands together used more memory than they may have",
        ),
    ],
)
def test_a_closed_group_reports_why_the_kernel_ended_it(
    own: Path, events: str, excess: str
) -> None:
    group = cgroups.open_group(own, memory_bytes=1_000, processes=1)
    (group.place / "memory.events").write_text(events)
    assert group.close() == Closed(excess=excess)
    assert not group.place.exists()
    assert group.close() == Closed()  # safe twice


@pytest.fixture
def group() -> Iterator[Group]:
    """A real group of the kernel, without controllers."""
    places = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
    own = next((place for place in places if (place / "cgroup.procs").exists()), places[0])
    real_group = Group(place=own / f"{RUN}{secrets.token_hex(8)}", memory_bytes=0)
    try:
        real_group.place.mkdir()
    except OSError as error:
        pytest.skip(f"no group can be made here: {error.strerror}")
    yield real_group
    real_group.close()


def test_the_kernels_own_files_are_as_they_are_imitated(group: Group) -> None:
    """The files that need no controller; `memory.events` needs one that few machines delegate."""
    named = {name for name in FORMS if name.startswith("cgroup.")}
    assert named <= {file.name for file in group.place.iterdir()}
    read_of = {name: (group.place / name).read_text() for name in named - {"cgroup.kill"}}
    assert [name for name, text in read_of.items() if not re.fullmatch(FORMS[name], text)] == []


def test_the_kernel_kills_every_process_of_a_group(group: Group) -> None:
    """Processes in new sessions and orphans too; only real processes prove it."""
    run = "read go; setsid sleep 60 & (setsid sleep 60 &); echo ready; wait"
    with subprocess.Popen(["sh", "-c", run], stdin=-1, stdout=-1, text=True) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        group.enter(started.pid)
        started.stdin.write("\n")
        started.stdin.flush()
        assert started.stdout.readline() == "ready\n"
        assert len((group.place / "cgroup.procs").read_text().split()) > 2
        assert group.close() == Closed()
        assert (started.wait(), group.place.exists()) == (-9, False)
    assert group.close() == Closed()


def test_a_group_that_can_not_be_removed_is_reported(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of it is alive, so its record stays."""

    def refuse(_: Path) -> None:
        raise OSError(16, "Device or resource busy")

    group = cgroups.open_group(own, memory_bytes=1_000, processes=1)
    monkeypatch.setattr(Path, "rmdir", refuse)
    assert group.close() == Closed(is_empty=False)


# --- a command in one ----------------------------------------------------------------------------


async def run(own: Path, command: str, *, subtree: Path | None = None) -> processes.ProcessEnd:
    async def spawned(group: Spawned | None) -> None:
        """Check once which process is where before the program starts."""
        if group is not None:
            [place] = await asyncio.to_thread(groups, own)
            inside = await asyncio.to_thread(read, place)
            entered.append(inside["cgroup.procs"] == str(group.pgid))

    entered: list[bool] = []
    result = await sandbox.run(
        Bare(subtree=subtree or own),
        Box(workspace=own),
        ("/bin/sh", "-c", command),
        timeout_s=600,
        caps=OutputCaps(),
        spawned=spawned,
    )
    assert entered == [True]
    return result


async def test_a_command_is_in_its_group_before_it_starts(own: Path) -> None:
    """No part of it runs outside, and the group is removed with it."""
    result = await run(own, "pwd")
    output = f"{own}\n".encode()
    assert (result.ending, result.output.head, result.is_gone) == ("exited", output, True)
    assert groups(own) == []


async def test_a_command_ended_by_the_kernel_reports_why(own: Path) -> None:
    """With the same words as from the watch, and without an exit code."""
    result = await run(own, f"cd {own}/{RUN}*; printf 'oom 1\\noom_kill 9\\n' > memory.events")
    assert result.ending == "over_bounds"
    assert result.excess == "its processes together used more than 2,147,483,648 bytes of memory"


async def test_a_command_that_gets_no_group_does_not_run(own: Path) -> None:
    """It would be unbounded, since only the kernel watches its memory there."""
    with pytest.raises(ToolFailed, match="can't have a cgroup: no such file"):
        await run(own, "touch ran", subtree=own / "gone")
    assert not (own / "ran").exists()


async def test_a_group_that_can_not_be_entered_ends_the_command(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Group, pid: int) -> None:
        raise OSError(pid, "Operation not supported")

    monkeypatch.setattr(Group, "enter", refuse)
    with pytest.raises(ToolFailed, match="could not be put in a cgroup"):
        await run(own, "touch ran")
    assert not (own / "ran").exists()
    assert groups(own) == []


# --- disk usage, and changes of owner ------------------------

EMPTY = DiskUsage(bytes_=0, entries=0, is_whole=True)


def measured_as(monkeypatch: pytest.MonkeyPatch, usage: DiskUsage) -> list[Path]:
    """Let every measurement find this usage; return the measured places."""
    places: list[Path] = []

    def measure_place(place: Path, **_options: object) -> DiskUsage:
        places.append(place)
        return usage

    monkeypatch.setattr(quotas, "measure", measure_place)
    return places


def test_each_file_is_counted_once(tmp_path: Path) -> None:
    """Holes and further hard links cost nothing; no symbolic link is followed."""
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


def test_a_locked_directory_is_measured_too(tmp_path: Path) -> None:
    """Otherwise it could hide data beyond the quota."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_bytes(b"x" * 100_000)
    (tmp_path / "d").chmod(0)
    assert measure(tmp_path).bytes_ >= 100_000


def test_a_locked_workspace_is_opened_again(tmp_path: Path) -> None:
    """One command may lock it; the next one is still measured. A missing workspace is reported."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a").write_bytes(b"x" * 100_000)
    (tmp_path / "w").chmod(0)
    assert measure(tmp_path / "w").bytes_ >= 100_000
    with pytest.raises(ToolFailed, match="the workspace is gone"):
        measure(tmp_path / "other")


def test_a_directory_that_there_is_no_descriptor_for_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a command would see the secrets in it, which are masked where the walk finds them."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / ".env").touch()
    system_open = os.open

    def refuse_inner(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path == "d":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return system_open(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse_inner)
    with pytest.raises(ToolFailed, match="can't be measured: too many open files"):
        measure(tmp_path)


@pytest.mark.needs("unshare")
@pytest.mark.slow
def test_a_directory_that_may_only_be_listed_is_not_passed_over(tmp_path: Path) -> None:
    """A command may leave `.env` in one, for the next command to open again and read."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / ".env").touch()
    (tmp_path / "d").chmod(0o400)
    # Root overrides the modes, so it has to give that up.
    as_plain = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    look = (
        "import sys; from pathlib import Path; from zeroclaw.host.quotas import measure;"
        " print(*(secret.parts for secret in measure(Path(sys.argv[1])).secrets))"
    )
    argv = (*(as_plain if os.geteuid() == 0 else ()), sys.executable, "-c", look, str(tmp_path))
    found = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert found.stdout == "('d', '.env')\n"


def test_a_too_deep_tree_makes_the_usage_incomplete(tmp_path: Path) -> None:
    """Its size is then not fully known."""
    place = tmp_path
    for _ in range(MAX_DEPTH + 1):
        place /= "d"
    place.mkdir(parents=True)
    usage = measure(tmp_path)
    assert not usage.is_whole
    assert "nested deeper" in usage.excess(10**12)


def test_too_many_names_end_the_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring takes a bounded number of steps."""
    monkeypatch.setattr(quotas, "_COUNTED_ENTRIES", 5)
    for n in range(9):
        (tmp_path / str(n)).touch()
    usage = measure(tmp_path)
    assert (usage.entries, usage.is_whole) == (5, False)


@pytest.mark.parametrize(
    ("usage", "excess"),
    [
        (EMPTY, ""),
        (DiskUsage(bytes_=100, entries=1, is_whole=True), ""),
        (
            DiskUsage(bytes_=101, entries=1, is_whole=True),
            "the workspace holds more than its 100 bytes",
        ),
        (DiskUsage(bytes_=0, entries=MAX_ENTRIES + 1, is_whole=True), "more than 200,000 files"),
        (DiskUsage(bytes_=0, entries=0, is_whole=True, is_disk_full=True), "nearly full"),
    ],
)
def test_the_exceeded_quota_is_named(usage: DiskUsage, excess: str) -> None:
    assert (usage.excess(100) == "") == (excess == "")
    assert excess in usage.excess(100)


def test_a_workspace_that_was_too_full_must_not_grow(tmp_path: Path) -> None:
    """Neither in bytes nor in names, and a disk that was already full is not the command's
    fault."""
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    usage = measure(tmp_path)
    meter = Meter(memory_bytes=10**12, max_bytes=10, workspace=tmp_path, usage=usage)
    assert meter(os.getpid()) == ""
    (tmp_path / "b").write_bytes(b"x" * 100_000)
    # A small one is measured each time.
    assert meter(os.getpid()) == f"the workspace holds more than its {usage.bytes_:,} bytes"


def test_a_hidden_place_in_a_workspace_counts_neither_before_nor_during_a_command(
    tmp_path: Path,
) -> None:
    """A workspace may be a link to a home that also holds the data, which no command can shrink."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/store").write_bytes(b"x" * 200_000)
    hidden = (("data",),)
    usage = measure(tmp_path, skipped=hidden)
    meter = Meter(max_bytes=100_000, workspace=tmp_path, usage=usage, skipped=hidden)
    assert meter(os.getpid()) == ""
    Quota(100_000).spend(tmp_path, new_bytes=10_000, new_entries=1, skipped=hidden)
    (tmp_path / "own").write_bytes(b"x" * 200_000)
    assert meter(os.getpid()) == "the workspace holds more than its 100,000 bytes"


def test_a_big_workspace_is_measured_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measuring takes time in proportion to the size, so its share of the time stays the same."""
    measured = measured_as(monkeypatch, DiskUsage(bytes_=0, entries=100_000, is_whole=True))
    meter = Meter(memory_bytes=10**12, max_bytes=10, workspace=tmp_path, usage=EMPTY)
    assert [meter(os.getpid()) for _ in range(25)] == [""] * 25
    assert len(measured) == 3


class Places:
    """No skipped places; each look at one runs another meter, as a command elsewhere would."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.said: list[str] = []

    def __contains__(self, _: object) -> bool:
        self.said.append(self.meter(os.getpid()))
        return False


def test_one_workspace_is_measured_at_a_time(tmp_path: Path) -> None:
    """A full one takes a second of the interpreter; of several commands, one takes it at a time."""
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    other = Meter(max_bytes=10, workspace=tmp_path, usage=EMPTY)
    meanwhile = Places(other)
    meter = Meter(max_bytes=10**9, workspace=tmp_path, usage=EMPTY, skipped=meanwhile)
    assert (meter(os.getpid()), meanwhile.said) == ("", [""])
    assert other(os.getpid()) == "the workspace holds more than its 10 bytes"


async def test_commands_that_wait_for_their_workspaces_leave_the_threads_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many commands begin at once."""
    release = threading.Event()

    def measure_slowly(_: Path, **_options: object) -> DiskUsage:
        assert release.wait(5)
        return DiskUsage()

    monkeypatch.setattr(quotas, "measure", measure_slowly)
    with ThreadPoolExecutor(3) as common:
        asyncio.get_running_loop().set_default_executor(common)
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for _ in range(5):
                command = sandbox.run(
                    Bare(),
                    Box(workspace=tmp_path),
                    ("/bin/true",),
                    timeout_s=60,
                    caps=OutputCaps(),
                    spawned=sandbox.unrecorded,
                )
                group.create_task(command)
            await asyncio.sleep(0)
            await asyncio.to_thread(release.set)


def test_memory_is_counted(tmp_path: Path) -> None:
    """Our own process's here."""
    meter = Meter(memory_bytes=1_000, max_bytes=10**9, workspace=tmp_path, usage=EMPTY)
    assert meter(os.getpid()) == "its processes together used more than 1,000 bytes of memory"
    assert quotas.memory_bytes(()) == 0


def test_the_outermost_secret_places_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They count as everything does; links are left out; one above the bound means too many."""
    for name in (".ssh/keys/id_rsa", "app/.env", "app/notes"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 100_000)
    (tmp_path / "x.key").symlink_to("app/notes")
    usage = measure(tmp_path)
    assert {("/".join(secret.parts), secret.is_directory) for secret in usage.secrets} == {
        (".ssh", True),
        ("app/.env", False),
    }
    assert usage.bytes_ >= 300_000
    assert measure(tmp_path, skipped=frozenset({(".ssh",)})).secrets == [
        secret for secret in usage.secrets if secret.parts == ("app", ".env")
    ]
    monkeypatch.setattr(quotas, "MAX_SECRETS", 0)
    assert len(measure(tmp_path).secrets) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_secret_files_keep_their_owner(tmp_path: Path) -> None:
    """A key that its reader accepts only from its owner; no command sees it."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").touch()
    measure(tmp_path, owner=65_533)
    owners = [place.stat().st_uid for place in (tmp_path, *tmp_path.rglob("*"))]
    assert owners == [65_533, 0, 0]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.sets(st.text("ab/", min_size=1, max_size=6), max_size=6))
def test_our_files_are_given_to_the_user_that_runs_commands(
    tmp_path: Path, names: set[str]
) -> None:
    """All files except the excluded ones; the target of a link keeps its owner."""
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


@pytest.mark.parametrize("name", ["b", "b\u2028c (deleted)", "b\fc", "b\rc", "b\nc"])
def test_a_deleted_file_counts_while_it_is_open_or_mapped(tmp_path: Path, name: str) -> None:
    """Open or mapped, once for all processes, under any name; a file of another disk does not
    count."""
    us = (os.getpid(), os.getpid(), 999_999_999)
    before = quotas.nameless_bytes(us, tmp_path)
    with (tmp_path / "a").open("w+b") as opened, (tmp_path / name).open("w+b") as mapped:
        for file in (opened, mapped):
            file.write(b"x" * 100_000)
            file.flush()
        assert quotas.nameless_bytes(us, tmp_path) == before
        (tmp_path / "a").unlink()
        with mmap.mmap(mapped.fileno(), 0):
            mapped.close()
            (tmp_path / name).unlink()
            assert 200_000 <= quotas.nameless_bytes(us, tmp_path) - before <= 220_000
            assert quotas.nameless_bytes(us, Path("/proc")) == 0
    assert quotas.nameless_bytes(us, tmp_path) == before
    assert quotas.nameless_bytes(us, tmp_path / "gone") == 0


# --- writes of tools ----------------------------------------------------------------------------


def test_a_workspace_is_measured_once_per_allowance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measuring takes time in proportion to the size, so not every write measures."""
    measured = measured_as(monkeypatch, DiskUsage(bytes_=100_000, entries=10, is_whole=True))
    monkeypatch.setattr(quotas, "GRANT_BYTES", 20_000)
    quota = Quota(max_bytes=10**9)
    for _ in range(10):
        quota.spend(tmp_path, new_bytes=5_000, new_entries=0)
    assert measured == [tmp_path] * 3  # after 4, 4 and 2 writes
    quota.spend(
        tmp_path, new_bytes=50_000, new_entries=0
    )  # more than one allowance, and there is room
    quota.spend(tmp_path / "other", new_bytes=1, new_entries=0)
    assert measured[3:] == [tmp_path, tmp_path / "other"]


@pytest.mark.parametrize(
    ("usage", "new", "refusal"),
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
            DiskUsage(bytes_=0, entries=MAX_ENTRIES - 1, is_whole=True),
            (0, 2),
            "1 of its 200,000 files",
        ),
        (DiskUsage(bytes_=0, entries=1, is_whole=False), (1, 0), "nested deeper"),
        (DiskUsage(bytes_=0, entries=1, is_whole=True, is_disk_full=True), (1, 0), "nearly full"),
    ],
)
def test_a_write_without_room_is_refused(
    monkeypatch: pytest.MonkeyPatch, usage: DiskUsage, new: tuple[int, int], refusal: str
) -> None:
    """By bytes, by the block of an entry, by entries, and by the disk; shrinking is free."""
    measured_as(monkeypatch, usage)
    quota = Quota(max_bytes=100_000)
    with pytest.raises(ToolFailed, match=refusal):
        quota.spend(Path("/w"), new_bytes=new[0], new_entries=new[1])
    quota.spend(Path("/w"), new_bytes=0, new_entries=0)
    quota.spend(Path("/w"), new_bytes=-5, new_entries=0)


def test_the_number_of_remembered_allowances_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each conversation of years would stay in memory."""
    measured = measured_as(monkeypatch, EMPTY)
    monkeypatch.setattr(quotas, "_MAX_GRANTS", 2)
    quota = Quota()
    for name in ("a", "b", "c", "a"):
        quota.spend(tmp_path / name, new_bytes=1, new_entries=0)
    assert len(measured) == 4


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(writes=st.lists(st.integers(0, 30_000), max_size=20))
def test_writes_of_tools_never_exceed_a_quota(tmp_path: Path, writes: list[int]) -> None:
    """For any writes in any order: the next measurement is within it."""
    workspace = tmp_path / str(len(list(tmp_path.iterdir())))
    workspace.mkdir()
    quota = Quota(max_bytes=100_000)
    for number, size in enumerate(writes):
        with suppress(ToolFailed):
            quota.spend(workspace, new_bytes=size, new_entries=1)
            (workspace / str(number)).write_bytes(b"x" * size)
    assert measure(workspace).bytes_ <= 100_000
