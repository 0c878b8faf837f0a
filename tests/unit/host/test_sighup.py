"""What a SIGHUP means."""

import errno
import os
import pty
import signal
import subprocess
import sys

import pytest

from zeroclaw.host.hangup import Hangup, Meaning, terminal

ASKS = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever the tests inherited
os.open(sys.argv[1], os.O_RDWR)  # makes it the terminal of this session
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
from zeroclaw.host.hangup import Hangup
hangup = Hangup()
os.kill(os.getpid(), signal.SIGHUP)
for _ in range(2):
    signal.sigwait({signal.SIGHUP})
    print(hangup.meaning(), flush=True)
"""


class Terminals:
    """A terminal that exists until it goes away."""

    def __init__(self, *, there: bool) -> None:
        self.there = there

    def __call__(self) -> bool:
        return self.there


@pytest.mark.parametrize(
    ("had_terminal", "is_there", "ignored", "means"),
    [
        (True, True, False, "reload"),
        (True, False, False, "stop"),
        (True, False, True, "nothing"),
        (False, False, False, "reload"),
        (False, False, True, "reload"),
    ],
)
def test_a_lost_terminal_is_no_request_to_reload(
    had_terminal: bool, is_there: bool, ignored: bool, means: Meaning
) -> None:
    """It ends programs started there, as usual; programs under `nohup` go on."""
    terminals = Terminals(there=had_terminal)
    hangup = Hangup(has_terminal=terminals, ignored=ignored)
    terminals.there = is_there
    assert hangup.meaning() == means


def test_a_process_that_outlived_its_terminal_reloads_from_then_on() -> None:
    """A terminal disappears only once."""
    terminals = Terminals(there=True)
    hangup = Hangup(has_terminal=terminals, ignored=True)
    terminals.there = False
    assert [hangup.meaning(), hangup.meaning()] == ["nothing", "reload"]


def test_a_lack_of_descriptors_is_no_lost_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that was asked to reload would stop instead."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", refuse)
    assert terminal()


def test_a_signal_before_the_handler_is_used_is_kept() -> None:
    """Otherwise `systemctl reload` right after a start would end the new process."""
    received: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, _frame: received.append(number))
    hangup = Hangup()
    hangup.keep()
    try:
        signal.raise_signal(signal.SIGHUP)
        assert received == []
    finally:
        hangup.deliver()
        signal.signal(signal.SIGHUP, before)
    assert received == [signal.SIGHUP]


@pytest.mark.slow
def test_a_real_lost_terminal_is_detected() -> None:
    """With the terminal present the signal means a reload; the terminal's end means the end."""
    controlling, other_end = pty.openpty()
    command = [sys.executable, "-c", ASKS, os.ttyname(other_end)]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"reload\n"
        os.close(other_end)
        os.close(controlling)
        assert child.stdout.readline() == b"stop\n"
