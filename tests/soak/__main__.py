"""Let people write for minutes while all goes wrong, and count what was lost, doubled or too early.

    python -m tests.soak --minutes 10
    python -m tests.soak --channels all

The real daemon, on our own Telegram with its published limits kept, or on any channels: `all` is all
six in one daemon, with the same people on each platform and the operator on Slack. Platforms refuse,
fail before and after the effect, forget to answer, are cut off, are slow, and deliver again; the model
fails; in the first half the daemon is killed and started again. In the second half one daemon lives,
so that its memory can be measured. Ends with 1 if anything was lost, doubled, out of order or too
early, if a tool ran twice, or if memory or disk grew; what the bot did about each message that went
wrong is printed, on Telegram call by call.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path

from tests.soak.soak import PLACES, Soak, soaked

ALL = "all"


def main() -> None:
    """Soak, print, and say by the exit code how it was."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="how long people write")
    parser.add_argument("--people", type=int, default=16, help="who write in private, on each")
    parser.add_argument(
        "--channels",
        nargs="+",
        choices=[*PLACES, ALL],
        default=["telegram"],
        metavar="CHANNEL",
        help=f"where: {', '.join(PLACES)}, or {ALL}",
    )
    parser.add_argument("--seed", type=int, default=0, help="repeat a run; 0 draws one")
    parser.add_argument("--trouble", type=float, default=1.0, help="how many times as much of it")
    parser.add_argument("--on", type=Path, help="an empty directory to keep everything in")
    arguments = parser.parse_args()
    soak = Soak(
        seconds=arguments.minutes * 60,
        people=arguments.people,
        seed=arguments.seed or random.SystemRandom().randrange(1, 10**6),
        trouble=arguments.trouble,
        channels=tuple(PLACES if ALL in arguments.channels else dict.fromkeys(arguments.channels)),
    )
    with tempfile.TemporaryDirectory(prefix="zeroclaw-soak-") as directory:
        came_to = asyncio.run(soaked(soak, arguments.on or Path(directory), tell=_tell))
    sys.exit(0 if came_to.is_good else 1)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
