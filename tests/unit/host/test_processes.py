"""Children: born behind a gate, heard out within bounds, ended as a group."""

import asyncio
import ctypes
import os
import shutil
import signal
import subprocess
import sys
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
    """No process of the recorded group lives."""
    return await asyncio.to_thread(processes.living, records.pgid) == ()


@given(pieces=st.lists(st.binary(max_size=40), max_size=8))
def test_the_head_and_the_tail_of_any_stream_are_kept(pieces: list[bytes]) -> None:
    """However a stream is cut into pieces, its beginning and its end are kept, the rest counted."""
    capture = Capture(SMALL)
    for piece in pieces:
        capture.feed(piece)
    whole = b"".join(pieces)
    rest = whole[8:]
    assert capture.captured() == Captured(
        head=whole[:8], tail=rest[-4:], dropped_bytes=max(0, len(rest) - 4)
    )
    assert capture.captured().total_bytes == len(whole)


async def test_a_child_waits_for_the_daemon_not_the_daemon_for_it() -> None:
    """What it computes takes no processor from what people wait for (P9)."""
    ended = await run("nice", Records().spawned)
    assert int(ended.output.head) == min(os.nice(0) + 10, 19)


async def test_a_child_is_recorded_before_it_runs_and_struck_off_after(tmp_path: Path) -> None:
    """The group is recorded while the child still waits at its gate (P3)."""
    mark = tmp_path / "ran"
    seen: list[tuple[bool, bool]] = []

    async def spawned(group: Spawned | None) -> None:
        seen.append((group is not None, await asyncio.to_thread(mark.exists)))

    ended = await run(f"touch {mark}", spawned)
    assert (ended.ending, ended.status, ended.is_gone) == ("exited", 0, True)
    assert seen == [(True, False), (False, True)]


async def test_nothing_runs_when_it_could_not_be_recorded(tmp_path: Path) -> None:
    """A store that fails keeps the gate shut for ever (P3)."""

    async def refuse(_: Spawned | None) -> None:
        raise ToolFailed("the store is full")

    with pytest.raises(ToolFailed, match="the store is full"):
        await run("touch ran", refuse, directory=tmp_path)
    assert await asyncio.to_thread(os.listdir, tmp_path) == []


async def test_a_program_that_cannot_start_is_a_clear_failure(tmp_path: Path) -> None:
    """Where it should start is missing: one line says so."""
    with pytest.raises(ToolFailed, match="could not be started: no such file"):
        await run("true", Records().spawned, directory=tmp_path / "missing")


@pytest.mark.parametrize(
    ("command", "status"), [("exit 3", 3), ("kill -TERM $$", -15), ("cat; echo end >&2", 0)]
)
async def test_the_status_says_how_it_ended(command: str, status: int) -> None:
    """An exit status comes as it is, a signal as its negative number; standard input is empty."""
    ended = await run(command, Records().spawned)
    assert (ended.ending, ended.status, ended.is_gone) == ("exited", status, True)


async def test_both_streams_come_in_the_order_of_writing() -> None:
    """What a person would see in a terminal is what is kept."""
    ended = await run("echo a; echo b >&2; echo c", Records().spawned)
    assert ended.output == Captured(head=b"a\nb\nc\n", tail=b"", dropped_bytes=0)


async def test_nothing_of_our_environment_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret in the daemon's environment does not reach a child (P8)."""
    monkeypatch.setenv("API_TOKEN", "hunter2hunter2")
    ended = await run("env", Records().spawned, caps=OutputCaps())
    assert b"hunter2" not in ended.output.head


@pytest.mark.slow
async def test_what_a_watch_says_is_too_much_ends_it() -> None:
    """It is asked again and again, with the first process, until it is over."""
    records, seen = Records(), list[tuple[int, ...]]()

    def watch(pid: int) -> str:
        if len(tree := processes.tree(pid)) == 4:  # a busy machine starts them one by one
            seen.append(tree)
        return "enough" if len(seen) > 1 else ""

    ended = await run(
        "echo up; sleep 600 & (setsid sleep 600 & wait)", records.spawned, watch=watch
    )
    assert (ended.ending, ended.excess) == ("over_bounds", "enough")
    assert [tree[0] for tree in seen] == [records.pgid, records.pgid]
    assert await is_gone(records)


async def test_a_watch_that_says_nothing_changes_nothing() -> None:
    """Not how it ended, and not its time-out."""
    ended = await run("exit 3", Records().spawned, watch=lambda _: "")
    assert (ended.ending, ended.status, ended.excess) == ("exited", 3, "")
    late = await run("sleep 600", Records().spawned, watch=lambda _: "", timeout_s=0.3)
    assert (late.ending, late.excess) == ("timed_out", "")


SESSION = -3  # KEY_SPEC_SESSION_KEYRING, linux/keyctl.h
KEYS = {"x86_64": (248, 249), "aarch64": (217, 218)}  # add_key, request_key


@pytest.mark.needs("keyring")
async def test_the_keys_of_our_login_are_not_handed_on() -> None:
    """A child's session keyring is new and empty."""
    add, request = KEYS[os.uname().machine]
    libc = ctypes.CDLL(None)
    assert libc.syscall(add, b"user", b"zeroclaw-test", b"hunter2", 7, SESSION) > 0
    looks = (
        f"import ctypes; print(ctypes.CDLL(None).syscall({request}, b'user', b'zeroclaw-test', 0,"
        f" {SESSION}))"
    )
    ended = await run(f'"{sys.executable}" -c "{looks}"', Records().spawned)
    assert ended.output.head == b"-1\n"


async def test_a_flood_is_stopped_and_mostly_forgotten() -> None:
    """A child that writes without end is killed, and its output never piles up."""
    records = Records()
    ended = await run("yes", records.spawned)
    assert (ended.ending, ended.status, ended.is_gone) == ("flooded", -signal.SIGKILL, True)
    assert (ended.output.head, len(ended.output.tail)) == (b"y\ny\ny\ny\n", 4)
    assert await is_gone(records)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["trap '' TERM INT HUP; sleep 600", "sleep 600 & sleep 601"])
async def test_a_child_that_hangs_is_killed_with_all_of_its_group(command: str) -> None:
    """Neither an ignored signal nor a child of its own saves a program from its time-out."""
    records = Records()
    ended = await run(command, records.spawned, timeout_s=0.2)
    assert (ended.ending, ended.status, ended.is_gone) == ("timed_out", -signal.SIGKILL, True)
    assert await is_gone(records)


async def test_what_it_leaves_in_the_background_ends_with_it() -> None:
    """A program that ends leaves nothing behind, and nobody waits for what it left."""
    records = Records()
    ended = await run("sleep 600 & echo started", records.spawned, caps=OutputCaps())
    assert (ended.ending, ended.output.head, ended.is_gone) == ("exited", b"started\n", True)
    assert await is_gone(records)


async def test_a_cancelled_run_takes_its_group_with_it(tmp_path: Path) -> None:
    """Whoever stops waiting for a program stops the program."""
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
    """Start a group that nobody looks after, as a killed daemon leaves it."""
    with subprocess.Popen(["/bin/sh", "-c", command], start_new_session=True) as child:
        group = processes.identify(child.pid)
        try:
            yield group
        finally:
            assert processes.end_group(group.pgid)


def test_a_group_that_a_crash_left_is_ended_at_the_next_start() -> None:
    """What an earlier life of the daemon started is found by its record and killed (P3)."""
    with left_behind("sleep 600 & sleep 601") as left:
        assert processes.reap(left) == "killed"
    assert processes.reap(left) == "gone"


def test_a_sandbox_that_outlived_its_first_process_is_ended(tmp_path: Path) -> None:
    """It was so young that the death of its parent told it nothing (P3)."""
    sandbox, pipe = tmp_path / "bwrap", tmp_path / "pipe"
    shutil.copy("/bin/cat", sandbox)
    os.mkfifo(pipe)
    command = f"{sandbox} {pipe} & read line"
    with subprocess.Popen(
        ["/bin/sh", "-c", command], start_new_session=True, stdin=subprocess.PIPE
    ) as first:
        left = processes.identify(first.pid)
        with pipe.open("wb"):  # it runs
            first.kill()
            first.wait()
            older = replace(left, start_ticks=left.start_ticks + 1_000_000)
            assert processes.reap(older) == "gone"
            assert processes.reap(left) == "killed"
    assert processes.living(left.pgid) == ()


def test_a_reused_number_is_never_mistaken_for_ours() -> None:
    """A process that has our number but not our birth, or is of another boot, is left alone."""
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
def test_a_killed_daemon_leaves_a_record_that_ends_its_child(
    tmp_path: Path, when: str, ran: bool
) -> None:
    """Killed before the gate opened nothing ran at all; killed later the record finds the child."""
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(tmp_path), when],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as daemon:
        left = decode(Spawned, daemon.stdout.readline().encode() if daemon.stdout else b"")
        up = (tmp_path / "pipe").read_text(encoding="utf-8") if ran else ""
        daemon.kill()
        daemon.wait()
    ended = processes.reap(left)
    assert (up, (tmp_path / "ran").exists(), ended == "alive") == ("up\n" * ran, ran, False)
    assert processes.living(left.pgid) == ()
