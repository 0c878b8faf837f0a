"""The process that reads files keeps nothing that it does not need; the kernel holds it to that."""

import socket
import subprocess
import sys

import pytest

# Each starts a real process.
pytestmark = pytest.mark.slow

GIVE_UP = """
import os, socket
from zeroclaw.readers.child import confine, leave_network
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)  # no limit of processes holds root
left = leave_network()
confine(536_870_912, 10)
"""


def in_the_child(then: str) -> list[str]:
    """Run some lines in a process that has dropped its rights; return its output."""
    ended = subprocess.run(
        (sys.executable, "-P", "-c", GIVE_UP + then), capture_output=True, text=True, check=True
    )
    return ended.stdout.split()


def tried(what: str) -> str:
    """Lines that try something and say how it went."""
    return f"""
try:
    {what}
    print("done")
except OSError as error:
    print(type(error).__name__)
"""


def test_the_child_starts_no_process() -> None:
    assert in_the_child(tried("os.fork() or os._exit(0)")) == ["BlockingIOError"]


def test_the_child_writes_no_file() -> None:
    """Not even where every user may."""
    write = "os.write(os.memfd_create('kept'), b'x')"
    assert in_the_child(tried(write)) == ["OSError"]


def test_the_child_reaches_no_network() -> None:
    """Not even this machine; where the kernel refuses, the process says so."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        lines = in_the_child("print(left)" + tried(f"socket.socket().connect({address})"))
    if lines[0] == "False":
        pytest.skip("this kernel lets no plain user leave the network")
    assert lines == ["True", "OSError"]
