"""Every promise is proved on every channel by a test that is named, or it is said why not."""

import pytest

from tests.spec.promises import CHANNELS, EXCUSED, PROMISES, proofs


@pytest.mark.slow
@pytest.mark.unmeasured
def test_no_cell_of_the_table_is_empty_without_a_reason() -> None:
    """Nor is one excused that has a test; the table is `make promises`."""
    empty = {(promise, channel) for promise in PROMISES for channel in CHANNELS} - proofs().keys()
    assert empty == EXCUSED.keys()
