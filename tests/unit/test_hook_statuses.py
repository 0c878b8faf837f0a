"""The statuses that hooks may answer."""

import pytest

from zeroclaw.mount import HookAnswer


def test_no_status_but_a_final_one_can_be_answered() -> None:
    """One that promises more to come would leave the platform waiting."""
    with pytest.raises(ValueError, match="`100` is no HTTP status"):
        HookAnswer(status=100)
