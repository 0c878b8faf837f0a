"""The one place that calls code we did not write and catches all it may raise.

Tools, conditions, hooks, subscribers and entry points are called through here. It sets no
time-outs: its caller does.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from zeroclaw.errors import ZeroclawError
from zeroclaw.value import Value

T = TypeVar("T")


class Raised(Value):
    """What foreign code raised.

    Attributes:
        error: As raised. `ZeroclawError`s of the contract are passed on in here too.
    """

    error: Exception

    @property
    def line(self) -> str:
        """One line for a log or a model: the text of our own errors, else only the kind.

        A stranger's text may hold anything, secrets included, so it stays inside.
        """
        if isinstance(self.error, ZeroclawError):
            return str(self.error)
        return f"raised {type(self.error).__name__}"


async def call(function: Callable[[], Awaitable[T]]) -> T | Raised:
    """Await foreign code; cancellation passes through, everything else comes back."""
    try:
        return await function()
    except Exception as error:  # noqa: BLE001  this is the room for it
        return Raised(error=error)


def call_now(function: Callable[[], T]) -> T | Raised:
    """Call foreign code that does not wait."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001  this is the room for it
        return Raised(error=error)
