"""Tells the two meanings of SIGHUP apart: a request to reload, or a terminal that closed.

Both are the same signal (signal(7)). After a terminal closed, the process has no controlling
terminal, and `/dev/tty` can't be opened (tty(4)).
"""

import errno
import os
import signal
from typing import Literal

Meaning = Literal["reload", "stop", "nothing"]


class Hangup:
    """Remembers whether the process was started with a terminal, and whether it ignored the signal."""

    def __init__(self) -> None:
        """Record the initial state; create this before a handler is set."""
        self._had_terminal = terminal()
        # The parent process ignored it, as `nohup` does.
        self._is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN

    def keep(self) -> None:
        """Block the signal until the daemon handles it, because by default it ends the process.

        Applies to the calling thread and those it starts; `deliver` unblocks it.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})

    def deliver(self) -> None:
        """Unblock the signal; call this once a handler is set."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})

    def meaning(self) -> Meaning:
        """Return the meaning of a signal that has just arrived."""
        if not self._had_terminal or terminal():
            return "reload"
        self._had_terminal = False
        return "nothing" if self._is_ignored else "stop"


def terminal() -> bool:
    """Whether the process has a controlling terminal now."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in {errno.EMFILE, errno.ENFILE}  # no sign that it is gone
    return True
