"""Runs the real daemon as a real process, which a test may kill and start again."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

PROGRAM = str(Path(sys.executable).with_name("zeroclaw"))
READY = b"zeroclaw is ready"
# Much longer than any step takes, for machines that are ten times slower and busy; shorter than a
# test's own time limit.
PATIENCE_S = 120.0
# Of a log that is shown when a journey fails.
SHOWN_CHARS = 6_000


class Process(Protocol):
    """A process that was started."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def kill(self) -> None:
        """Send SIGKILL."""
        ...

    def terminate(self) -> None:
        """Send SIGTERM."""
        ...

    def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines of standard output, to the end."""
        ...

    async def wait(self) -> int:
        """Wait for its end, after its lines; return its exit code, negative for a signal."""
        ...


class Launch(Protocol):
    """A way to start a process."""

    async def __call__(
        self, command: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path
    ) -> Process:
        """Start it; standard error is appended to `log`."""
        ...


class SpawnedProcess:
    """A program that was executed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid
        self.kill = process.kill
        self.terminate = process.terminate
        self.wait = process.wait

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines of standard output."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            yield line


async def spawn(
    command: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path
) -> Process:
    """Execute a program; a `Launch`."""
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=environment,
            cwd=directory,
        )
    return SpawnedProcess(process)


def say_ready(_facts: object) -> None:
    """Print the product's own ready line, for the composition roots of tests."""
    sys.stdout.write(f"{READY.decode()}\n")
    sys.stdout.flush()


class DaemonProcess:
    """`zeroclaw run` with one configuration and one data directory.

    Attributes:
        exit_code: Of the newest process once it has ended, negative for a signal.
        stdout: The lines of standard output of all its processes, in order.
        environment: Of the process.
    """

    def __init__(
        self,
        *,
        group: asyncio.TaskGroup,
        config: Path,
        log: Path,
        environment: Mapping[str, str],
        changed: Callable[[], None],
        command: tuple[str, ...] = (PROGRAM,),
        launch: Launch = spawn,
    ) -> None:
        """Describe the process.

        Args:
            group: Owns the task that reads its output.
            config: The configuration's file.
            log: Where standard error goes, appended.
            environment: Added to the test's own.
            changed: Called when it prints a line, and when it ends.
            command: What comes before `run`.
            launch: How it is started.
        """
        self._group = group
        self._config = config
        self._log = log
        self.environment = {**os.environ, **environment}
        self._changed = changed
        self._command = command
        self._launch = launch
        self._process: Process | None = None
        self._ended = asyncio.Event()
        self._is_ready = asyncio.Event()
        self._may_end = False
        self.exit_code: int | None = None
        self.stdout: list[str] = []

    def twin(self, log: Path, *, command: tuple[str, ...] = ()) -> "DaemonProcess":
        """Return another process of the same kind, which has not been started."""
        return DaemonProcess(
            group=self._group,
            config=self._config,
            log=log,
            environment=self.environment,
            changed=self._changed,
            command=command or self._command,
            launch=self._launch,
        )

    @property
    def pid(self) -> int:
        """The process id of the newest process."""
        assert self._process is not None, "the daemon was not started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """It was started and has not ended."""
        return self._process is not None and self.exit_code is None

    @property
    def stderr(self) -> str:
        """All of standard error."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    async def start(self) -> None:
        """Start it; does not wait until it is ready."""
        self._ended, self._is_ready = asyncio.Event(), asyncio.Event()
        self._may_end = False
        self.exit_code = None
        self._process = await self._launch(
            (*self._command, "run", "--config", str(self._config)),
            environment=self.environment,
            directory=self._config.parent,
            log=self._log,
        )
        self._group.create_task(self._watch(self._process))

    async def kill(self) -> None:
        """Kill it with -9 and wait for its end; safe when it has ended."""
        self._may_end = True
        if self._process is not None and self.exit_code is None:
            self._process.kill()
            await self._ended.wait()

    def send_sigterm(self) -> None:
        """Send SIGTERM, as an init system does."""
        self._may_end = True
        assert self._process is not None
        if self.exit_code is None:
            self._process.terminate()

    async def terminate(self) -> int:
        """Send SIGTERM once the daemon is ready, and return its exit code.

        On a slow machine it may not have installed its signal handlers yet.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self._is_ready.wait()
        self.send_sigterm()
        return await self.wait()

    async def wait(self) -> int:
        """Wait for its end and return its exit code."""
        self._may_end = True
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._ended.wait()
        except TimeoutError:
            message = f"the daemon did not end within {PATIENCE_S:g} s\n{self.report()}"
            raise AssertionError(message) from None
        assert self.exit_code is not None
        return self.exit_code

    async def restart(self) -> None:
        """Kill it with -9 and start it again."""
        await self.kill()
        await self.start()

    def check(self) -> None:
        """Fail when it ended although the test did not end it."""
        if self.exit_code is not None and not self._may_end:
            raise AssertionError(f"the daemon ended by itself with {self.exit_code}")

    def report(self) -> str:
        """Return its output, for the message of a failure."""
        lines = "\n".join(self.stdout[-40:])
        return f"stdout of the daemon:\n{lines}\nstderr:\n{self.stderr[-SHOWN_CHARS:]}"

    async def _watch(self, process: Process) -> None:
        async for line in process.lines():
            self.stdout.append(line.decode("utf-8", "replace").rstrip("\n"))
            if line.startswith(READY):
                self._is_ready.set()
            self._changed()
        self.exit_code = await process.wait()
        self._is_ready.set()  # it will not become ready any more
        self._ended.set()
        self._changed()
