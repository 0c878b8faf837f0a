"""The contracts of time and ids, which are always passed in.

Only `host/clock.py` and `host/ids.py` use the machine's own; tests pass fakes.
"""

from datetime import UTC, datetime, timedelta
from typing import Protocol

ULID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no I, L, O, U."""
ULID_TIME_CHARS = 10
"""Length of a ULID's timestamp prefix, which counts milliseconds since 1970."""
LEAP = timedelta(days=8)
"""A wall clock that jumps ahead by more than this may be wrong, so retention does not act on it yet.
Longer than a week, for a machine that is used at weekends."""
SET_BACK = timedelta(days=1)
"""A wall clock that is set back by more was wrong before."""

UNSET = datetime(2025, 1, 1, tzinfo=UTC)
"""A wall clock before this was never set, as on a machine without a battery: it starts in 1970."""


class Clock(Protocol):
    """Two clocks: wall time for people, monotonic time for waiting."""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes back; only differences have a meaning."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`; return at once for zero or less."""
        ...


class Ids(Protocol):
    """Generates new ids."""

    def ulid(self) -> str:
        """Return 26 Crockford base-32 characters that sort by creation time."""
        ...

    def token(self) -> str:
        """Return 32 unguessable random bytes as base64url without padding."""
        ...


def still_holds(ends_at: datetime, lasts: timedelta, now: datetime) -> bool:
    """Whether a period of this total length that ends at `ends_at` is still running.

    Not if the clock was set back by more than `SET_BACK` since it began: it would last too long.
    """
    return now < ends_at <= now + lasts + SET_BACK


def made_at(ulid: str) -> datetime:
    """Return when a ULID was made, to the millisecond; raise `ValueError` for a malformed one."""
    return datetime.fromtimestamp(ulid_number(ulid[:ULID_TIME_CHARS]) / 1000, tz=UTC)


def ulid_number(ulid: str) -> int:
    """Return the number that a ULID, or a part of one, writes; raise `ValueError` for other text."""
    number = 0
    for character in ulid:
        number = number * len(ULID_ALPHABET) + ULID_ALPHABET.index(character)
    return number


def ulid_time(instant: datetime) -> str:
    """Return the prefix of ULIDs made at `instant`; ULIDs made later sort after it."""
    number = max(int(instant.timestamp() * 1000), 0)
    characters: list[str] = []
    for _ in range(ULID_TIME_CHARS):
        number, digit = divmod(number, len(ULID_ALPHABET))
        characters.append(ULID_ALPHABET[digit])
    return "".join(reversed(characters))
