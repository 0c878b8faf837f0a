"""Operators hear that the disk is nearly full, once for each time."""

from pathlib import Path

from tests.fakes.house import World
from tests.fakes.manual_clock import ManualClock
from zeroclaw.retention.disk import AMPLE_BYTES, CHECK_S, SCARCE_BYTES, DiskWatch, free_bytes
from zeroclaw.text.language import Localized


async def test_operators_are_told_once_for_each_time_that_it_becomes_scarce() -> None:
    """A disk that goes up and down around the bound is told of once (P10)."""
    free: list[int | None] = [None]
    said: list[str] = []

    async def tell(says: Localized) -> None:
        said.append(says.to("en"))

    watch = DiskWatch(Path("/"), ManualClock(), tell, free=lambda _: free[0])
    counts: list[int] = []
    for now in (
        None,
        AMPLE_BYTES,
        SCARCE_BYTES - 1,
        0,
        AMPLE_BYTES,
        SCARCE_BYTES - 1,
        AMPLE_BYTES + 1,
        0,
    ):
        free[0] = now
        await watch.check()
        counts.append(len(said))
    assert counts == [0, 0, 1, 1, 1, 1, 1, 2]
    assert said[0].startswith("The disk is nearly full: 199 MB are free")


async def test_a_running_house_looks_by_itself(world: World) -> None:
    """And says nothing while there is room."""
    async with world.running() as house:
        await house.advance(CHECK_S)
        assert house.texts() == []


def test_what_is_free_is_told_where_it_can_be(tmp_path: Path) -> None:
    """A directory that is gone is no reason to stop."""
    assert (free_bytes(tmp_path) or 0) > 0
    assert free_bytes(tmp_path / "none") is None
