"""Makes ids that sort by creation time, and tokens that can't be guessed."""

import secrets
from datetime import timedelta
from threading import Lock

from zeroclaw.clock import ULID_ALPHABET, UNSET, Clock, made_at, ulid_number

_PAIRS = tuple(first + second for first in ULID_ALPHABET for second in ULID_ALPHABET)
_PAIR_BITS = 10
_PAIR_MASK = 2**_PAIR_BITS - 1
_SHIFTS = range(12 * _PAIR_BITS, -1, -_PAIR_BITS)
_RANDOM_BITS = 80
MAX_AHEAD = timedelta(days=1)
"""Ids further in the future are not followed: the age of rows is read from their ids."""


class SystemIds:
    """`Ids` from the machine's randomness; each ULID sorts strictly after the previous one.

    Within one millisecond, and after the wall clock was set back, the next ULID is the last one
    plus a random step (github.com/ulid/spec, "monotonicity", read 2026-11; its step of 1 would let
    a reader of one id guess the next). But ids more than `MAX_AHEAD` in the future are not followed,
    unless the clock was never set. Thread-safe.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._last = 0

    def ulid(self) -> str:
        """Return 26 characters: 48 bits of milliseconds since 1970, 80 random bits."""
        now = self._clock.now()
        milliseconds = int(now.timestamp() * 1000)
        new = milliseconds << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        with self._lock:
            ahead_ms = (self._last >> _RANDOM_BITS) - milliseconds
            was_wrong = now >= UNSET and timedelta(milliseconds=ahead_ms) > MAX_AHEAD
            # INVARIANT: strictly increasing, unless the clock was wrong by days; a full millisecond
            # carries over into the next one.
            is_new = ahead_ms < 0 or was_wrong
            self._last = new if is_new else self._last + 1 + secrets.randbits(32)
            number = self._last
        return _encoded(number)

    def follow(self, ulid: str) -> None:
        """Make new ids sort after this one of an earlier process, even if the clock was set back.

        Ignores text that is not a ULID, and one that is more than `MAX_AHEAD` in the future, unless
        the clock was never set.
        """
        now = self._clock.now()
        try:
            is_near = now < UNSET or made_at(ulid) <= now + MAX_AHEAD
            number = ulid_number(ulid)
        except (ValueError, OverflowError):
            return
        with self._lock:
            self._last = max(self._last, number) if is_near else self._last

    def token(self) -> str:
        """Return 32 random bytes, base64url without padding."""
        return secrets.token_urlsafe(32)


def _encoded(number: int) -> str:
    # The standard base32 has another alphabet, and takes three times as long.
    parts = map(_PAIR_MASK.__and__, map(number.__rshift__, _SHIFTS))
    return "".join(map(_PAIRS.__getitem__, parts))
