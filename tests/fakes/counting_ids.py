"""Ids that count: the same in every run, sorted by time of making like the real ones."""

import base64
import hashlib

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ULID_CHARS = 26


class CountingIds:
    """Hands out 1, 2, 3 … in the shape of ulids, and tokens that nobody would guess."""

    def __init__(self, start: int = 0) -> None:
        self._made = start

    def ulid(self) -> str:
        self._made += 1
        return numbered_ulid(self._made)

    def token(self) -> str:
        self._made += 1
        digest = hashlib.sha256(b"token %d" % self._made).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def numbered_ulid(number: int) -> str:
    """The `number`th ulid that a `CountingIds` makes."""
    characters: list[str] = []
    for _ in range(ULID_CHARS):
        number, digit = divmod(number, len(CROCKFORD))
        characters.append(CROCKFORD[digit])
    return "".join(reversed(characters))
