"""How long a platform wants to be left alone, as it says in one way or another; pure."""

LONGEST_WAIT_S = 24 * 3600.0
"""What a server asks for beyond a day is no wait, but a fault of it."""
UNSTATED_WAIT_S = 1.0
"""What is waited where a server refuses a call as one too many, and does not say for how long."""
TOO_MANY = 429


def wait_s(stated: object) -> float:
    """Return a wait in seconds, of a number or of what a header says."""
    try:
        found = float(stated) if isinstance(stated, str | int | float) else 0.0
    except (ValueError, OverflowError):
        found = 0.0
    return min(found, LONGEST_WAIT_S) if found > 0 else UNSTATED_WAIT_S
