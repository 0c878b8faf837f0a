"""What one bot account may do, held against it as a real platform does."""

from dataclasses import dataclass, field

from zeroclaw_test_platform import LoopbackSettings

# One call of grace: the client counts from its own clock, and calls overtake each other.
GRACE = 1


@dataclass(eq=False, kw_only=True)
class _Bucket:
    per_s: float
    burst: int
    left: float
    at: float

    def wait_s(self, at: float) -> float:
        """Take one; return how long to wait when there is none."""
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
        exceeded: Calls that were refused for being too many.
    """

    settings: LoopbackSettings
    exceeded: int = 0
    _chats: dict[str, _Bucket] = field(default_factory=dict[str, _Bucket])
    _whole: _Bucket | None = None

    def wait_s(self, chat: str, at: float) -> float:
        """Count one send or edit; return how long to wait when it is one too many."""
        settings = self.settings
        if self._whole is None:
            burst = settings.account_burst
            self._whole = _Bucket(per_s=settings.account_per_s, burst=burst, left=burst, at=at)
        if chat not in self._chats:
            burst = settings.chat_burst
            self._chats[chat] = _Bucket(per_s=settings.chat_per_s, burst=burst, left=burst, at=at)
        wait_s = self._whole.wait_s(at) or self._chats[chat].wait_s(at)
        if wait_s:
            self.exceeded += 1
        return wait_s
