"""The one place that calls third-party code and catches everything it may raise.

Tools, conditions, hooks, subscribers and entry points are called through here. It sets no
time-outs; the caller does.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import PurePath
from traceback import walk_tb
from typing import TypeVar

from zeroclaw.errors import ZeroclawError
from zeroclaw.value import Value

T = TypeVar("T")


class Raised(Value):
    """An exception raised by foreign code.

    Attributes:
        error: The exception, including the `ZeroclawError`s that a contract allows.
    """

    error: Exception

    @property
    def line(self) -> str:
        """One line for a log or a model: the text of our own errors, else only the type.

        Foreign error texts may contain anything, including secrets, so they are left out.
        """
        if isinstance(self.error, ZeroclawError):
            return str(self.error)
        return f"raised {type(self.error).__name__}"


def place_of(error: Exception) -> str:
    """Return where an error was raised, ` at file.py:7`; empty if it never was."""
    frames = ((frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__))
    # The import of a missing module fails in Python's own frozen code.
    places = [
        f" at {PurePath(file).name}:{line}" for file, line in frames if not file.startswith("<")
    ]
    return places[-1] if places else ""


async def call(function: Callable[[], Awaitable[T]]) -> T | Raised:
    """Await foreign code; return its result or its exception. Cancellation passes through.

    Unless no task was cancelled: libraries raise that as well, and the caller's task would end
    without a sign.
    """
    try:
        return await function()
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is None or task.cancelling():
            raise
        return Raised(error=RuntimeError("it ended as if it had been cancelled"))
    except Exception as error:  # noqa: BLE001  this is the room for it
        return Raised(error=error)


def call_now(function: Callable[[], T]) -> T | Raised:
    """Call synchronous foreign code; return its result or its exception."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001  this is the room for it
        return Raised(error=error)
