"""Ids that count: the same in every run, and sorted by creation time like the real ones."""

import base64
import hashlib

from zeroclaw.clock import Clock

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ULID_CHARS = 26
RANDOM_BITS = 80


class CountingIds:
    """Returns 1, 2, 3 … in the form of ulids, and tokens that are hard to guess.

    With a clock they begin with its time, as the real ones do.
    """

    def __init__(self, start: int = 0, *, clock: Clock | None = None) -> None:
        self._made = start
        self._clock = clock

    def ulid(self) -> str:
        self._made += 1
        if self._clock is None:
            return numbered_ulid(self._made)
        milliseconds = int(self._clock.now().timestamp() * 1000)
        return numbered_ulid(milliseconds << RANDOM_BITS | self._made)

    def token(self) -> str:
        self._made += 1
        digest = hashlib.sha256(b"token %d" % self._made).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def numbered_ulid(number: int) -> str:
    """Return the `number`th ulid of a `CountingIds`."""
    characters: list[str] = []
    for _ in range(ULID_CHARS):
        number, digit = divmod(number, len(CROCKFORD))
        characters.append(CROCKFORD[digit])
    return "".join(reversed(characters))
