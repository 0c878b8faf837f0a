"""Tells what a SIGHUP means: a wish to reload, or a terminal that went away.

Both come as the same signal (signal(7)). A terminal that went away is no process's controlling
terminal any more, which is when `/dev/tty` can't be opened (tty(4)).
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

Meaning = Literal["reload", "stop", "nothing"]


class Hangup:
    """Remembers how the process began: with a terminal or not, and told to ignore it or not."""

    def __init__(
        self, *, has_terminal: Callable[[], bool] | None = None, ignored: bool | None = None
    ) -> None:
        """Look; before a handler is set.

        Args:
            has_terminal: Tells whether there is one, at any time; None asks the system.
            ignored: Whether whoever started us had the signal ignored, as `nohup` does; None asks
                the system.
        """
        self._has_terminal = has_terminal or terminal
        self._had = self._has_terminal()
        self._ignored = (
            signal.getsignal(signal.SIGHUP) is signal.SIG_IGN if ignored is None else ignored
        )

    def keep(self) -> None:
        """Have the system keep one that comes before the daemon listens: it would end the process.

        For the thread that will be told, and those that it starts; `deliver` ends it.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})

    def deliver(self) -> None:
        """Let those through that were kept; once a handler is set."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})

    def means(self) -> Meaning:
        """Return what one that has just come means."""
        if not self._had or self._has_terminal():
            return "reload"
        self._had = False
        return "nothing" if self._ignored else "stop"


def terminal() -> bool:
    """Whether the process has a controlling terminal now."""
    with suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
        return True
    return False
