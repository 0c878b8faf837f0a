"""The reading position of a mailbox, as stored in positions and in the channel's directory."""

import pytest

from channels.email.state import read_cursor


@pytest.mark.parametrize("cursor", ["", "7", "7:", ":1", "7:x", "-7:1", "\u0667:1"])
def test_an_invalid_cursor_is_ignored(cursor: str) -> None:
    assert read_cursor(cursor) is None
