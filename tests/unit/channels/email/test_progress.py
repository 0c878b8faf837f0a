"""How far a mailbox was read, as it stands in positions and in the channel's directory."""

import pytest

from channels.email.state import read_cursor


@pytest.mark.parametrize("cursor", ["", "7", "7:", ":1", "7:x", "-7:1", "\u0667:1"])
def test_what_is_no_cursor_says_nothing(cursor: str) -> None:
    assert read_cursor(cursor) is None
