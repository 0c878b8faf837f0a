"""The rate limits of a bot account, enforced as a real platform does."""

from dataclasses import dataclass, field

from zeroclaw_test_platform import LoopbackSettings

# One call of grace: the client counts by its own clock, and calls overtake each other.
GRACE = 1


@dataclass(eq=False, kw_only=True)
class _Bucket:
    per_s: float
    burst: int
    left: float
    at: float

    def wait_s(self, at: float) -> float:
        """Take a token; return the seconds to wait if there is none."""
        if not self.per_s:
            return 0.0
        self.left = min(self.burst, self.left + (at - self.at) * self.per_s)
        self.at = at
        if self.left >= 1 - GRACE:
            self.left -= 1
            return 0.0
        return (1 - self.left) / self.per_s


@dataclass(eq=False, kw_only=True)
class Limits:
    """The budgets of an account.

    Attributes:
        exceeded: The number of calls beyond the limits, which were refused.
    """

    settings: LoopbackSettings
    exceeded: int = 0
    _chats: dict[str, _Bucket] = field(default_factory=dict[str, _Bucket])
    _account: _Bucket | None = None

    def wait_s(self, chat: str, at: float) -> float:
        """Count a send or edit; return the seconds to wait if it is one too many."""
        settings = self.settings
        if self._account is None:
            burst = settings.account_burst
            self._account = _Bucket(per_s=settings.account_per_s, burst=burst, left=burst, at=at)
        if chat not in self._chats:
            burst = settings.chat_burst
            self._chats[chat] = _Bucket(per_s=settings.chat_per_s, burst=burst, left=burst, at=at)
        wait_s = self._account.wait_s(at) or self._chats[chat].wait_s(at)
        if wait_s:
            self.exceeded += 1
        return wait_s
