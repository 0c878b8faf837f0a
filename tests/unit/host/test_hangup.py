"""What a SIGHUP means."""

import os
import pty
import signal
import subprocess
import sys

import pytest

from zeroclaw.host.hangup import Hangup, Meaning

ASKS = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever the tests were started with
os.open(sys.argv[1], os.O_RDWR)  # which makes it the terminal of this session
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
from zeroclaw.host.hangup import Hangup
hangup = Hangup()
os.kill(os.getpid(), signal.SIGHUP)
for _ in range(2):
    signal.sigwait({signal.SIGHUP})
    print(hangup.meaning(), flush=True)
"""


class Terminals:
    """One that is there until it goes away."""

    def __init__(self, *, there: bool) -> None:
        self.there = there

    def __call__(self) -> bool:
        return self.there


@pytest.mark.parametrize(
    ("began_with", "is_there", "ignored", "means"),
    [
        (True, True, False, "reload"),
        (True, False, False, "stop"),
        (True, False, True, "nothing"),
        (False, False, False, "reload"),
        (False, False, True, "reload"),
    ],
)
def test_a_terminal_that_went_away_is_no_wish_to_reload(
    began_with: bool, is_there: bool, ignored: bool, means: Meaning
) -> None:
    """It ends what was started there, as it always did; what `nohup` started goes on."""
    terminal = Terminals(there=began_with)
    hangup = Hangup(has_terminal=terminal, ignored=ignored)
    terminal.there = is_there
    assert hangup.meaning() == means


def test_what_outlived_its_terminal_reloads_from_then_on() -> None:
    """A terminal goes away once."""
    terminal = Terminals(there=True)
    hangup = Hangup(has_terminal=terminal, ignored=True)
    terminal.there = False
    assert [hangup.meaning(), hangup.meaning()] == ["nothing", "reload"]


def test_one_that_comes_before_anybody_listens_is_kept() -> None:
    """`systemctl reload` right after a start would else end what has just begun, as if it should."""
    came: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, _frame: came.append(number))
    hangup = Hangup()
    hangup.keep()
    try:
        signal.raise_signal(signal.SIGHUP)
        assert came == []
    finally:
        hangup.deliver()
        signal.signal(signal.SIGHUP, before)
    assert came == [signal.SIGHUP]


@pytest.mark.slow
def test_the_system_tells_a_real_terminal_that_went_away() -> None:
    """A signal while the terminal is there is a wish; the one that its end brings is its end."""
    terminal, other_end = pty.openpty()
    command = [sys.executable, "-c", ASKS, os.ttyname(other_end)]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"reload\n"
        os.close(other_end)
        os.close(terminal)
        assert child.stdout.readline() == b"stop\n"
