"""The real clock; the only file that reads time."""

import asyncio
import time
from datetime import UTC, datetime


class SystemClock:
    """This machine's time as a `Clock`."""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC; it may jump when the machine's time is set."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never go back; on Linux they stop while the machine is suspended."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait; return at once for zero or less."""
        if seconds > 0:
            await asyncio.sleep(seconds)
