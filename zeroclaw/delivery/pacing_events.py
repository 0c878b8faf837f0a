"""What happens to the pacing of an account, and what it says: who wants to call, who may, when to look."""

from enum import IntEnum

from zeroclaw.value import Value


class Rank(IntEnum):
    """Who goes first; lower is sooner."""

    FINAL = 0
    DRAFT = 1


class Request(Value):
    """Somebody who wants to make one call.

    Attributes:
        id: Unique among those who wait; also the draft's id, by which drafts are served evenly.
        chat: The platform's chat; threads of a chat share its budget.
        message: The platform's id of the message to change, empty for a new one.
        in_group: Several people read the chat.
    """

    id: str
    chat: str
    rank: Rank
    message: str = ""
    in_group: bool = False


class Wanted(Value):
    """Somebody wants to call."""

    request: Request
    at: float


class Withdrawn(Value):
    """Somebody no longer wants to; for one who doesn't wait this changes nothing."""

    id: str
    at: float


class Ended(Value):
    """A granted call is under way no longer, however it went.

    Attributes:
        began: When it was made, at its grant or soon after.
    """

    began: float
    at: float


class Answered(Value):
    """A granted call was carried out.

    Attributes:
        message: The platform's id of the message it made or changed, empty for none.
    """

    chat: str
    at: float
    message: str = ""


class Refused(Value):
    """The platform refused a granted call because of its rate.

    Attributes:
        retry_after_s: Seconds that it asked for, 0 when it did not say.
    """

    chat: str
    at: float
    retry_after_s: float = 0.0


class Unreached(Value):
    """A granted call did not reach the platform, which says nothing of its rate."""

    chat: str
    at: float


class Ticked(Value):
    """Time has passed."""

    at: float


class Forgotten(Value):
    """A draft has ended; it will not ask again under this id."""

    id: str
    at: float


Event = Wanted | Withdrawn | Ended | Answered | Refused | Unreached | Ticked | Forgotten


class Grant(Value):
    """This request may make its one call now."""

    id: str


class WakeAt(Value):
    """Step with `Ticked` at this instant; replaces the one before it."""

    at: float


Effect = Grant | WakeAt
