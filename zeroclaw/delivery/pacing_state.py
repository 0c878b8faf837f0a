"""What the pacing of an account knows: what is allowed, what was spent, who waits."""

from collections.abc import Mapping

from zeroclaw.channel import Budget
from zeroclaw.delivery.pacing_events import Request
from zeroclaw.value import Value, field


class Limits(Value):
    """What a platform allows one account, as its channel's capabilities state it.

    Attributes:
        edit_interval_s: Seconds between two calls about one message.
        group: Of a chat that several people read, None where that makes no difference.
        drafts_at_once: While so many calls are under way drafts wait; 0 for any number.
    """

    chat: Budget
    account: Budget
    edit_interval_s: float = 0.0
    group: Budget | None = None
    drafts_at_once: int = 0


class Lane(Value):
    """A token bucket and what refusals taught about it.

    Attributes:
        tokens: Calls that may be made, as of `at`.
        held_until: The platform asked to wait until then.
        gap_s: Seconds between two calls, beyond what the budget says; 0 when never refused.
        last: When the last call was granted.
        outage_s: Seconds from one call in vain to the next; 0 while the platform answers here.
        unreached: When the last call was in vain.
    """

    tokens: float
    at: float
    held_until: float
    gap_s: float
    last: float
    outage_s: float = 0.0
    unreached: float = 0.0


class Pacing(Value):
    """The state of one account.

    Attributes:
        started: When the process began to use the account.
        account: Charged for calls that have ended; those under way are set aside in it.
        chats: Lanes by chat, charged for each grant; one that is not here is untouched.
        groups: The chats among them that several people read.
        messages: When each message was last touched.
        served: By request id, the number of the grant that served it last.
        finals: Who waits, by id, in order of arrival.
        drafts: As `finals`.
        under_way: When calls were granted, oldest first, of which so many have not ended. One
            that was granted and never made is among them until it is late.
        grants: How many were granted.
        reached: When the platform answered last, in any chat.
    """

    limits: Limits
    started: float
    account: Lane
    chats: Mapping[str, Lane] = field(default_factory=dict[str, Lane])
    groups: frozenset[str] = frozenset()
    messages: Mapping[str, float] = field(default_factory=dict[str, float])
    served: Mapping[str, int] = field(default_factory=dict[str, int])
    finals: Mapping[str, Request] = field(default_factory=dict[str, Request])
    drafts: Mapping[str, Request] = field(default_factory=dict[str, Request])
    under_way: tuple[float, ...] = ()
    grants: int = 0
    reached: float = float("-inf")
