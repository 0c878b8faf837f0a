"""The daemon's memory, and its data on disk."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.bench.process import pss_mib
from zeroclaw.value import Value

MIB = 1024 * 1024
MORE_MEMORY_MIB = 4.0
"""What a warm process may take on from one half of its looks to the other."""
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
    sizes = [path.stat().st_size for path in data.rglob("*") if path.is_file()]
    return Measured(pss_mib=pss_mib(pid), disk_mib=sum(sizes) / MIB, messages=messages)


def memory_halves(samples: Sequence[Measured]) -> tuple[float, float]:
    """Return the median of the earlier half of looks at memory, and that of the later, in MiB."""
    middle = (len(samples) + 1) // 2
    return (
        median(sample.pss_mib for sample in samples[:middle]),
        median(sample.pss_mib for sample in samples[middle:] or samples),
    )


def is_memory_flat(samples: Sequence[Measured]) -> bool:
    """Whether one process, once it is warm, takes on no more than what comes and goes.

    The looks are evenly apart, so the two halves are equal stretches of the same work. What fills
    up to a bound fills ever more slowly and has done most of it before; a leak takes as much in the
    later half as in the earlier. Medians, because a single look says little: what one long answer
    took for a moment, or the allocator did not give back yet, is in the one and not in the other.
    The slack is the same for any length, so a soak that is twice as long sees a leak half as large:
    with 500 messages among the looks one of 16 KiB each. Below that a test has to count what is
    kept; those of the rooms do.
    """
    earlier, later = memory_halves(samples)
    return later <= earlier + MORE_MEMORY_MIB


def is_disk_flat(begin: Measured, middle: Measured, end: Measured) -> bool:
    """Whether a message takes no more in the second half than in the first."""
    return end.bytes_each(middle) <= middle.bytes_each(begin) * MORE_DISK + SLACK_BYTES
