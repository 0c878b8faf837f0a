"""A package that is installed for one test, with nothing in it but entry points."""

import sys
from importlib import invalidate_caches
from pathlib import Path

import pytest


def install(directory: Path, monkeypatch: pytest.MonkeyPatch, entry_points: str) -> None:
    """Put a package beside the installed ones; `entry_points` as in `entry_points.txt`."""
    made = directory / "brought-1.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1\n")
    (made / "entry_points.txt").write_text(entry_points)
    monkeypatch.setattr(sys, "path", [str(directory), *sys.path])
    invalidate_caches()
