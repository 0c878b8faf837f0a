"""What every test of a room may ask for."""

from pathlib import Path

import pytest

from tests.fakes.house import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ada, who is the operator, and Ben, on one platform; nothing has been said yet."""
    return World(tmp_path)
