"""How long something takes, as it is written in every language."""

import math

_MINUTE_S = 60


def span(seconds: float) -> str:
    """Return it rounded up, at least a second: `40 s`, `3 min`, `5 h 10 min`."""
    whole = max(math.ceil(seconds), 1)
    if whole < 2 * _MINUTE_S:
        return f"{whole} s"
    minutes = math.ceil(whole / _MINUTE_S)
    if minutes < 2 * _MINUTE_S:
        return f"{minutes} min"
    hours, rest = divmod(minutes, _MINUTE_S)
    return f"{hours} h {rest} min" if rest else f"{hours} h"
