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


class Arrived(Value, Generic[T]):
    """The platform carried it out."""

    value: T


class NotArrived(Value):
    """Nothing arrived; the same call may do later.

    Attributes:
        why: One line.
        retry_after_s: What the platform asked for, None when it could not be reached at all.
    """

    why: str
    retry_after_s: float | None = None


class TurnedDown(Value):
    """The platform refused it for good; see `ChannelRejected`."""

    why: str
    gone: bool = False
    markup: bool = False


class Lost(Value):
    """It may have arrived: no answer, no answer in time, or an adapter that broke down.

    Attributes:
        why: One line.
        broken: The adapter raised what no channel may raise; it will hardly do better next time.
        late: The platform was only slow, and may carry it out yet.
    """

    why: str
    broken: bool = False
    late: bool = False


Ending = Arrived[T] | NotArrived | TurnedDown | Lost


def ending_of(result: T | foreign.Raised) -> Ending[T]:
    """Return the ending of a call: what it returned, or what its adapter raised."""
    if not isinstance(result, foreign.Raised):
        return Arrived(value=result)
    match result.error:
        case RateLimited() as error:
            return NotArrived(why=str(error), retry_after_s=error.retry_after_s)
        case ChannelUnavailable() | NeedsOperator() as error:
            # Without a key that works nothing arrives either; the supervisor tells the operator.
            return NotArrived(why=str(error))
        case ChannelRejected() as error:
            return TurnedDown(why=str(error), gone=error.gone, markup=error.markup)
        case Refused() as error:
            return TurnedDown(why=str(error))
        case DeliveryUnknown() as error:
            return Lost(why=str(error), late=error.late)
        case _:
            return Lost(why=result.line, broken=True)
