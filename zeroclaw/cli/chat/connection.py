"""Keeps a connection to the daemon's chat: comes back after a restart, and loses no line.

What is written has an id and is kept until the daemon says that it is stored; after a lost
connection it is written again, and the daemon counts it once. The lines themselves are described
where the daemon makes them, in `channels/terminal/decode.py` and `render.py`.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from zeroclaw.backoff import BackOff
from zeroclaw.clock import Clock
from zeroclaw.errors import NeedsOperator
from zeroclaw.host.control import Lines, Unreachable, connect
from zeroclaw.value import Struct, field

STREAM = "chat"
AGAIN = BackOff(first_s=0.2, longest_s=2.0)
AGAIN_S = 1.0
"""Until an event is written again that the daemon could not store."""

Line = Mapping[str, object]


class NoTerminal(NeedsOperator):
    """Raised when the daemon runs, but without a terminal channel."""


class Link(Struct):
    """One client of the daemon's chat.

    Attributes:
        place: The data directory.
        clock: For waits between two tries.
        token: Makes an id that no message has had.
        pending: Lines that are not known to be stored, by id, oldest first.
    """

    place: Path
    clock: Clock
    token: Callable[[], str]
    pending: dict[str, Line] = field(default_factory=dict[str, Line])
    _lines: Lines | None = None  # while they are open
    _has_stood: bool = False

    async def run(self, heard: Callable[[Line], None], lost: Callable[[], None]) -> None:
        """Stay connected until cancelled.

        Args:
            heard: Told every line.
            lost: Told when a connection ended that stood; it is tried again.

        Raises:
            Unreachable: There was no daemon at the first try.
            NoTerminal: There is one, without a terminal channel.
        """
        lines = await connect(self.place)
        tries = 0
        while True:
            try:
                if await self._talk(lines, heard):
                    tries = 0
                    lost()
            finally:
                await lines.aclose()
            lines = None
            while lines is None:
                tries += 1
                await self.clock.sleep(AGAIN.wait_s(tries))
                try:
                    lines = await connect(self.place)
                except Unreachable:
                    lines = None

    def say(self, text: str) -> str:
        """Write a message or a command; returns its id."""
        return self._write({"type": "say", "text": text})

    def press(self, approval: str, choice: str, card: str) -> str:
        """Answer an approval; returns the press's id."""
        pressed = {"approval": approval, "choice": choice, "card": card}
        return self._write({"type": "press", **pressed})

    def _write(self, line: Line) -> str:
        key = self.token()
        self.pending[key] = {**line, "id": key}
        self._send(self.pending[key])
        return key

    def _send(self, line: Line) -> None:
        # What finds no connection is still pending, and written with the next one.
        if self._lines is not None:
            self._lines.write(line)

    async def _talk(self, lines: Lines, heard: Callable[[Line], None]) -> bool:
        """Talk until the connection ends; returns whether it ever stood."""
        self._lines = lines
        for line in ({"open": STREAM}, {"type": "hello", "after": ""}, *self.pending.values()):
            self._send(line)
        has_stood = False
        async with asyncio.TaskGroup() as group:
            later: set[asyncio.Task[None]] = set()
            while (line := await lines.receive()) is not None:
                if "type" not in line and self._has_stood:
                    break  # the daemon is coming up, and its socket answers before the channel
                if "type" not in line:
                    message = (
                        "the running daemon has no channel `terminal`; set "
                        "`channels.terminal.enabled` to true, and start it again"
                    )
                    raise NoTerminal(message)
                has_stood = has_stood or line["type"] == "live"
                self._has_stood = self._has_stood or has_stood
                if late := self._settled(line):
                    later.add(group.create_task(self._send_later(late)))
                heard(line)
            self._lines = None
            for task in later:
                task.cancel()
        return has_stood

    def _settled(self, line: Line) -> Line | None:
        """Forget what the daemon has; returns what is to be written again."""
        key = str(line.get("id", ""))
        if line["type"] == "received" or (line["type"] == "refused" and not line.get("again")):
            self.pending.pop(key, None)
        elif line["type"] == "refused":
            return self.pending.get(key)
        return None

    async def _send_later(self, line: Line) -> None:
        await self.clock.sleep(AGAIN_S)
        self._send(line)
