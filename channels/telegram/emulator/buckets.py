"""Rate limits: how often a bot may call, and how long it has to wait.

Telegram publishes three numbers (Bots FAQ, "My bot is hitting limits, how do I avoid this?", read
2026-11): at most one message a second in one chat, with "short bursts" allowed; at most 20 messages a
minute in a group; about 30 messages a second in all. The bursts are our choice: the FAQ gives no number
for a chat, and we allow a group's 20 and the account's 30 at once.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

from channels._remote.emulator import buckets
from channels._remote.emulator.buckets import Rate
from zeroclaw import Value


class Limits(Value):
    """The rate limits of one bot account.

    Attributes:
        chat: Limit in each chat, including groups.
        group: Additional limit in each group.
        account: Limit in all chats together.
        edits: Edits count like messages.
        drafts: Native drafts count too; Telegram does not document whether they do.
    """

    chat: Rate = Rate(per_s=1, burst=3)
    group: Rate = Rate(per_s=20 / 60, burst=20)
    account: Rate = Rate(per_s=30, burst=30)
    edits: bool = True
    drafts: bool = False

    def counts(self, kind: str) -> bool:
        """Whether a call counts: `send` always, `edit` and `draft` as configured."""
        return kind == "send" or (self.edits if kind == "edit" else self.drafts)


@dataclass(eq=False, kw_only=True)
class Buckets:
    """The buckets of one account.

    Attributes:
        limits: The limits; None lets everything pass.
    """

    limits: Limits | None
    _all: buckets.Buckets = field(default_factory=buckets.Buckets)

    @property
    def refused(self) -> int:
        """Number of calls that came too early."""
        return self._all.refused

    def take(self, kind: str, chat: int, at: float, *, is_group: bool, count: int = 1) -> int:
        """Count a call; return 0, or the seconds to wait if it is one too many.

        Args:
            kind: `send`, `edit` or `draft`.
            chat: The chat's id.
            at: The monotonic time in seconds.
            is_group: The chat is a group.
            count: The number of messages that it counts as; for an album that of its pictures.
        """
        limits = self.limits
        if limits is None or not limits.counts(kind):
            return 0
        rates: dict[Hashable, Rate] = {"account": limits.account, ("chat", chat): limits.chat}
        if is_group:
            rates["group", chat] = limits.group
        return self._all.take(rates, at, count=count)
