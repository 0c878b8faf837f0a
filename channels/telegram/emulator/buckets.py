"""How often a bot may call, and how long it has to wait.

Telegram publishes three numbers (Bots FAQ, "My bot is hitting limits, how do I avoid this?", read
2026-11): no more than one message a second in one chat, where "short bursts" are let pass; no more than
20 messages a minute in a group; about 30 messages a second in all. The bursts are this file's: the FAQ
gives no number for a chat, and a group's 20 and the account's 30 are taken as what may come at once.
A call that is refused counts for nothing, but until its `retry_after` has passed every other is refused.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field

from zeroclaw import Value

# Two clocks and a network lie between a bot and its limit; a thousandth of a call is no excess.
_TOLERANCE = 1e-3


class Rate(Value):
    """So many at once, and so many a second after that."""

    per_s: float
    burst: int


class Limits(Value):
    """What one bot account may do.

    Attributes:
        chat: In each chat, groups too.
        group: In each group, beside that.
        account: In all chats.
        edits: Edits count like messages; False counts messages only.
        drafts: Native drafts count too; no page of Telegram says whether they do.
    """

    chat: Rate = Rate(per_s=1, burst=3)
    group: Rate = Rate(per_s=20 / 60, burst=20)
    account: Rate = Rate(per_s=30, burst=30)
    edits: bool = True
    drafts: bool = False

    def counts(self, kind: str) -> bool:
        """Whether a call counts: `send` always, `edit` and `draft` as told."""
        return kind == "send" or (self.edits if kind == "edit" else self.drafts)


@dataclass(eq=False, kw_only=True)
class _Bucket:
    rate: Rate
    left: float
    at: float
    closed_until: float = -math.inf

    def wait_s(self, count: int, at: float) -> int:
        """Return whole seconds to wait until so many may pass; 0 when they may now."""
        self.left = min(self.rate.burst, self.left + (at - self.at) * self.rate.per_s)
        self.at = at
        if at < self.closed_until - _TOLERANCE:
            return max(1, math.ceil(self.closed_until - at - _TOLERANCE))
        # More than fit at all, such as a large album, pass when the bucket is full.
        lacking = min(count, self.rate.burst) - self.left
        if lacking <= _TOLERANCE:
            return 0
        wait_s = math.ceil(lacking / self.rate.per_s)
        self.closed_until = at + wait_s
        return wait_s


@dataclass(eq=False, kw_only=True)
class Buckets:
    """The buckets of one account.

    Attributes:
        limits: None lets everything pass.
        refused: Calls that came too early.
    """

    limits: Limits | None
    refused: int = 0
    _buckets: dict[Hashable, _Bucket] = field(default_factory=dict[Hashable, _Bucket])

    def take(self, kind: str, chat: int, at: float, *, is_group: bool, count: int = 1) -> int:
        """Count a call; return 0, or the seconds to wait when it is one too many.

        Args:
            kind: `send`, `edit` or `draft`.
            chat: Where.
            at: Seconds on a clock that never goes back.
            is_group: The chat is no private one.
            count: For how many messages it counts; an album counts its pictures.
        """
        limits = self.limits
        if limits is None or not limits.counts(kind):
            return 0
        asked = [
            self._bucket("account", limits.account, at),
            self._bucket(("chat", chat), limits.chat, at),
        ]
        if is_group:
            asked.append(self._bucket(("group", chat), limits.group, at))
        longest = max(one.wait_s(count, at) for one in asked)
        if longest:
            self.refused += 1
            return longest
        for one in asked:
            one.left -= count
        return 0

    def _bucket(self, key: Hashable, rate: Rate, at: float) -> _Bucket:
        if key not in self._buckets:
            self._buckets[key] = _Bucket(rate=rate, left=rate.burst, at=at)
        return self._buckets[key]
