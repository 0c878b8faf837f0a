"""Opening beneath a workspace: the moments that a tool test can't stand between."""

import os
from pathlib import Path

import pytest

from zeroclaw.errors import ToolFailed
from zeroclaw.tools.files import workspace as opening


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "a").write_text("old", encoding="utf-8")
    return tmp_path


def test_a_file_that_changed_meanwhile_is_not_replaced(directory: Path) -> None:
    """An edit is based on what was read; when that is gone, nothing is written or left."""
    with opening.opened_directory(directory, ()) as here:
        before = opening.stat_at(here, ("a",))
        (directory / "a").write_text("newer", encoding="utf-8")
        with pytest.raises(ToolFailed, match="`a` was changed by somebody else meanwhile"):
            opening.replace_at(here, ("a",), b"mine", replaces=before)
        with pytest.raises(ToolFailed, match="`a` was changed by somebody else meanwhile"):
            opening.replace_at(here, ("a",), b"mine", replaces=None)
    assert [(place.name, place.read_text()) for place in directory.iterdir()] == [("a", "newer")]


def test_a_file_that_the_disk_has_not_confirmed_is_reported_as_written(directory: Path) -> None:
    """P10: the new text stands, and the model should not take it that the old one does."""
    here = os.open(directory, os.O_PATH)  # good for names, but not for fsync(2)
    try:
        with pytest.raises(ToolFailed, match="`a` is written, but a power cut may undo that: bad"):
            opening.replace_at(here, ("a",), b"mine", replaces=opening.stat_at(here, ("a",)))
    finally:
        os.close(here)
    assert (directory / "a").read_bytes() == b"mine"


def test_a_file_that_may_not_be_opened_is_refused_in_words(directory: Path) -> None:
    """What the operating system says when the file turns into a link after it was looked at."""
    error = OSError(40, "Too many levels of symbolic links")
    assert str(opening.failure(error, ("a",), "open")) == (
        "`a` is a symbolic link, and links are not followed"
    )
    assert str(opening.failure(PermissionError(13, "Permission denied"), ("a",), "open")) == (
        "can't open `a`: permission denied"
    )
    assert directory.exists()


def test_no_descriptor_stays_open(directory: Path) -> None:
    """Neither after a success nor after a refusal on the way."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    (directory / "d" / "e").mkdir(parents=True)
    (directory / "d" / "link").symlink_to("e")
    with opening.opened_directory(directory, ("d", "e")):
        pass
    for parts in (("d", "link", "x"), ("d", "no"), ("a", "x"), ("d", "e"), ("d", "link")):
        with pytest.raises(ToolFailed), opening.opened_file(directory, parts):
            pass
    with opening.opened_file(directory, ("a",)) as file:
        assert os.read(file, 10) == b"old"
    assert len(list(Path("/proc/self/fd").iterdir())) == before
