"""The daemon on a machine whose wall clock somebody sets: a composition root with a clock of its own.

    python -m tests.faults.shifted_daemon run --config FILE

How far its wall clock is off, in seconds, stands in a file beside the configuration, which is read
whenever somebody looks at the clock; so it is set at once, while the daemon runs. What it waits by
stays the machine's, as with any clock that is set.
"""

import os
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tests.journeys.daemon_process import say_ready
from zeroclaw.cli.configuration import load, start_of
from zeroclaw.daemon import Openers, run
from zeroclaw.host import logs
from zeroclaw.host.clock import SystemClock

FILE_NAME = "clock-is-off-by"
COMMAND = ("tests.faults.shifted_daemon",)


@dataclass(frozen=True, kw_only=True)
class ShiftedClock(SystemClock):
    """The machine's clock, set forward or back."""

    file: Path

    def now(self) -> datetime:
        """Return the wall time that the file makes it."""
        return super().now() + timedelta(seconds=float(self.file.read_text()))


def set_clock(directory: Path, off_by: timedelta) -> None:
    """Set the clock of the daemon whose configuration stands in a directory."""
    new = directory / f"{FILE_NAME}.new"
    new.write_text(str(off_by.total_seconds()))
    new.replace(directory / FILE_NAME)


def main() -> None:
    """Run the daemon; takes `run --config FILE` like the product's own command."""
    config = Path(sys.argv[sys.argv.index("--config") + 1])
    start = start_of(load(config), os.environ)
    stop_logging = logs.set_up(redact=start.checked.redactor.redact, form="lines", level="info")
    clock = ShiftedClock(file=config.parent / FILE_NAME)
    try:
        run(start, on_ready=say_ready, openers=Openers(clock=clock))
    finally:
        stop_logging()


if __name__ == "__main__":
    main()
