"""Starts daemons through a fork server (`tests/faults/fork_server.py`), one server for all tests.

Executing the program takes half a second of processor time before its first own line, and the tests
start hundreds of daemons. Tests of the first start, the command line and the service execute it.
"""

import asyncio
import atexit
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.faults.fork_server import EXIT_CODE, DaemonSpec
from tests.journeys.daemon_process import Process
from zeroclaw.codec import encode

COMMAND = ("tests.faults.killed_daemon",)
PRODUCT = ("zeroclaw.cli",)
"""The module of the product's own command line."""
_PATIENCE_S = 120.0


class ForkedDaemon:
    """One forked daemon; a `Process`."""

    def __init__(
        self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.pid = pid
        self._reader = reader
        self._writer = writer
        self._code = 0

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has just ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines of its standard output, until it has ended."""
        while line := await self._reader.readline():
            said, mark, code = line.partition(EXIT_CODE)  # the last line may have no end
            if said:
                yield said
            if mark:
                self._code = int(code)
                break
        self._writer.close()

    async def wait(self) -> int:
        """Return its exit code; `lines` must have ended."""
        with suppress(ConnectionError):
            await self._writer.wait_closed()
        return self._code


class ForkServer:
    """A running fork server; a `Launch` whose command names a module and its arguments."""

    def __init__(self, *wrapper: str, module: str = "tests.faults.fork_server") -> None:
        """Start the server.

        Args:
            wrapper: A command that executes the one that follows it, such as `unshare`.
            module: The server's module; an earlier release has another.
        """
        self._socket, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            command = (*wrapper, sys.executable, "-m", module, str(far.fileno()))
            self._process = subprocess.Popen(
                command, pass_fds=(far.fileno(),), stdin=subprocess.DEVNULL
            )

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def end(self) -> None:
        """End the server and wait for it; its daemons must have ended."""
        self._socket.close()
        self._process.wait(_PATIENCE_S)

    async def __call__(
        self, command: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path
    ) -> Process:
        """Start a daemon."""
        module, *arguments = command
        spec = DaemonSpec(
            module=module,
            arguments=tuple(arguments),
            environment=dict(environment),
            directory=str(directory),
            log=str(log),
        )
        near, far = socket.socketpair()
        reader, writer = await asyncio.open_unix_connection(sock=near)
        with far:
            socket.send_fds(self._socket, [encode(spec)], [far.fileno()])
        pid = await reader.readline()
        assert pid, "the fork server has died; its last words are on standard error"
        return ForkedDaemon(int(pid), reader, writer)


@cache
def _fork_server() -> ForkServer:
    """Start the fork server of this process; it ends with the process."""
    server = ForkServer()
    atexit.register(server.end)
    return server


async def fork(
    command: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path
) -> Process:
    """Start a daemon; a `Launch` whose command names a module and its arguments."""
    return await _fork_server()(command, environment=environment, directory=directory, log=log)
