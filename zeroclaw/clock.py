"""Time and chance, as they are handed in.

Only `host/clock.py` and `host/ids.py` touch the machine's; tests hand in their own.
"""

from datetime import UTC, datetime
from typing import Protocol

ULID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's: no I, L, O, U."""
ULID_TIME_CHARS = 10
"""The first of a ulid, which count milliseconds since 1970."""


class Clock(Protocol):
    """Two clocks: wall time for people, monotonic time for waiting."""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back; its zero means nothing."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; returns at once for zero or less."""
        ...


class Ids(Protocol):
    """Makes names that were never used before."""

    def ulid(self) -> str:
        """Return 26 Crockford base-32 characters that sort by time of making."""
        ...

    def token(self) -> str:
        """Return 32 random bytes, base64url without padding; unguessable."""
        ...


def made_at(ulid: str) -> datetime:
    """Return when a ulid was made, to the millisecond; `ValueError` for what is none."""
    milliseconds = 0
    for character in ulid[:ULID_TIME_CHARS]:
        milliseconds = milliseconds * len(ULID_ALPHABET) + ULID_ALPHABET.index(character)
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


def ulid_time(instant: datetime) -> str:
    """Return how ulids begin that are made at an instant; those that are made later sort behind."""
    number = max(int(instant.timestamp() * 1000), 0)
    characters: list[str] = []
    for _ in range(ULID_TIME_CHARS):
        number, digit = divmod(number, len(ULID_ALPHABET))
        characters.append(ULID_ALPHABET[digit])
    return "".join(reversed(characters))
