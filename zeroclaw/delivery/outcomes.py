"""How a call to a platform ended, whatever its adapter returned or raised."""

from typing import Generic, TypeVar

from zeroclaw import foreign
from zeroclaw.errors import (
    ChannelRejected,
    ChannelUnavailable,
    DeliveryUnknown,
    NeedsOperator,
    RateLimited,
    Refused,
)
from zeroclaw.value import Value

T = TypeVar("T")


class Delivered(Value, Generic[T]):
    """The platform carried it out."""

    value: T


class Unreachable(Value):
    """Nothing arrived; the same call may do later.

    Attributes:
        why: One line.
        retry_after_s: What the platform asked for, None when it could not be reached at all.
    """

    why: str
    retry_after_s: float | None = None


class Rejected(Value):
    """The platform refused it for good; see `ChannelRejected`."""

    why: str
    gone: bool = False
    markup: bool = False


class Unknown(Value):
    """It may have arrived: no answer, no answer in time, or an adapter that broke down.

    Attributes:
        why: One line.
        broken: The adapter raised what no channel may raise; it will hardly do better next time.
        late: The platform was only slow, and may carry it out yet.
    """

    why: str
    broken: bool = False
    late: bool = False


CallOutcome = Delivered[T] | Unreachable | Rejected | Unknown


def outcome_of(result: T | foreign.Raised) -> CallOutcome[T]:
    """Return the outcome of a call: what it returned, or what its adapter raised."""
    if not isinstance(result, foreign.Raised):
        return Delivered(value=result)
    match result.error:
        case RateLimited() as error:
            return Unreachable(why=str(error), retry_after_s=error.retry_after_s)
        case ChannelUnavailable() | NeedsOperator() as error:
            # Without a key that works nothing arrives either; the supervisor tells the operator.
            return Unreachable(why=str(error))
        case ChannelRejected() as error:
            return Rejected(why=str(error), gone=error.gone, markup=error.markup)
        case Refused() as error:
            return Rejected(why=str(error))
        case DeliveryUnknown() as error:
            return Unknown(why=str(error), late=error.late)
        case _:
            return Unknown(why=result.line, broken=True)
