"""A full disk stops the daemon with one line; admitted messages are answered when there is room.

The data directory is a small file system in a mount namespace that ends with the daemon; an open
descriptor of the directory keeps its files accessible.
"""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.journeys.daemon_process import PROGRAM, spawn
from tests.journeys.world import World, open_world

pytestmark = [pytest.mark.slow, pytest.mark.needs("unshare")]

SIZE = "4m"


def on_a_small_disk(data: Path) -> tuple[str, ...]:
    """Mount a small file system on the data directory, then become the daemon."""
    data.mkdir()
    script = f'mount -t tmpfs -o size={SIZE} tmpfs "$0" && exec "$@"'
    return ("unshare", "--map-root-user", "--mount", "sh", "-c", script, str(data), PROGRAM)


@contextmanager
def small_disk(world: World) -> Generator[Path]:
    """The daemon's data directory as the daemon sees it, for longer than the daemon lives."""
    directory_fd = os.open(
        f"/proc/{world.daemon.pid}/root{world.data}", os.O_RDONLY | os.O_DIRECTORY
    )
    try:
        yield Path(f"/proc/self/fd/{directory_fd}")
    finally:
        os.close(directory_fd)


def fill(disk: Path) -> None:
    """Take every byte that is left."""
    with (disk / "filler").open("wb", buffering=0) as filler:
        while True:
            try:
                filler.write(b"\0" * 4096)
            except OSError:
                return


async def test_a_full_disk(tmp_path: Path) -> None:
    """Nothing is confirmed that could not be stored, and nothing that was stored is damaged."""
    in_its_own = on_a_small_disk(tmp_path / "data")
    async with open_world(tmp_path, command=in_its_own, launch=spawn) as world:
        world.model.say("Hello.", key="hi")
        await world.say("ann", "hi")
        await world.expect("ann", "Hello.")
        with small_disk(world) as disk:
            fill(disk)
            event = await world.say("ann", "and now?")
            assert await world.daemon.wait() == 1
            assert not event.confirmed
            (line,) = [
                row for row in world.daemon.stderr.splitlines() if row.startswith("zeroclaw: ")
            ]
            assert "full" in line
            assert "Traceback" not in world.daemon.stderr
            (disk / "filler").unlink()
            no_sockets = shutil.ignore_patterns("*.sock")
            shutil.copytree(disk, world.data, dirs_exist_ok=True, ignore=no_sockets)
        second = world.daemon.twin(tmp_path / "second.log", command=(PROGRAM,))
        world.model.say("Now there is room.", key="and now?")
        await second.start()
        await world.expect("ann", "Hello.", "Now there is room.")
        await second.kill()
