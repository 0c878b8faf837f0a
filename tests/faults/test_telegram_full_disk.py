"""The disk is full at each durable point: nothing is lost by it, and all goes on when there is room.

The data directory is a small file system of its own, in a mount namespace that outlives the daemon.
At the commit that is looked for the disk is filled while the daemon stands still before it, until
that commit has failed. The daemon may end then, and says why; or it tries again.
"""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from channels.telegram.emulator import Refuse
from channels.telegram.emulator.people import UserAction
from tests.faults.fork_client import ForkServer
from tests.faults.kill_points import KillPoint, KillPoints
from tests.faults.killed_daemon import PORT_VARIABLE
from tests.faults.promises import REPEAT
from tests.journeys.telegram.bot import Bot, bot
from zeroclaw.store import DurablePoint

pytestmark = [pytest.mark.slow, pytest.mark.needs("unshare")]

SIZE = "64m"
BLOCKED = Refuse(code=403, description="Forbidden: bot was blocked by the user")
NOT_PERFORMED = {
    # No scene here outgrows its model; `test_durable_points.py` walks it.
    DurablePoint.COMPACTED
}
POINTS = [point for point in DurablePoint if point not in NOT_PERFORMED]


@dataclass(frozen=True, kw_only=True)
class Disk:
    """The small file system, as a process in its namespace sees it."""

    place: Path

    def fill(self) -> None:
        """Take every byte that is left."""
        with (self.place / "filler").open("wb", buffering=0) as filler:
            for size in (1 << 20, 4096, 1):
                _write_on(filler.write, b"\0" * size)

    def clear(self) -> None:
        """Make room again."""
        (self.place / "filler").unlink()


def _write_on(write: Callable[[bytes], int], piece: bytes) -> None:
    while True:
        try:
            write(piece)
        except OSError:
            return


@contextmanager
def small_disk(data: Path) -> Generator[tuple[ForkServer, Disk]]:
    """Mount a small file system on a data directory, for all daemons of one server."""
    data.mkdir()
    script = f'mount -t tmpfs -o size={SIZE} tmpfs "$0" && exec "$@"'
    server = ForkServer("unshare", "--map-root-user", "--mount", "sh", "-c", script, str(data))
    try:
        yield server, Disk(place=Path(f"/proc/{server.pid}/root{data}"))
    finally:
        server.end()


@dataclass(eq=False, kw_only=True)
class Work:
    """What people have the bot do, round after round, whether it lives or not.

    Attributes:
        here: Where.
        actions: All that they did.
        rounds: How often.
        edits: Bob thinks of another word while Olga is asked.
    """

    world: Bot
    edits: bool = False
    actions: list[UserAction] = field(default_factory=list[UserAction])
    rounds: int = 0

    def round(self) -> None:
        """Let Ann send a file, Bob ask for what needs an approval, and Mallory be out of reach."""
        world, name = self.world, f"round {self.rounds}."
        self.rounds += 1
        model, request = world.model, f"knock {name}"
        model.call("knock", {"what": name}, text="Let me.", key=request, round=0, times=None)
        model.say("Knocked in ", name, key=request, round=1, times=None)
        model.say("Knocked in ", name, key=f"softly {name}", times=None)
        model.say("Read ", "in ", name, key=f"read {name}", times=None)
        self.actions += [
            world.ann.sends("document", b"milk", name="a.txt", caption=f"read {name}"),
            world.bob.says(request),
            world.mallory.says(f"hello in {name}"),
        ]

    async def operate(self) -> None:
        """Be Olga, who approves each card once."""
        pressed: set[int] = set()
        while True:
            changed = self.world.telegram.next_change()
            cards = [
                message
                for message in self.world.olga.chat.from_bot
                if message.buttons and message.id not in pressed
            ]
            if not cards:
                await changed.wait()
                continue
            pressed.add(cards[0].id)
            requests = [
                message
                for message in self.world.bob.chat.messages
                if message.text.startswith("knock ")
            ]
            edits = [
                self.world.bob.edits(requests[-1], requests[-1].text.replace("knock", "softly"))
                for _ in range(self.edits)
            ]
            await self.world.telegram.confirmed(*edits)
            self.actions += [*edits, self.world.olga.presses(cards[0], "Approve once")]

    def is_done(self) -> bool:
        """Everything is answered, settled and confirmed."""
        names = [f"round {number}." for number in range(self.rounds)]
        ann, bob = "\n".join(self.world.ann.chat.texts), "\n".join(self.world.bob.chat.texts)
        return (
            all(f"Read in {name}" in ann and f"Knocked in {name}" in bob for name in names)
            and all(action.update.confirmed for action in self.actions)
            and not any(message.buttons for message in self.world.olga.chat.from_bot)
        )

    def hold_to_account(self) -> None:
        """Each answer stands once; a repeat, and only that, says that it may be one."""
        for number in range(self.rounds):
            for chat, verb in ((self.world.ann.chat, "Read"), (self.world.bob.chat, "Knocked")):
                found = [text for text in chat.texts if f"{verb} in round {number}." in text]
                plain = [text for text in found if not text.endswith(REPEAT)]
                assert len(plain) <= 1, found
                assert len(found) <= 2, found
        runs = self.world.bench.ran("knock")
        assert len(set(runs)) == len(runs), runs


@dataclass(eq=False, kw_only=True)
class FullAt:
    """Fills the disk before the first commit of a point, until one of that point has failed.

    Attributes:
        has_failed: One has; there is room again.
    """

    disk: Disk
    point: DurablePoint
    is_full: bool = False
    has_failed: bool = False

    def __call__(self, point: KillPoint) -> bool:
        """See an instant; none ends the daemon."""
        if (point.what, point.name) == ("commit", self.point.value) and not self.has_failed:
            if point.when == "before" and not self.is_full:
                self.disk.fill()
                self.is_full = True
            elif point.when == "failed":
                self.disk.clear()
                self.has_failed = True
        return False


async def test_a_disk_that_is_full_at_any_durable_point_loses_nothing(tmp_path: Path) -> None:
    """Nothing is confirmed that was not stored, nothing stored is damaged, no tool runs twice.

    P1, P3, P10.
    """
    with small_disk(tmp_path / "data") as (server, disk):
        async with (
            KillPoints(lambda: None) as kill_points,
            bot(
                tmp_path,
                start=False,
                command=("tests.faults.killed_daemon",),
                launch=server,
                environment={PORT_VARIABLE: str(kill_points.port)},
                channel={"allowed_users": ["*"]},
            ) as world,
            asyncio.TaskGroup() as group,
        ):
            kill_points.kill = world.daemon.kill
            world.telegram.will("sendMessage", BLOCKED, chat=world.mallory.chat, times=None)
            work = Work(world=world)
            operator = group.create_task(work.operate())
            for point in POINTS:
                await go_through(work, kill_points, FullAt(disk=disk, point=point))
            operator.cancel()
            work.hold_to_account()


async def go_through(work: Work, kill_points: KillPoints, at: FullAt) -> None:
    """Live through one round, with a life more if the first one ends."""
    world, daemon = work.world, work.world.daemon
    work.edits = at.point is DurablePoint.STEERED
    kill_points.kills_at = at
    kill_points.begin()
    await daemon.start()
    work.round()
    # Refused events are not reported, so the work may seem done too early.
    await world.telegram.until(
        lambda: (work.is_done() and at.has_failed) or daemon.exit_code is not None
    )
    ends = {0, 1, -signal.SIGTERM}  # what was refused may be ending it, its handlers gone already
    if not daemon.is_running:
        assert await daemon.wait() == 1
        assert "is full" in daemon.stderr.rpartition("StoreUnusable: ")[2]
        kill_points.begin()
        await daemon.start()
        await world.until(lambda: world.telegram.is_polled and work.is_done())
        ends = {0}
    assert at.has_failed, f"no commit of `{at.point}` met a full disk"
    assert await daemon.terminate() in ends
