"""What happens to the pacing of an account, and what it says: who wants to call, who may, when to look."""

from dataclasses import dataclass
from enum import IntEnum


class Rank(IntEnum):
    """Who goes first; lower is sooner."""

    FINAL = 0
    DRAFT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Somebody wants to call."""

    request: Request
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """Somebody no longer wants to; for one who doesn't wait this changes nothing."""

    id: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A granted call is under way no longer, however it went."""

    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A granted call was carried out.

    Attributes:
        message: The platform's id of the message it made or changed, empty for none.
    """

    chat: str
    at: float
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The platform refused a granted call because of its rate, or could not be reached.

    Attributes:
        retry_after_s: Seconds that it asked for, 0 when it did not say.
    """

    chat: str
    at: float
    retry_after_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """Time has passed."""

    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """A draft has ended; it will not ask again under this id."""

    id: str
    at: float


Event = Wanted | Withdrawn | Ended | Answered | Refused | Ticked | Forgotten


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """This request may make its one call now."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeAt:
    """Step with `Ticked` at this instant; replaces the one before it."""

    at: float


Effect = Grant | WakeAt
