"""The bench: `python -m tests.bench`, or `make bench`; measures, asserts nothing, ends by itself.

The real daemon runs as a process of its own on this machine's loopback. The model answers at once
and is another process; this one plays the people and the platform. So three processes share the
machine: with two cores, what 200 conversations reach is also what the other two leave to it.
"""

import argparse
import asyncio
import compileall
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from tests.bench import attacks, parts, platforms, telegram
from tests.bench.figures import Report
from tests.bench.local import local_model

BOUND_S = 900.0
Progress = Callable[[str], None]
ROOT = Path(__file__).parents[2]


def main() -> None:
    """Measure everything, print a table, write the file."""
    arguments = _arguments()
    began = time.perf_counter()

    def progress(text: str) -> None:
        print(f"bench: {time.perf_counter() - began:5.1f} s  {text}", flush=True)

    progress("compiling bytecode")
    for folder in ("zeroclaw", "channels", "tests"):
        compileall.compile_dir(ROOT / folder, quiet=1)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.on) as directory:
        try:
            asyncio.run(_all(Path(directory), report, progress, arguments))
        except TimeoutError:
            progress("a part took too long; the table shows what was measured until then")
    print(f"\n{os.cpu_count()} cores, Python {platform.python_version()}", end=", ")
    print(f"SQLite {sqlite3.sqlite_version}, load before {arguments.load:.1f}")
    print("\n".join(report.table()))
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    facts = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "machine": platform.machine(),
        "load_before": arguments.load,
        "figures": report.as_json(),
    }
    arguments.json.write_text(json.dumps(facts, indent=2) + "\n")
    progress(f"wrote {arguments.json}")


class _Arguments(argparse.Namespace):
    json: Path
    on: Path | None
    scale: float
    parts: list[str]
    load: float = 0.0


PLATFORMS = (platforms.TELEGRAM, platforms.DISCORD, platforms.SLACK, platforms.EMAIL)
PARTS = (
    *("start", "text", "tool", "stream", "burst", "admissions", "policy", "local"),
    *("long", "attacks", "six"),
    *(f"{platform.name}-{part}" for platform in PLATFORMS for part in ("start", "turns", "burst")),
    *("telegram-limits", "telegram-slow"),
)


def _arguments() -> _Arguments:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", type=Path, default=ROOT / ".bench" / "bench.json")
    parser.add_argument("--on", type=Path, metavar="DIRECTORY", help="measure on another disk")
    parser.add_argument("--scale", type=float, default=1.0, help="more or fewer repetitions")
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help="only these, or those that begin so: `discord` for three parts beside the bare library, "
        f"`six` for all channels in one daemon; {', '.join(PARTS)}",
    )
    arguments = parser.parse_args(namespace=_Arguments())
    arguments.load = os.getloadavg()[0]
    for part in arguments.parts:
        if not any(_is_meant(name, part) for name in PARTS):
            parser.error(f"`{part}` is no part; there are {', '.join(PARTS)}")
    return arguments


def _is_meant(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}-")


async def _all(directory: Path, report: Report, progress: Progress, arguments: _Arguments) -> None:
    def times(count: int) -> int:
        return max(round(count * arguments.scale), 1)

    async with asyncio.timeout(BOUND_S), _model() as url:
        place = parts.Place(directory=directory, model_url=url, report=report)
        machine = parts.Machine(place)
        steps: dict[str, tuple[str, Callable[[], Awaitable[None]]]] = {
            "start": ("starting the daemon", lambda: parts.starting(place, times(10))),
            "text": ("text turns", lambda: parts.turns(place, "text", times(100), aim="6")),
            "tool": ("one-tool turns", lambda: parts.turns(place, "tool", times(100))),
            "stream": ("turns of 200 pieces", lambda: parts.turns(place, "stream", times(5))),
            "burst": ("200 conversations at once", lambda: parts.burst(place, times(5))),
            "admissions": ("admissions alone", lambda: parts.admissions(place, times(50))),
            "policy": ("policy decisions", lambda: parts.decisions(place, times(2000))),
            "long": ("a long conversation", lambda: parts.long(place, times(10))),
            "local": ("the local model", lambda: local_model(place, times(3))),
            "attacks": ("attacks", lambda: attacks.attacks(place, times(100))),
            "six": ("six channels in one daemon", lambda: platforms.six(place, times(5))),
            "telegram-limits": ("Telegram: 200 within limits", lambda: telegram.limited(place)),
            "telegram-slow": ("Telegram: slow answers", lambda: telegram.streams(place, times(2))),
        }
        for platform in PLATFORMS:
            steps |= {
                f"{platform.name}-start": (
                    f"{platform.name}: starting",
                    partial(platforms.starting, place, platform, times(5)),
                ),
                f"{platform.name}-turns": (
                    f"{platform.name}: turns",
                    partial(platforms.turns, place, platform, times(100)),
                ),
                f"{platform.name}-burst": (
                    f"{platform.name}: {platform.chats} chats",
                    partial(platforms.burst, place, platform, times(3)),
                ),
            }
        for name, (what, work) in steps.items():
            if not arguments.parts or any(_is_meant(name, part) for part in arguments.parts):
                progress(what)
                machine.look()
                await work()
        machine.tell()


@asynccontextmanager
async def _model() -> AsyncGenerator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.model", stdout=subprocess.PIPE, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.wait()


if __name__ == "__main__":
    main()
