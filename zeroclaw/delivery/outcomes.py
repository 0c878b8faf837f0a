"""The outcomes of a call to a platform."""

from typing import Generic, TypeVar

from zeroclaw.value import Value

T = TypeVar("T")


class Delivered(Value, Generic[T]):
    """The platform carried out the call."""

    value: T


class Unreachable(Value):
    """Nothing arrived; the same call may succeed later.

    Attributes:
        reason: One line.
        retry_after_s: The wait that the platform asked for, None when it could not be reached.
        barred: Something before the platform refused it; see `ChannelUnavailable`.
        needs_operator: Only after a person acts, as when the platform refused the credentials.
    """

    reason: str
    retry_after_s: float | None = None
    barred: bool = False
    needs_operator: bool = False


class Rejected(Value):
    """The platform rejected the call for good; see `ChannelRejected`."""

    reason: str
    gone: bool = False
    markup: bool = False


class Unknown(Value):
    """The call may have arrived: no answer, no answer in time, or a broken adapter.

    Attributes:
        reason: One line.
        broken: The adapter raised an exception that no channel may raise; a retry will hardly help.
        late: The platform was only slow, and may still carry it out.
    """

    reason: str
    broken: bool = False
    late: bool = False


CallOutcome = Delivered[T] | Unreachable | Rejected | Unknown
