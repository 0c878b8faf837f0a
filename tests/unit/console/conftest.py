"""What the tests of the console may ask for."""

from pathlib import Path

import pytest

from tests.fakes.house import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ada, who is the operator, and Ben, on one platform, beside a web chat."""
    made = World(tmp_path)
    made.add_channel("web")
    made.local = ("web",)
    return made
