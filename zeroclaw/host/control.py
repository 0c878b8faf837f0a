"""The control socket: how commands on this machine reach the running daemon.

A unix socket in the data directory, 0600, for the daemon's own uid only (checked again on each
connection, with the kernel's credentials). A connection carries JSON objects, one per line, at most
1 MiB each. The first one is the request: `{"call": name, …}` gets one line back, and `{"open":
name}` hands the connection to the service of that name.
"""

import asyncio
import json
import os
import pwd
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, closing
from pathlib import Path

from msgspec import to_builtins
from msgspec.json import encode

from zeroclaw.channel import Log
from zeroclaw.errors import ConfigError, NeedsOperator, Refused, ZeroclawError
from zeroclaw.foreign import Raised, call
from zeroclaw.host.answers import DaemonAnswer
from zeroclaw.host.connections import accept_each, close_stream
from zeroclaw.host.places import holder_of
from zeroclaw.json_fields import is_object
from zeroclaw.mount import LineStream

FILE = "control.sock"
LONGEST_LINE = 1024 * 1024
LONGEST_ANSWER = 64 * LONGEST_LINE
"""The daemon is trusted with more than its clients: it may answer with thousands of faults."""
MAX_CONNECTIONS = 64
ANSWER_S = 60.0
"""Seconds that a command waits; only a reload and a check of very many receipts may take longer."""
_CREDENTIALS = struct.Struct("iII")
"""`struct ucred`: pid, uid, gid (unix(7), SO_PEERCRED)."""
_LONGEST_PATH = 107
"""Longest path of a unix socket in bytes (`sockaddr_un`, unix(7))."""

Call = Callable[[Mapping[str, object]], Awaitable[DaemonAnswer | Mapping[str, object]]]
Serve = Callable[[LineStream], Awaitable[None]]


class DaemonUnreachable(NeedsOperator):
    """Raised when the daemon can't be reached: none runs or listens, or it serves another user."""

    exit_code = 3


class NotRunning(DaemonUnreachable):
    """Raised when no daemon runs."""


class Lines:
    """One connection; a JSON object per line."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        max_bytes: int = LONGEST_ANSWER,
    ) -> None:
        """Wrap an open connection whose peer reads lines of up to `max_bytes`."""
        self._reader = reader
        self._writer = writer
        self._max_bytes = max_bytes

    async def receive(self) -> Mapping[str, object] | None:
        """Return the next object; None at the end, or if the line is not a JSON object."""
        try:
            line = await self._reader.readline()
            value: object = json.loads(line) if line.endswith(b"\n") else None
        except (ValueError, RecursionError, ConnectionError):
            return None
        return value if is_object(value) else None

    async def send(self, line: DaemonAnswer | Mapping[str, object]) -> None:
        """Write one object.

        Raises:
            ConnectionError: The peer is gone.
            Refused: The line is longer than the peer reads.
        """
        self.write(line)
        await self._writer.drain()

    def write(self, line: DaemonAnswer | Mapping[str, object]) -> None:
        """Write one object without waiting for room; it is dropped if the peer is gone.

        Raises:
            Refused: The line is longer than the peer reads, which would end the connection.
        """
        data = encoded(line)
        if len(data) > self._max_bytes:
            limit = f"{self._max_bytes:,}; send less"
            message = f"{len(data):,} bytes are more than the daemon reads at once: {limit}"
            raise Refused(message)
        self._writer.write(data)

    async def aclose(self) -> None:
        """Close the connection; see `close_stream`."""
        await close_stream(self._writer)


def encoded(line: DaemonAnswer | Mapping[str, object]) -> bytes:
    """Return an object as a line; a year of usage of 200 people takes 60 ms."""
    try:
        return encode(line) + b"\n"
    except UnicodeEncodeError:  # lone surrogates, which JSON allows
        return json.dumps(to_builtins(line)).encode() + b"\n"


class Control:
    """The daemon's side of the socket."""

    def __init__(self, directory: Path, *, log: Log) -> None:
        """Serve in this data directory, which only the operator can access (0700)."""
        self.path = directory / FILE
        self._log = log
        self._calls: dict[str, Call] = {}
        self._streams: dict[str, Serve] = {}
        self._free = asyncio.Semaphore(MAX_CONNECTIONS)

    def call(self, name: str, answer: Call) -> None:
        """Answer `{"call": name, …}` with one object."""
        self._calls[name] = answer

    def stream(self, name: str, serve: Serve) -> None:
        """Hand connections that open with `name` to `serve` until it returns."""
        self._streams[name] = serve

    async def serve(self, ready: Callable[[], None]) -> None:
        """Listen until cancelled, which aborts all connections; call once.

        Raises:
            ConfigError: The data directory's path is too long for a socket.
        """
        if len(os.fsencode(self.path)) > _LONGEST_PATH:
            fault = f"data_dir: `{self.path}` is too long for a socket; choose a shorter path"
            raise ConfigError((fault,))
        bound = await asyncio.to_thread(_bound, self.path)
        with closing(bound):
            ready()
            await accept_each(bound, self._connection, log=self._log)

    async def _connection(self, accepted: socket.socket) -> None:
        if self._free.locked() or _peer_of(accepted) != os.getuid():
            return
        async with self._free:
            reader, writer = await asyncio.open_unix_connection(sock=accepted, limit=LONGEST_LINE)
            async with aclosing(Lines(reader, writer)) as lines:
                result = await call(lambda: self._talk(lines))
        if isinstance(result, Raised) and not isinstance(result.error, ConnectionError):
            # A bug in a service ends this connection, never the daemon.
            self._log("connection_failed", reason=result.line, level="error")

    async def _talk(self, lines: Lines) -> None:
        first = await lines.receive()
        if first is None:
            return
        name, service = first.get("call"), first.get("open")
        if isinstance(name, str) and (answer := self._calls.get(name)):
            try:
                reply = await answer(first)
            except ZeroclawError as error:
                reply = {"error": str(error)}
            await lines.send(reply)
        elif isinstance(service, str) and (serve := self._streams.get(service)):
            await serve(lines)
        else:
            await lines.send({"error": "the running daemon does not know this; is it older?"})


def _bound(path: Path) -> socket.socket:
    """Return a listening socket to which no other user could ever connect; blocks."""
    # This process has locked the data directory, so an existing socket is stale.
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(os.fspath(path))
    path.chmod(0o600)  # no umask, which would apply to files of all other threads as well
    bound.listen()
    bound.settimeout(0)
    return bound


def _peer_of(peer: socket.socket) -> int:
    """Return the uid of the other side, according to the kernel."""
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _pid, uid, _gid = _CREDENTIALS.unpack(credentials)
    return uid


async def connect(directory: Path) -> Lines:
    """Connect to the daemon of this data directory.

    Raises:
        NotRunning: No daemon runs there.
        DaemonUnreachable: It does not listen, or serves another user, or this one can't look.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(directory / FILE, limit=LONGEST_ANSWER)
    except PermissionError as error:
        message = f"`{directory}` is another user's; try again as that user"
        raise DaemonUnreachable(message) from error
    except OSError as error:
        if holder := await asyncio.to_thread(holder_of, directory):
            message = (
                f"the zeroclaw (pid {holder}) in `{directory}` does not listen: it starts or stops, "
                f"or its `{FILE}` was removed; try again, then restart it"
            )
            raise DaemonUnreachable(message) from error
        message = f"no zeroclaw runs in `{directory}`; start one with `zeroclaw run`"
        raise NotRunning(message) from error
    lines = Lines(reader, writer, LONGEST_LINE)
    if (owner := _peer_of(writer.get_extra_info("socket"))) != os.getuid():
        await lines.aclose()
        name = _name_of(owner)
        message = f"the zeroclaw in `{directory}` runs as `{name}`; try again as that user"
        raise DaemonUnreachable(message)
    return lines


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


async def request(directory: Path, line: Mapping[str, object]) -> Mapping[str, object]:
    """Send one request to the running daemon and return its answer.

    Raises:
        NotRunning: No daemon runs.
        DaemonUnreachable: It serves another user, or it went away before it answered.
        Refused: The request is longer than the daemon reads.
    """
    try:
        async with aclosing(await connect(directory)) as lines, asyncio.timeout(ANSWER_S):
            await lines.send(line)
            reply = await lines.receive()
    except TimeoutError as error:
        message = (
            f"the zeroclaw in `{directory}` does not answer within {ANSWER_S:g} s, but may still be at "
            "work; restart it if `zeroclaw doctor` gets no answer either"
        )
        raise DaemonUnreachable(message) from error
    except ConnectionError:
        reply = None
    if reply is None:
        message = f"the zeroclaw in `{directory}` went away before it answered"
        raise DaemonUnreachable(message)
    return reply
