"""How far a mailbox was read: what stands in the channel's directory beside the positions."""

from pathlib import Path

import pytest

from channels.email.kept import PROGRESS, Kept, Progress, Read, read_cursor


async def test_what_the_runtime_has_committed_is_not_noted_once_more(tmp_path: Path) -> None:
    """A mail that was admitted moves the position; the note is for those that it never sees."""
    positions: dict[str, str] = {}
    progress = Progress("INBOX", positions, Kept(tmp_path, PROGRESS))
    await progress.note(Read(validity=7, uid=1))
    positions["INBOX"] = "7:2"
    await progress.note(Read(validity=7, uid=2))
    assert (tmp_path / PROGRESS).read_text() == "7:1 INBOX\n"
    assert await progress.known() == (Read(validity=7, uid=2), Read(validity=7, uid=1))
    await progress.note(Read(validity=7, uid=3))
    assert (tmp_path / PROGRESS).read_text() == "7:3 INBOX\n"


async def test_the_note_of_another_mailbox_is_none(tmp_path: Path) -> None:
    await Progress("INBOX", {}, Kept(tmp_path, PROGRESS)).note(Read(validity=7, uid=1))
    assert await Progress("Bot", {}, Kept(tmp_path, PROGRESS)).known() == ()


@pytest.mark.parametrize("cursor", ["", "7", "7:", ":1", "7:x", "-7:1", "\u0667:1"])
def test_what_is_no_cursor_says_nothing(cursor: str) -> None:
    assert read_cursor(cursor) is None
