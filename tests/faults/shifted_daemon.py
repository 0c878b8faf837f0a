"""The daemon with a wall clock that a test sets: a composition root with its own clock.

    python -m tests.faults.shifted_daemon run --config FILE

A file beside the configuration holds the offset of its wall clock in seconds. Each reading of the clock
reads the file, so that a test sets the clock at once, while the daemon runs. The monotonic clock stays
the machine's, as on any machine whose clock is set.
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
        """Return the machine's wall time plus the offset of the file."""
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
