"""The first operator: a one-time code that the daemon prints, and whoever sends it (pure).

    open ── the code, in a private chat ──▶ used
      └──── its time ─────────────────────▶ over

It is kept in memory only: a restart without an operator prints another one. Guesses are counted by
sender and by channel; past either limit a text is not even compared.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from zeroclaw.inbound.pairing import hash_of, is_code, read_code
from zeroclaw.value import Value, replace

HOLDS = timedelta(hours=1)
GUESSES_OF_A_SENDER = 5
GUESSES_OF_A_CHANNEL = 20

Guess = Literal["none", "wrong", "right"]
"""`none`: nobody took it for one, because it does not look like a code or no code is open."""


class Claim(Value):
    """The code that makes its sender an operator, as far as it is remembered.

    Attributes:
        salt: Of the hash; hex.
        code_hash: Hex.
        until: When it ends.
        guesses: The channel and sender of each wrong one.
        used: Somebody has sent it.
    """

    salt: str
    code_hash: str
    until: datetime
    guesses: tuple[tuple[str, str], ...] = ()
    used: bool = False


def open_claim(code: str, *, salt: str, now: datetime) -> Claim:
    """Return the claim of a new code."""
    return Claim(salt=salt, code_hash=hash_of(code, salt), until=now + HOLDS)


def guess(
    claim: Claim, text: str, *, channel: str, sender: str, now: datetime
) -> tuple[Claim, Guess]:
    """Return the claim after a stranger's text, and whether the text was the code."""
    code = read_code(text)
    if not code or claim.used or now >= claim.until:
        return claim, "none"
    if _has_guessed_enough(claim.guesses, channel, sender):
        return claim, "wrong"
    if not is_code(code, salt=claim.salt, code_hash=claim.code_hash):
        return replace(claim, guesses=(*claim.guesses, (channel, sender))), "wrong"
    return replace(claim, used=True), "right"


def _has_guessed_enough(guesses: Sequence[tuple[str, str]], channel: str, sender: str) -> bool:
    of_channel = sum(where == channel for where, _ in guesses)
    return of_channel >= GUESSES_OF_A_CHANNEL or (
        guesses.count((channel, sender)) >= GUESSES_OF_A_SENDER
    )
