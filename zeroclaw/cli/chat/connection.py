"""The connection to the daemon's chat: reconnects after a restart, and loses no line.

Each line to the daemon has an id and stays pending until the daemon confirms that it is stored;
after a lost connection it is sent again, and the daemon counts it once. The format of the lines is
described in `channels/terminal/decode.py` and `render.py`.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from zeroclaw.backoff import BackOff
from zeroclaw.clock import Clock
from zeroclaw.errors import NeedsOperator
from zeroclaw.host.control import DaemonUnreachable, Lines, connect
from zeroclaw.value import Struct, field

STREAM = "chat"
BACK_OFF = BackOff(first_s=0.2, longest_s=2.0)
AGAIN_S = 1.0
"""Seconds before a line that the daemon could not store is sent again."""

Line = Mapping[str, object]


class Link(Struct):
    """One client of the daemon's chat.

    Attributes:
        place: The data directory.
        clock: For the waits between attempts.
        token: Makes a new id.
        pending: Lines that are not confirmed as stored, by id, oldest first.
    """

    place: Path
    clock: Clock
    token: Callable[[], str]
    pending: dict[str, Line] = field(default_factory=dict[str, Line])
    _lines: Lines | None = None  # set while connected
    _was_live: bool = False

    async def run(self, on_line: Callable[[Line], None], on_lost: Callable[[], None]) -> None:
        """Stay connected until cancelled.

        Args:
            on_line: Called with every line.
            on_lost: Called when an established connection has ended; it is retried.

        Raises:
            DaemonUnreachable: There was no daemon at the first attempt.
            NeedsOperator: The daemon has no terminal channel.
        """
        lines = await connect(self.place)
        tries = 0
        while True:
            try:
                if await self._talk(lines, on_line):
                    tries = 0
                    on_lost()
            finally:
                await lines.aclose()
            lines = None
            while lines is None:
                tries += 1
                await self.clock.sleep(BACK_OFF.wait_s(tries))
                with suppress(DaemonUnreachable):
                    lines = await connect(self.place)

    def say(self, text: str) -> str:
        """Send a message or a command; return its id."""
        return self._write({"type": "say", "text": text})

    def press(self, approval: str, choice: str, card: str) -> str:
        """Answer an approval; return the press's id."""
        line = {"type": "press", "approval": approval, "choice": choice, "card": card}
        return self._write(line)

    def _write(self, line: Line) -> str:
        key = self.token()
        self.pending[key] = {**line, "id": key}
        self._send(self.pending[key])
        return key

    def _send(self, line: Line) -> None:
        # Without a connection the line stays pending, and is sent with the next one.
        if self._lines is not None:
            self._lines.write(line)

    async def _talk(self, lines: Lines, on_line: Callable[[Line], None]) -> bool:
        """Talk until the connection ends; return whether it was ever live."""
        self._lines = lines
        for line in ({"open": STREAM}, {"type": "hello", "after": ""}, *self.pending.values()):
            self._send(line)
        is_live = False
        async with asyncio.TaskGroup() as group:
            resends: set[asyncio.Task[None]] = set()
            while (line := await lines.receive()) is not None:
                if "type" not in line and self._was_live:
                    break  # the daemon is starting, and its socket answers before the channel does
                if "type" not in line:
                    message = (
                        "the running daemon has no channel `terminal`; set "
                        "`channels.terminal.enabled` to true, and start it again"
                    )
                    raise NeedsOperator(message)
                is_live = is_live or line["type"] == "live"
                self._was_live = self._was_live or is_live
                if refused := self._settle(line):
                    resends.add(group.create_task(self._send_later(refused)))
                on_line(line)
            self._lines = None
            for task in resends:
                task.cancel()
        return is_live

    def _settle(self, line: Line) -> Line | None:
        """Drop a line that the daemon has confirmed; return a line to send again."""
        key = str(line.get("id", ""))
        if line["type"] == "received" or (line["type"] == "refused" and not line.get("again")):
            self.pending.pop(key, None)
        elif line["type"] == "refused":
            return self.pending.get(key)
        return None

    async def _send_later(self, line: Line) -> None:
        await self.clock.sleep(AGAIN_S)
        self._send(line)
