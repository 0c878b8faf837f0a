"""Installs a package for one test, with only entry points in it."""

import sys
from importlib import invalidate_caches
from pathlib import Path

import pytest


def install(
    directory: Path, monkeypatch: pytest.MonkeyPatch, entry_points: str, package: str = "brought"
) -> None:
    """Put a package beside the installed ones; `entry_points` as in `entry_points.txt`."""
    info = directory / f"{package}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(entry_points)
    monkeypatch.setattr(sys, "path", [str(directory), *sys.path])
    invalidate_caches()
