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


def set_terminal(patch: pytest.MonkeyPatch, *, is_there: bool) -> None:
    """Let the system have a terminal for this process, or none."""
    opened = os.open

    def tty(path: str, flags: int, *rest: int) -> int:
        if path != "/dev/tty":
            return opened(path, flags, *rest)
        if not is_there:
            raise OSError(errno.ENXIO, path)
        return opened(os.devnull, os.O_RDWR)

    patch.setattr(os, "open", tty)


def started(patch: pytest.MonkeyPatch, *, has_terminal: bool, ignored: bool) -> Hangup:
    """A process that found this at its start."""
    set_terminal(patch, is_there=has_terminal)

    def getsignal(_number: int) -> signal.Handlers:
        return signal.SIG_IGN if ignored else signal.SIG_DFL

    patch.setattr(signal, "getsignal", getsignal)
    return Hangup()


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
    had_terminal: bool,
    is_there: bool,
    ignored: bool,
    means: Meaning,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends programs started there, as usual; programs under `nohup` go on."""
    hangup = started(monkeypatch, has_terminal=had_terminal, ignored=ignored)
    set_terminal(monkeypatch, is_there=is_there)
    assert hangup.meaning() == means


def test_a_process_that_outlived_its_terminal_reloads_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A terminal disappears only once."""
    hangup = started(monkeypatch, has_terminal=True, ignored=True)
    set_terminal(monkeypatch, is_there=False)
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
