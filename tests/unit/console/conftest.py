"""Fixtures of the console's tests."""

from pathlib import Path

import pytest

from tests.fakes.house import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ada, who is the operator, and Ben, on one platform, beside a web chat."""
    world = World(tmp_path)
    world.add_channel("web")
    world.local = ("web",)
    return world
