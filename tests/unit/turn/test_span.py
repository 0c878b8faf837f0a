"""How long something takes, for people."""

import pytest

from zeroclaw.turn.span import span


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((0, "1 s"), (0.2, "1 s"), (119, "119 s"), (119.5, "2 min"), (3600, "60 min")),
        *((7100, "119 min"), (7200, "2 h"), (7201, "2 h 1 min"), (86_400, "24 h")),
    ],
)
def test_it_is_rounded_up(seconds: float, said: str) -> None:
    assert span(seconds) == said
