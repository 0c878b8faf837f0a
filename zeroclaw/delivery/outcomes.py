"""How a call to a platform ended, whatever its adapter returned or raised."""

from typing import Generic, TypeVar

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
