"""Starts daemons as forks of a mother (`tests/faults/mother.py`), one mother for all tests.

Executing the program takes half a second of processor time before its first line of its own, and
tests start hundreds. What is executed is looked at where that is the point: the first start, the
command line, the service.
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

from tests.faults.mother import ENDED, Wish
from tests.journeys.daemon_process import Running
from zeroclaw.codec import encode

COMMAND = ("tests.faults.killed_daemon",)
PRODUCT = ("zeroclaw.cli",)
"""The product's own program; its first arguments follow."""
_PATIENCE_S = 120.0


class Forked:
    """One daemon; a `Running`."""

    def __init__(
        self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.pid = pid
        self._reader = reader
        self._writer = writer
        self._code = 0

    def send_signal(self, number: int) -> None:
        """Send a signal; one that has just ended needs none."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield what it prints, until it has ended."""
        while line := await self._reader.readline():
            if line.startswith(ENDED):
                self._code = int(line.removeprefix(ENDED))
                break
            yield line
        self._writer.close()

    async def wait(self) -> int:
        """Return its exit code; `lines` must have ended."""
        with suppress(ConnectionError):
            await self._writer.wait_closed()
        return self._code


class Mother:
    """One mother, and the line to her; a `Launch` whose command names a module and its arguments."""

    def __init__(self, *before: str) -> None:
        """Start her.

        Args:
            before: The command that becomes her, where she is to live elsewhere.
        """
        self._ours, hers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with hers:
            command = (*before, sys.executable, "-m", "tests.faults.mother", str(hers.fileno()))
            self._process = subprocess.Popen(
                command, pass_fds=(hers.fileno(),), stdin=subprocess.DEVNULL
            )

    @property
    def pid(self) -> int:
        """Her process id."""
        return self._process.pid

    def end(self) -> None:
        """Let her end, and wait for it; her daemons have ended."""
        self._ours.close()
        self._process.wait(_PATIENCE_S)

    async def __call__(
        self, command: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path
    ) -> Running:
        """Start a daemon."""
        module, *arguments = command
        wish = Wish(
            module=module,
            arguments=tuple(arguments),
            environment=dict(environment),
            directory=str(directory),
            log=str(log),
        )
        ours, its = socket.socketpair()
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        with its:
            socket.send_fds(self._ours, [encode(wish)], [its.fileno()])
        pid = await reader.readline()
        assert pid, "the mother has died; what she said is on standard error"
        return Forked(int(pid), reader, writer)


@cache
def _mother() -> Mother:
    """Start the mother of this process; she ends with it."""
    mother = Mother()
    atexit.register(mother.end)
    return mother


async def forked(
    command: Sequence[str], *, environment: Mapping[str, str], directory: Path, log: Path
) -> Running:
    """Start a daemon; a `Launch` whose command names a module and its arguments."""
    return await _mother()(command, environment=environment, directory=directory, log=log)
