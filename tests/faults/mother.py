"""A process that has imported the daemon and opened nothing; each daemon is a fork of it.

    python -m tests.faults.mother DESCRIPTOR

Importing is most of a start, and what a kill interrupts is none of it. What is forked is a process
of its own that then starts from the beginning: it reads its configuration, opens its store and its
sockets, and dies of a SIGKILL like any other. The mother itself has no thread, no loop and no file
but the lines to whoever asked (`tests/faults/forked.py`).
"""

import gc
import os
import select
import socket
import sys
from importlib import import_module

from zeroclaw.codec import decode
from zeroclaw.value import Value

# What a daemon loads by the time it takes events; a library that is missing is missed when used.
LOADED = (
    "channels.discord.adapter",
    "channels.email.adapter",
    "channels.slack.adapter",
    "channels.telegram.adapter",
    "channels.terminal",
    "channels.web",
    "tests.faults.killed_daemon",
    "tests.journeys.bench_tools",
    "zeroclaw.cli.run",
    "zeroclaw.daemon.services",
    "zeroclaw.providers.openai",
    "zeroclaw.tools.attachments",
    "zeroclaw.tools.fetch",
    "zeroclaw.tools.files",
    "zeroclaw.tools.notes",
    "zeroclaw.tools.results",
    "zeroclaw.tools.shell",
    "zeroclaw_test_platform.adapter",
)
LONGEST_WISH = 256 * 1024
ENDED = b"\0ended "
"""What the mother says on a daemon's line when it has ended, before the exit code."""


class Wish(Value):
    """What a daemon is to be.

    Attributes:
        module: Its `main` is run.
        arguments: Of the command line, without the program.
        environment: All of it.
        directory: Where it stands.
        log: The file that standard error is appended to.
    """

    module: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    log: str


def serve(control: socket.socket) -> Wish | None:
    """Fork for each wish until nobody can wish any more.

    Returns:
        In a daemon what it is to be, in the mother None.
    """
    poll = select.poll()
    poll.register(control, select.POLLIN)
    born: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for descriptor, _ in poll.poll():
            if descriptor != control.fileno():
                pid, line = born.pop(descriptor)
                poll.unregister(descriptor)
                os.close(descriptor)
                _tell_end(pid, line)
                continue
            said, lines, _, _ = socket.recv_fds(control, LONGEST_WISH, 1)
            if not said:
                return None
            line = socket.socket(fileno=lines[0])
            pid = os.fork()
            if pid == 0:
                _leave(control, born)
                return _become(said, line)
            end = os.pidfd_open(pid)
            poll.register(end, select.POLLIN)
            born[end] = (pid, line)


def _tell_end(pid: int, line: socket.socket) -> None:
    _, status = os.waitpid(pid, 0)
    with line:
        try:
            line.sendall(ENDED + f"{os.waitstatus_to_exitcode(status)}\n".encode())
        except OSError:
            return  # whoever asked has gone


def _leave(control: socket.socket, born: dict[int, tuple[int, socket.socket]]) -> None:
    """Give up what is the mother's."""
    control.close()
    for descriptor, (_, line) in born.items():
        os.close(descriptor)
        line.close()


def _become(said: bytes, line: socket.socket) -> Wish:
    """Stand where a program stands when it is executed."""
    wish = decode(Wish, said)
    line.sendall(f"{os.getpid()}\n".encode())
    os.dup2(line.fileno(), 1)
    line.close()
    log = os.open(wish.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.close(log)
    # On what they are now: whether it can be sought is looked up as a stream is opened.
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.environ.clear()
    os.environ.update(wish.environment)
    os.chdir(wish.directory)
    sys.path[1:1] = [one for one in wish.environment.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.argv = [wish.module, *wish.arguments]
    return wish


def main() -> None:
    """Serve, or be a daemon."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in LOADED:
        import_module(name)
    gc.freeze()  # so that looking for garbage copies none of it
    wish = serve(control)
    if wish is not None:
        import_module(wish.module).main()


if __name__ == "__main__":
    main()
