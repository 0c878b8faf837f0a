"""How long a platform wants to be left alone, whatever it says."""

import pytest

from channels._remote.limits import LONGEST_WAIT_S, UNSTATED_WAIT_S, wait_s


@pytest.mark.parametrize(
    ("stated", "waited_s"),
    [
        (0.3, 0.3),
        ("7", 7),
        ("soon", UNSTATED_WAIT_S),
        (None, UNSTATED_WAIT_S),
        (-1, UNSTATED_WAIT_S),
        ("nan", UNSTATED_WAIT_S),
        (1e9, LONGEST_WAIT_S),
        ("inf", LONGEST_WAIT_S),
        (10**400, UNSTATED_WAIT_S),
    ],
)
def test_a_wait_is_what_is_said_within_a_day(stated: object, waited_s: float) -> None:
    assert wait_s(stated) == waited_s
