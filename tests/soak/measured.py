"""What the daemon takes: memory, and its data on disk."""

from pathlib import Path

from tests.bench.process import pss_mib
from zeroclaw.value import Value

MIB = 1024 * 1024
MORE_MEMORY = 1.15
"""Memory may grow to so much of what it was once warm, and by `SLACK_MIB`."""
SLACK_MIB = 4.0
MORE_DISK = 1.5
"""A message may take so much of what one took before, and by `SLACK_BYTES`."""
SLACK_BYTES = 4096.0


class Measured(Value):
    """One look.

    Attributes:
        messages: How many had been answered by then.
    """

    pss_mib: float
    disk_mib: float
    messages: int

    def bytes_each(self, before: "Measured") -> float:
        """Return what each message since then takes on disk."""
        written = max(self.messages - before.messages, 1)
        return (self.disk_mib - before.disk_mib) * MIB / written


def measure(pid: int, data: Path, messages: int) -> Measured:
    """Look at a process and its data directory."""
    sizes = [one.stat().st_size for one in data.rglob("*") if one.is_file()]
    return Measured(pss_mib=pss_mib(pid), disk_mib=sum(sizes) / MIB, messages=messages)


def is_memory_flat(start: Measured, end: Measured) -> bool:
    """Whether one process holds no more at its end than when it was warm."""
    return end.pss_mib <= start.pss_mib * MORE_MEMORY + SLACK_MIB


def is_disk_flat(begin: Measured, middle: Measured, end: Measured) -> bool:
    """Whether a message takes no more in the second half than in the first."""
    return end.bytes_each(middle) <= middle.bytes_each(begin) * MORE_DISK + SLACK_BYTES
