"""Tells operators when the disk that holds the data is nearly full, before a message is lost to it."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from zeroclaw.clock import Clock
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.value import Struct

SCARCE_BYTES = 200_000_000
"""Below this much free, people are told."""
AMPLE_BYTES = 300_000_000
"""Above it, the next time that it becomes scarce is news again."""
LOOK_S = 600.0
_MB = 1_000_000


def free_bytes(directory: Path) -> int | None:
    """Return what this user may still write beside a directory, None where it can't be told.

    Blocks.
    """
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return None


class DiskWatch(Struct, eq=False):
    """Looks now and then; one for the whole daemon.

    Attributes:
        directory: On the disk that is looked at.
        clock: For the time between two looks.
        tell_operators: Puts a sentence into their chats.
        free: See `free_bytes`.
    """

    directory: Path
    clock: Clock
    tell_operators: Callable[[Localized], Awaitable[None]]
    free: Callable[[Path], int | None] = free_bytes
    _told: bool = False

    async def keep(self) -> None:
        """Look until cancelled; the first time when channels had time to come up."""
        while True:
            await self.clock.sleep(LOOK_S)
            await self.look()

    async def look(self) -> None:
        """Tell once for each time that the disk becomes nearly full."""
        free = await asyncio.to_thread(self.free, self.directory)
        if free is None:
            return
        if free < SCARCE_BYTES and not self._told:
            self._told = True
            says = catalogue.DISK_NEARLY_FULL.about(megabytes=free // _MB)
            await self.tell_operators(says)
        elif free > AMPLE_BYTES:
            self._told = False
