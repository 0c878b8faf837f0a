"""The real daemon as a real process, which a test may kill and start again."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

PROGRAM = str(Path(sys.executable).with_name("zeroclaw"))
READY = b"zeroclaw is ready"
# Much longer than anything takes here, for machines that are ten times as slow and have much else
# to do; less than a test's own time limit.
PATIENCE_S = 120.0
# Of a log that is shown when a journey fails.
SHOWN_CHARS = 6_000


class Running(Protocol):
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
        """Yield what it prints on standard output, to the end."""
        ...

    async def wait(self) -> int:
        """Wait for its end, after its lines; return its exit code, negative for a signal."""
        ...


class Launch(Protocol):
    """A way to start a process."""

    async def __call__(
        self, command: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path
    ) -> Running:
        """Start it; standard error is appended to `log`."""
        ...


class Executed:
    """A program that was executed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid
        self.kill = process.kill
        self.terminate = process.terminate
        self.wait = process.wait

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield what it prints."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            yield line


async def executed(
    command: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path
) -> Running:
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
    return Executed(process)


def say_ready(_facts: object) -> None:
    """Say what the product says once it is up, for composition roots of the tests' own."""
    sys.stdout.write(f"{READY.decode()}\n")
    sys.stdout.flush()


class DaemonProcess:
    """`zeroclaw run` with one configuration and one data directory.

    Attributes:
        exit_code: Of the newest process once it has ended, negative for a signal.
        said: The lines of standard output of all processes, in order.
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
        launch: Launch = executed,
    ) -> None:
        """Describe the process.

        Args:
            group: Owns what reads its output.
            config: The configuration's file.
            log: Where standard error goes, appended.
            environment: Beside the test's own.
            changed: Called when it says a line, and when it ends.
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
        self._process: Running | None = None
        self._ended = asyncio.Event()
        self._is_ready = asyncio.Event()
        self._is_asked_to_end = False
        self.exit_code: int | None = None
        self.said: list[str] = []

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
        """All that went to standard error."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    async def start(self) -> None:
        """Start it; does not wait until it is ready."""
        self._ended, self._is_ready = asyncio.Event(), asyncio.Event()
        self._is_asked_to_end = False
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
        self._is_asked_to_end = True
        if self._process is not None and self.exit_code is None:
            self._process.kill()
            await self._ended.wait()

    def ask_to_end(self) -> None:
        """Ask it to end, as an init system does."""
        self._is_asked_to_end = True
        assert self._process is not None
        if self.exit_code is None:
            self._process.terminate()

    async def terminate(self) -> int:
        """Ask it to end once it can be asked, and return its exit code.

        On a slow machine it may stand before its first line, and know no signal yet.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self._is_ready.wait()
        self.ask_to_end()
        return await self.ended()

    async def ended(self) -> int:
        """Wait for its end and return its exit code."""
        self._is_asked_to_end = True
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._ended.wait()
        except TimeoutError:
            message = f"the daemon did not end within {PATIENCE_S:g} s\n{self.account()}"
            raise AssertionError(message) from None
        assert self.exit_code is not None
        return self.exit_code

    async def restart(self) -> None:
        """Kill it with -9 and start it again."""
        await self.kill()
        await self.start()

    def check(self) -> None:
        """Fail when it ended although nobody asked it to."""
        if self.exit_code is not None and not self._is_asked_to_end:
            raise AssertionError(f"the daemon ended by itself with {self.exit_code}")

    def account(self) -> str:
        """Return what it said, for the message of a failure."""
        lines = "\n".join(self.said[-40:])
        return f"daemon said:\n{lines}\nand on stderr:\n{self.stderr[-SHOWN_CHARS:]}"

    async def _watch(self, process: Running) -> None:
        async for line in process.lines():
            self.said.append(line.decode("utf-8", "replace").rstrip("\n"))
            if line.startswith(READY):
                self._is_ready.set()
            self._changed()
        self.exit_code = await process.wait()
        self._is_ready.set()  # nobody need wait for that any more
        self._ended.set()
        self._changed()
