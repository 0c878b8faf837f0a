"""Which tests prove which promise on which channel: `python -m tests.spec.promises`, or `make promises`.

Beside the promises stand the behaviours that each channel has to show for itself. A test counts for a channel that its parameters or its path name, and for the promises that its
docstring names. What every channel shares, such as the runtime, is tested once, and stands nowhere
here. `test_promises` holds that no cell is empty but those that are excused.
"""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.spec.behaviours import TESTS, find_tests

CHANNELS = ("telegram", "discord", "slack", "email", "web", "terminal")
PROMISES = (
    *(f"P{number}" for number in range(1, 11)),
    *(f"S2-{number}" for number in ("01", "02", "03", "06", "10", "19", "20")),
)
EXCUSED = {
    (promise, "terminal"): "no stranger exists: its owner alone opens the socket"
    for promise in ("P4", "S2-03")
}
"""Cells without a test, and why."""
PLACES = ("contract", "journeys", "faults", "soak", "unit/channels")
_ID = re.compile(r"\b(?:P(?:10|[1-9])|S2-\d\d)\b")
_WORDS = re.compile(r"[^a-z]+")
_USUAL_CHARS = 150


def collected() -> Iterator[str]:
    """Yield each test that would be run, as pytest names it."""
    places = [str(Path("tests") / place) for place in PLACES]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *places]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=True)
    yield from (line for line in done.stdout.splitlines() if "::" in line)


@cache
def docstrings(path: str) -> dict[str, str]:
    """Return the docstring of each test of a file."""
    return dict(find_tests((TESTS.parent / path).read_text(encoding="utf-8")))


def proofs() -> dict[tuple[str, str], list[str]]:
    """Return the tests of each promise and channel, those with the shortest names first."""
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for test in collected():
        path, _, rest = test.partition("::")
        name, _, parameters = rest.partition("[")
        words = {*_WORDS.split(path), *_WORDS.split(parameters)}
        for promise in set(_ID.findall(docstrings(path).get(name, ""))):
            for channel in words.intersection(CHANNELS):
                found[promise, channel].append(test)
    return {
        cell: sorted(tests, key=lambda test: (len(test), test)) for cell, tests in found.items()
    }


def main() -> None:
    """Print how many tests each cell has, then one of each by its name."""
    proved = proofs()
    lines = [f"{'':6}" + "".join(f"{channel:>10}" for channel in CHANNELS)]
    for promise in PROMISES:
        counts = (len(proved.get((promise, channel), ())) for channel in CHANNELS)
        lines.append(f"{promise:6}" + "".join(f"{count:>10}" for count in counts))
    for promise in PROMISES:
        lines.append(f"\n{promise}")
        shown = ((channel, proved.get((promise, channel))) for channel in CHANNELS)
        lines += [f"    {channel:9} {tests[0][:_USUAL_CHARS]}" for channel, tests in shown if tests]
        lines += [
            f"    {channel:9} {reason}"
            for (of, channel), reason in EXCUSED.items()
            if of == promise
        ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
