"""The daemon as a process under measurement: its life, its processor time and its memory."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from tests.journeys.configuration import WITHOUT_DEFAULT_CHANNELS, merged, toml
from zeroclaw.value import Value

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_END_S = 20.0
_SHOWN_CHARS = 2_000
PROGRAM = str(Path(sys.executable).with_name("zeroclaw"))


class Written(Value):
    """What the store had written at an instant."""

    commits: int
    groups: int
    commit_s: float

    def since(self, before: "Written") -> "Written":
        """Return what was written after an earlier instant."""
        return Written(
            commits=self.commits - before.commits,
            groups=self.groups - before.groups,
            commit_s=self.commit_s - before.commit_s,
        )


class Daemon:
    """A running daemon, or what stands in its place.

    Attributes:
        began: When its process was started, in seconds of the machine's monotonic clock.
        ready_s: Seconds from starting the process to its line that it is ready.
        ready_cpu_s: Processor seconds that it had used by then.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Take a process that was just started."""
        self.process = process
        self.began = 0.0
        self.ready_s = 0.0
        self.ready_cpu_s = 0.0

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def cpu_s(self) -> float:
        """Return the processor seconds of all its threads, in steps of 10 ms."""
        return process_cpu_s(self.process.pid)

    def pss_mib(self) -> float:
        """Return its proportional share of memory."""
        return pss_mib(self.process.pid)

    def peak_rss_mib(self) -> float:
        """Return the most that it ever had resident."""
        return peak_rss_mib(self.process.pid)

    async def written(self) -> Written:
        """Return what its store has written until now."""
        assert self.process.stdout is not None
        self.process.send_signal(signal.SIGUSR1)
        sums = cast("dict[str, float]", json.loads(await self.process.stdout.readline()))
        return Written(
            commits=int(sums["commits"]), groups=int(sums["groups"]), commit_s=sums["commit_s"]
        )


def process_cpu_s(pid: int) -> float:
    """Return the processor seconds of a process, in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def pss_mib(pid: int) -> float:
    """Return a process's proportional share of memory."""
    return _memory_mib(pid, "smaps_rollup", "Pss:")


def peak_rss_mib(pid: int) -> float:
    """Return the most that a process ever had resident."""
    return _memory_mib(pid, "status", "VmHWM:")


def _memory_mib(pid: int, file: str, name: str) -> float:
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise LookupError(f"`{file}` has no `{name}`")


@asynccontextmanager
async def running(
    directory: Path,
    config: dict[str, object],
    *,
    program: bool = False,
    secrets: Mapping[str, str] | None = None,
) -> AsyncGenerator[Daemon]:
    """Run a daemon with a directory of its own, and end it.

    Args:
        directory: Made if missing; what an earlier daemon left there is found.
        config: Without the places.
        program: Start `zeroclaw run`, which tells nothing about its store.
        secrets: Of its environment.
    """
    path = written_config(directory, config)
    measured = [sys.executable, "-m", "tests.bench.root", str(path)]
    command = [PROGRAM, "run", "--config", str(path)] if program else measured
    async with started(command, directory, secrets=secrets) as daemon:
        yield daemon


@asynccontextmanager
async def started(
    command: Sequence[str], directory: Path, *, secrets: Mapping[str, str] | None = None
) -> AsyncGenerator[Daemon]:
    """Run a command that says when it is ready, in a line of its output, and end it."""
    environment = {
        "HOME": str(directory),
        "PATH": os.environ.get("PATH", ""),
        "LANG": "C.UTF-8",
        **(secrets or {}),
    }
    with (directory / "stderr.log").open("ab") as log:
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=environment
        )
    daemon = Daemon(process)
    daemon.began = began
    try:
        assert process.stdout is not None
        if b"ready" not in await process.stdout.readline():
            raise RuntimeError(f"it did not start; see {directory / 'stderr.log'}")
        daemon.ready_s = time.monotonic() - began
        daemon.ready_cpu_s = daemon.cpu_s()
        yield daemon
    except TimeoutError:
        print(f"the last words:\n{(directory / 'stderr.log').read_text()[-_SHOWN_CHARS:]}")
        raise
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(_END_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def written_config(directory: Path, config: dict[str, object]) -> Path:
    """Write a configuration that keeps everything in a directory; returns its file."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "zeroclaw.toml"
    places = {"data_dir": str(directory / "data"), "workspace_dir": str(directory / "workspaces")}
    path.write_text(toml(merged(WITHOUT_DEFAULT_CHANNELS, {**places, **config})))
    return path
