"""Child processes: started behind a gate, read within bounds, killed as a group."""

import asyncio
import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.plain_tool import Records
from zeroclaw.codec import decode
from zeroclaw.errors import ToolFailed
from zeroclaw.host import processes
from zeroclaw.host.processes import Capture, Captured, OutputCaps, ProcessEnd, Recorder, Watch
from zeroclaw.tool import Spawned
from zeroclaw.value import replace

SMALL = OutputCaps(head_bytes=8, tail_bytes=4, flood_bytes=1_000_000)


async def run(
    command: str,
    spawned: Recorder,
    *,
    timeout_s: float = 30.0,
    caps: OutputCaps = SMALL,
    directory: Path = Path("/"),
    watch: Watch | None = None,
) -> ProcessEnd:
    return await processes.run(
        ("/bin/sh", "-c", command),
        directory=directory,
        environment={"PATH": "/usr/bin:/bin"},
        timeout_s=timeout_s,
        caps=caps,
        spawned=spawned,
        watch=watch,
    )


async def is_gone(records: Records) -> bool:
    """Return whether no process of the recorded group is alive."""
    return await asyncio.to_thread(processes.living, records.pgid) == ()


@given(pieces=st.lists(st.binary(max_size=40), max_size=8))
def test_the_head_and_the_tail_of_any_stream_are_kept(pieces: list[bytes]) -> None:
    """For any division into pieces, beginning and end are kept, and the rest is counted."""
    capture = Capture(SMALL)
    for piece in pieces:
        capture.feed(piece)
    whole = b"".join(pieces)
    assert capture.captured() == Captured(
        head=whole[:8], tail=whole[8:][-4:], total_bytes=len(whole)
    )


async def test_a_child_has_a_lower_priority_than_the_daemon() -> None:
    """Its computation takes no processor time from the daemon (P9)."""
    result = await run("nice", Records().spawned)
    assert int(result.output.head) == min(os.nice(0) + 10, 19)


async def test_a_child_is_recorded_before_it_runs_and_removed_after(tmp_path: Path) -> None:
    """The group is recorded while the child still waits at the gate (P3)."""
    mark = tmp_path / "ran"
    states: list[tuple[bool, bool]] = []

    async def spawned(group: Spawned | None) -> None:
        states.append((group is not None, await asyncio.to_thread(mark.exists)))

    result = await run(f"touch {mark}", spawned)
    assert (result.ending, result.status, result.is_gone) == ("exited", 0, True)
    assert states == [(True, False), (False, True)]


async def test_a_child_that_could_not_be_recorded_does_not_run(tmp_path: Path) -> None:
    """If the store fails the gate stays closed (P3)."""

    async def refuse(_: Spawned | None) -> None:
        raise ToolFailed("the store is full")

    with pytest.raises(ToolFailed, match="the store is full"):
        await run("touch ran", refuse, directory=tmp_path)
    assert await asyncio.to_thread(os.listdir, tmp_path) == []


async def test_a_program_that_cannot_start_is_a_clear_failure(tmp_path: Path) -> None:
    """Its working directory is missing: one line says so."""
    with pytest.raises(ToolFailed, match="could not be started: no such file"):
        await run("true", Records().spawned, directory=tmp_path / "missing")


@pytest.mark.parametrize(
    ("command", "status"), [("exit 3", 3), ("kill -TERM $$", -15), ("cat; echo end >&2", 0)]
)
async def test_the_status_is_that_of_the_program(command: str, status: int) -> None:
    """An exit status is passed on as it is, a signal as its negative number; stdin is empty."""
    result = await run(command, Records().spawned)
    assert (result.ending, result.status, result.is_gone) == ("exited", status, True)


async def test_both_streams_are_in_the_order_of_writing() -> None:
    """The output is as a terminal would show it."""
    result = await run("echo a; echo b >&2; echo c", Records().spawned)
    assert result.output == Captured(head=b"a\nb\nc\n", tail=b"", total_bytes=6)


async def test_a_child_does_not_inherit_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret in the daemon's environment does not reach a child (P8)."""
    monkeypatch.setenv("API_TOKEN", "hunter2hunter2")
    result = await run("env", Records().spawned, caps=OutputCaps())
    assert b"hunter2" not in result.output.head


@pytest.mark.slow
async def test_a_watch_that_reports_an_excess_ends_the_program() -> None:
    """The watch is called repeatedly with the first process until the end."""
    records, trees = Records(), list[tuple[int, ...]]()

    def watch(pid: int) -> str:
        if len(tree := processes.tree(pid)) == 4:  # a busy machine starts them one by one
            trees.append(tree)
        return "enough" if len(trees) > 1 else ""

    result = await run(
        "echo up; sleep 600 & (setsid sleep 600 & wait)", records.spawned, watch=watch
    )
    assert (result.ending, result.excess) == ("over_bounds", "enough")
    assert [tree[0] for tree in trees] == [records.pgid, records.pgid]
    assert await is_gone(records)


@pytest.mark.slow
async def test_a_slow_watch_does_not_make_an_end_a_time_out(tmp_path: Path) -> None:
    """A large workspace takes the watch seconds, in which the program may end by itself."""
    os.mkfifo(tmp_path / "go")
    released = threading.Event()

    def watch(_: int) -> str:
        (tmp_path / "go").write_text("go\n", encoding="utf-8")
        released.wait()
        return ""

    try:
        end = await run(
            "read line < go", Records().spawned, timeout_s=1, directory=tmp_path, watch=watch
        )
    finally:
        released.set()
    assert (end.ending, end.status) == ("exited", 0)


async def test_a_silent_watch_changes_nothing() -> None:
    """Neither the ending nor the time-out."""
    result = await run("exit 3", Records().spawned, watch=lambda _: "")
    assert (result.ending, result.status, result.excess) == ("exited", 3, "")
    late = await run("sleep 600", Records().spawned, watch=lambda _: "", timeout_s=0.3)
    assert (late.ending, late.excess) == ("timed_out", "")


SESSION = -3  # KEY_SPEC_SESSION_KEYRING, linux/keyctl.h
KEYS = {"x86_64": (248, 249), "aarch64": (217, 218)}  # add_key, request_key


@pytest.mark.needs("keyring")
async def test_a_child_does_not_inherit_our_session_keyring() -> None:
    """A child's session keyring is new and empty."""
    add, request = KEYS[os.uname().machine]
    libc = ctypes.CDLL(None)
    assert libc.syscall(add, b"user", b"zeroclaw-test", b"hunter2", 7, SESSION) > 0
    script = (
        f"import ctypes; print(ctypes.CDLL(None).syscall({request}, b'user', b'zeroclaw-test', 0,"
        f" {SESSION}))"
    )
    result = await run(f'"{sys.executable}" -c "{script}"', Records().spawned)
    assert result.output.head == b"-1\n"


async def test_a_flood_of_output_is_stopped_and_mostly_dropped() -> None:
    """A child that writes endlessly is killed, and its output does not accumulate."""
    records = Records()
    result = await run("yes", records.spawned)
    assert (result.ending, result.status, result.is_gone) == ("flooded", -signal.SIGKILL, True)
    assert (result.output.head, len(result.output.tail)) == (b"y\ny\ny\ny\n", 4)
    assert await is_gone(records)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["trap '' TERM INT HUP; sleep 600", "sleep 600 & sleep 601"])
async def test_a_hanging_child_is_killed_with_its_group(command: str) -> None:
    """Neither an ignored signal nor a child process saves a program from its time-out."""
    records = Records()
    result = await run(command, records.spawned, timeout_s=0.2)
    assert (result.ending, result.status, result.is_gone) == ("timed_out", -signal.SIGKILL, True)
    assert await is_gone(records)


async def test_background_processes_end_with_the_program() -> None:
    """An ended program leaves no process behind, and the daemon does not wait for one."""
    records = Records()
    result = await run("sleep 600 & echo started", records.spawned, caps=OutputCaps())
    assert (result.ending, result.output.head, result.is_gone) == ("exited", b"started\n", True)
    assert await is_gone(records)


async def test_a_cancelled_run_takes_its_group_with_it(tmp_path: Path) -> None:
    """Cancelling the call stops the program."""
    records = Records()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run(f"echo up > {pipe}; sleep 600", records.spawned))
        assert await asyncio.to_thread(pipe.read_text) == "up\n"
        task.cancel()
    assert task.cancelled()
    assert [group is None for group in records.seen] == [False, True]
    assert await is_gone(records)


@contextmanager
def left_behind(command: str) -> Generator[Spawned]:
    """Start an orphaned group, as a killed daemon leaves it."""
    with subprocess.Popen(["/bin/sh", "-c", command], start_new_session=True) as child:
        group = processes.identify(child.pid)
        try:
            yield group
        finally:
            assert processes.end_group(group.pgid)


def test_a_group_left_by_a_crash_is_ended_at_the_next_start() -> None:
    """A group of an earlier daemon is found by its record and killed (P3)."""
    with left_behind("sleep 600 & sleep 601") as orphan:
        assert processes.reap(orphan) == "killed"
    assert processes.reap(orphan) == "gone"


def test_a_group_is_killed_without_room_for_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were opened to wait for its processes are closed, so that room comes back."""
    pidfd_open, opened = os.pidfd_open, list[int]()

    def open_one(pid: int) -> int:
        if opened:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        opened.append(pidfd_open(pid))
        return opened[0]

    with left_behind("sleep 600 & sleep 601") as orphan:
        monkeypatch.setattr(os, "pidfd_open", open_one)
        processes.end_group(orphan.pgid)
        monkeypatch.undo()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(opened[0])
        assert processes.end_group(orphan.pgid)


def test_a_process_that_could_not_be_looked_at_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its record would be removed, and it would live on."""

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    with left_behind("sleep 600") as orphan:
        monkeypatch.setattr(os, "open", refuse)
        with pytest.raises(OSError, match="Cannot allocate memory"):
            processes.reap(orphan)
        with pytest.raises(OSError, match="Cannot allocate memory"):
            processes.living(orphan.pgid)
        monkeypatch.undo()


def test_a_sandbox_that_outlived_its_first_process_is_ended(tmp_path: Path) -> None:
    """It was too young to notice the death of its parent (P3)."""
    sandbox, pipe = tmp_path / "bwrap", tmp_path / "pipe"
    shutil.copy("/bin/cat", sandbox)
    os.mkfifo(pipe)
    command = f"{sandbox} {pipe} & read line"
    with subprocess.Popen(
        ["/bin/sh", "-c", command], start_new_session=True, stdin=subprocess.PIPE
    ) as first:
        orphan = processes.identify(first.pid)
        with pipe.open("wb"):  # it runs
            first.kill()
            first.wait()
            older = replace(orphan, start_ticks=orphan.start_ticks + 1_000_000)
            assert processes.reap(older) == "gone"
            assert processes.reap(orphan) == "killed"
    assert processes.living(orphan.pgid) == ()


def test_a_reused_process_id_is_never_mistaken_for_ours() -> None:
    """A process with the same id but another start time or boot is left alone."""
    with left_behind("sleep 600") as other:
        earlier = replace(other, start_ticks=other.start_ticks - 1)
        rebooted = replace(other, boot="another")
        assert processes.reap(earlier) == "gone"
        assert processes.reap(rebooted) == "gone"
        assert other.pgid in processes.living(other.pgid)


DAEMON = """
import asyncio, sys
from pathlib import Path
from zeroclaw.host import processes
from zeroclaw.codec import encode
async def spawned(group):
    if group is not None:
        print(encode(group).decode(), flush=True)
        if sys.argv[2] == "before":
            sys.stdin.read()
asyncio.run(processes.run(("/bin/sh", "-c", "touch ran; echo up > pipe; sleep 600"),
    directory=Path(sys.argv[1]), environment={"PATH": "/usr/bin:/bin"}, timeout_s=600,
    caps=processes.OutputCaps(), spawned=spawned))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("when", "ran"), [("before", False), ("after", True)])
def test_a_killed_daemons_record_ends_its_child(tmp_path: Path, when: str, ran: bool) -> None:
    """If killed before the gate opens nothing runs; if later, the record finds the child."""
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(tmp_path), when],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as daemon:
        orphan = decode(Spawned, daemon.stdout.readline().encode() if daemon.stdout else b"")
        up = (tmp_path / "pipe").read_text(encoding="utf-8") if ran else ""
        daemon.kill()
        daemon.wait()
    result = processes.reap(orphan)
    assert (up, (tmp_path / "ran").exists(), result == "alive") == ("up\n" * ran, ran, False)
    assert processes.living(orphan.pgid) == ()
