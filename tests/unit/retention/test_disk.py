"""The disk watch notifies operators when the disk is nearly full, once each time."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.fakes.house import World
from tests.fakes.manual_clock import ManualClock
from zeroclaw.retention.disk import AMPLE_BYTES, CHECK_S, SCARCE_BYTES, DiskWatch, free_bytes
from zeroclaw.text.language import Localized


async def test_operators_are_notified_once_each_time_the_disk_fills_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A disk that goes up and down around the bound is reported once (P10)."""
    free: list[int | None] = [None]
    notices: list[str] = []

    async def tell(message: Localized) -> None:
        notices.append(message.to("en"))

    def usage(directory: Path) -> SimpleNamespace:
        if free[0] is None:
            raise FileNotFoundError(directory)
        return SimpleNamespace(free=free[0])

    monkeypatch.setattr(shutil, "disk_usage", usage)
    watch = DiskWatch(Path("/"), ManualClock(), tell)
    counts: list[int] = []
    for free_now in (
        None,
        AMPLE_BYTES,
        SCARCE_BYTES - 1,
        0,
        AMPLE_BYTES,
        SCARCE_BYTES - 1,
        AMPLE_BYTES + 1,
        0,
    ):
        free[0] = free_now
        await watch.check()
        counts.append(len(notices))
    assert counts == [0, 0, 1, 1, 1, 1, 1, 2]
    assert notices[0].startswith("The disk is nearly full: 199 MB are free")


async def test_a_running_daemon_checks_the_disk_itself(world: World) -> None:
    """It says nothing while there is room."""
    async with world.running() as house:
        await house.advance(CHECK_S)
        assert house.texts() == []


def test_free_bytes_is_none_for_a_missing_directory(tmp_path: Path) -> None:
    """A missing directory does not stop the daemon."""
    assert (free_bytes(tmp_path) or 0) > 0
    assert free_bytes(tmp_path / "none") is None
