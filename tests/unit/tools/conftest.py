"""The workspace that the tools of these tests work in."""

from pathlib import Path

import pytest


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace beside something that is none of its business, and worth stealing."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("hunter2", encoding="utf-8")
    place = tmp_path / "workspace"
    place.mkdir()
    return place
