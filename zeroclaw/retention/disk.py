"""Warns operators when the disk that holds the data is nearly full, before messages are lost."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from zeroclaw.clock import Clock
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.value import Struct

SCARCE_BYTES = 200_000_000
"""With less free space than this, operators are warned."""
AMPLE_BYTES = 300_000_000
"""With more free space than this, the next shortage is reported again."""
CHECK_S = 600.0
_MB = 1_000_000


def free_bytes(directory: Path) -> int | None:
    """Return the bytes that this user can still write to a directory's disk; None if unknown.

    Blocks.
    """
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return None


class DiskWatch(Struct, eq=False):
    """Checks the disk periodically; the daemon has one.

    Attributes:
        directory: A directory on the disk.
        clock: For the time between two checks.
        tell_operators: Sends a sentence to their chats.
    """

    directory: Path
    clock: Clock
    tell_operators: Callable[[Localized], Awaitable[None]]
    _is_reported: bool = False

    async def keep(self) -> None:
        """Check until cancelled; the first time when channels have had time to come up."""
        while True:
            await self.clock.sleep(CHECK_S)
            await self.check()

    async def check(self) -> None:
        """Warn operators once, each time the disk becomes nearly full."""
        free = await asyncio.to_thread(free_bytes, self.directory)
        if free is None:
            return
        if free < SCARCE_BYTES and not self._is_reported:
            self._is_reported = True
            message = catalogue.DISK_NEARLY_FULL.about(megabytes=free // _MB)
            await self.tell_operators(message)
        elif free > AMPLE_BYTES:
            self._is_reported = False
