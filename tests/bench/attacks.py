"""What one conversation can do to another: each attack beside the same run without it.

Ann, an operator, has one file listed after another while Mallory does their worst in a chat of
their own, on calls that need no approval. The figure is how long Ann waits (P9).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.bench.front import Front
from tests.bench.parts import PART_S, Place
from tests.bench.process import Daemon, running

AIM = "<= 250, <= 3 times"
AT_ONCE = 12
"""Calls of one batch; `tests.bench.model` asks for as many."""
PAGES = 120
_LINES = 12_000  # of some 20 bytes: as much as one call of `read_file` returns

Attack = Callable[[Front], Awaitable[None]]


async def _batches(front: Front, word: str) -> None:
    """Ask for one batch of hostile calls after another."""
    while True:
        await front.say("mallory", f"{word} again").answered.wait()


async def _flood(front: Front, text: str, count: int) -> None:
    """Write as fast as the daemon confirms, fifty at a time."""
    for _ in range(count // 50):
        for message in [front.say("mallory", text) for _ in range(50)]:
            await message.admitted.wait()


async def _book(front: Front) -> None:
    """Send a PDF of many pages, and have it read again and again."""
    await front.say("mallory", "book begins", file=("book.pdf", _pdf(PAGES))).answered.wait()
    await _batches(front, "book")


def _pdf(pages: int) -> bytes:
    """Return a PDF whose pages hold so much text that reading it takes seconds."""
    lines = "".join(f"({number} quick brown foxes) Tj T* " for number in range(400))
    text = f"BT /F1 8 Tf 9 TL 20 820 Td {lines}ET".encode()
    kids = " ".join(f"{4 + number} 0 R" for number in range(pages))
    page = b"<</Type/Page/Parent 2 0 R/Contents 3 0 R/Resources<</Font<</F1<</Type/Font"
    page += b"/Subtype/Type1/BaseFont/Helvetica>>>>>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {pages}/MediaBox[0 0 600 840]/Kids[{kids}]>>".encode(),
        b"<</Length %d>>stream\n%s\nendstream" % (len(text), text),
        *[page] * pages,
    ]
    written, places = b"%PDF-1.4\n", list[int]()
    for number, object_ in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj%s endobj\n" % (number, object_)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    foot = b"trailer<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF\n"
    return written + head + table + foot % (len(objects) + 1, len(written))


ATTACKS: dict[str, Attack] = {
    "12 hostile expressions": lambda front: _batches(front, "expressions"),
    "12 files of `key: `": lambda front: _batches(front, "keys"),
    f"12 reads of a PDF of {PAGES} pages": _book,
    "2,000 times `/approve 1 … 899`": lambda front: _flood(
        front, f"/approve {' '.join(map(str, range(1, 900)))}", 2_000
    ),
    "5,000 messages over the limit": lambda front: _flood(front, "text", 5_000),
}


async def attacks(place: Place, times: int) -> None:
    """Measure Ann's calls without an attack, and beside each."""
    report = place.report
    calm = 0.0
    for number, (name, attack) in enumerate({"nothing else": None, **ATTACKS}.items()):
        async with _talking(place, f"attack-{number}") as (daemon, front):
            attacking = asyncio.ensure_future(attack(front)) if attack else None
            if attacking:
                await asyncio.sleep(0.5)
            waits = await _waits(front, times)
            if attacking:
                attacking.cancel()
                with suppress(asyncio.CancelledError):
                    await attacking
            peak = daemon.peak_rss_mib()
        worst = _p99(waits)
        calm = calm or worst
        report.many(f"a call of another conversation, beside {name}", waits, "ms", aim=AIM)
        report.one(f"its p99, beside {name}", worst, "ms")
        report.one(f"its p99, beside {name}, and beside nothing", worst / calm, "times")
        report.one(f"peak memory, RSS, beside {name}", peak, "MiB")


def _p99(waits: list[float]) -> float:
    return sorted(waits)[-(len(waits) // 100) - 1]


async def _waits(front: Front, times: int) -> list[float]:
    waits: list[float] = []
    for number in range(times):
        began = time.perf_counter()
        await front.say("ann", f"tool {number}").answered.wait()
        waits.append((time.perf_counter() - began) * 1000)
    return waits


@asynccontextmanager
async def _talking(place: Place, name: str) -> AsyncGenerator[tuple[Daemon, Front]]:
    async with Front() as front:
        channel = {"port": front.port, "allowed_users": ["ann", "mallory"]}
        people = [{"name": "ann", "ids": ["loopback:ann"], "roles": ["operator"]}]
        config = place.config(
            channels={"loopback": channel},
            people=people,
            # The calls are the attack, not the messages that ask for them.
            limits={"person_burst": 30},
        )
        directory = place.directory / name
        async with running(directory, config) as daemon:
            async with asyncio.timeout(PART_S):
                await front.connected()
                await front.say("mallory", "tool warm").answered.wait()
                await asyncio.to_thread(_lay_out, directory)
                for number in range(5):
                    await front.say("ann", f"tool warm {number}").answered.wait()
                yield daemon, front


def _lay_out(directory: Path) -> None:
    """Put what the attacks read into Mallory's workspace, the only one yet or all there are."""
    for workspace in directory.rglob("workspaces/*"):
        (workspace / "lines").write_bytes(b"abaabbab" * 250_000)
        (workspace / "keys").write_bytes(b"key: " * (_LINES * 4))
