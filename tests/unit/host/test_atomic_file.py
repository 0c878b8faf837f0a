"""Files are replaced as a whole, and private ones stay private."""

import os
import stat
from pathlib import Path

import pytest

from zeroclaw.host.atomic_file import back_up, replace_private


def test_a_backup_is_private_and_on_the_disk_before_it_takes_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut, right after the file was replaced, must not leave an empty copy of it."""
    (tmp_path / "c.toml").write_text("a = 1", encoding="utf-8")
    (tmp_path / "c.toml").chmod(0o600)
    synced: list[tuple[int, int, bool]] = []

    def sync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        named = (tmp_path / "c.toml.before").exists()
        synced.append((status.st_mode & 0o777, status.st_size, named))

    monkeypatch.setattr(os, "fsync", sync)
    assert back_up(tmp_path / "c.toml").read_text(encoding="utf-8") == "a = 1"
    assert synced == [(0o600, 5, False)]


def test_a_private_file_has_its_name_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut that took a key back would leave its receipts without one."""
    synced: list[bool] = []

    def sync(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))

    monkeypatch.setattr(os, "fsync", sync)
    replace_private(tmp_path / "keys", b"a")
    assert synced == [False, True]
