"""A process that has imported the daemon and opened nothing; each daemon is a fork of it.

    python -m tests.faults.fork_server DESCRIPTOR

Importing is most of a start, building its models is most of the rest, and no kill of a test interrupts
either. A fork is a separate process that then starts from the beginning: it reads its configuration, opens
its store and its sockets, and dies of a SIGKILL like any other. The server itself has no thread, no event
loop and no file but the sockets of its clients (`tests/faults/fork_client.py`).
"""

import gc
import os
import select
import socket
import sys
from importlib import import_module

from pydantic import BaseModel

from zeroclaw.codec import decode
from zeroclaw.gate import receipt_screen
from zeroclaw.redact import Redactor
from zeroclaw.value import Value

# The modules that a daemon has loaded by the time it has answered on its channels and its pages.
PRELOADED = (
    "channels.discord.adapter",
    "channels.email.adapter",
    "channels.slack.adapter",
    "channels.telegram.adapter",
    "channels.terminal.adapter",
    "channels.web.adapter",
    "tests.faults.killed_daemon",
    "tests.journeys.bench_tools",
    "zeroclaw.cli.greeting",
    "zeroclaw.cli.run",
    "zeroclaw.console.sections",
    "zeroclaw.console.site",
    "zeroclaw.daemon.services",
    "zeroclaw.host.aiohttp_client",
    "zeroclaw.host.http_server",
    "zeroclaw.host.web_server",
    "zeroclaw.inbound.commands.explain",
    "zeroclaw.providers.openai",
    "zeroclaw.tools.attachments",
    "zeroclaw.tools.fetch",
    "zeroclaw.tools.files",
    "zeroclaw.tools.notes",
    "zeroclaw.tools.results",
    "zeroclaw.tools.shell",
    "zeroclaw_test_platform.adapter",
    "anyio._backends._asyncio",
    "encodings.ascii",
    "encodings.idna",
    "encodings.utf_8_sig",
    "importlib.readers",
    "pydantic.dataclasses",
    "pydantic.type_adapter",
    "telegramify_markdown",
)
MAX_SPEC_BYTES = 256 * 1024
EXIT_CODE = b"\0ended "
"""Precedes the exit code that the server sends on a daemon's socket when it has ended."""


class DaemonSpec(Value, stored_as="Wish"):  # as the fork server of an earlier release calls it
    """The daemon to start.

    Attributes:
        module: The module whose `main` is run.
        arguments: The command line without the program.
        environment: The whole environment.
        directory: The working directory.
        log: The file to which standard error is appended.
    """

    module: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    log: str


def build() -> None:
    """Build what daemons build when they first need it, and all alike: models and expressions."""
    models = BaseModel.__subclasses__()
    for model in models:  # it grows meanwhile
        models += model.__subclasses__()
        model.model_rebuild()
    receipt_screen.screen("receipt", lambda _: None)
    receipt_screen.screen_shown("receipt", Redactor(("some longer secret",)))


def serve(control: socket.socket) -> DaemonSpec | None:
    """Fork a daemon for each request until the client closes the socket.

    Returns:
        The spec of the daemon in a forked process, None in the server.
    """
    poll = select.poll()
    poll.register(control, select.POLLIN)
    daemons: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for descriptor, _ in poll.poll():
            if descriptor != control.fileno():
                pid, line = daemons.pop(descriptor)
                poll.unregister(descriptor)
                os.close(descriptor)
                _report_end(pid, line)
                continue
            request, descriptors, _, _ = socket.recv_fds(control, MAX_SPEC_BYTES, 1)
            if not request:
                return None
            line = socket.socket(fileno=descriptors[0])
            pid = os.fork()
            if pid == 0:
                _close_inherited(control, daemons)
                return _set_up_daemon(request, line)
            end = os.pidfd_open(pid)
            poll.register(end, select.POLLIN)
            daemons[end] = (pid, line)


def _report_end(pid: int, line: socket.socket) -> None:
    _, status = os.waitpid(pid, 0)
    with line:
        try:
            line.sendall(EXIT_CODE + f"{os.waitstatus_to_exitcode(status)}\n".encode())
        except OSError:
            return  # the client has gone


def _close_inherited(control: socket.socket, daemons: dict[int, tuple[int, socket.socket]]) -> None:
    """Close the server's descriptors in a forked process."""
    control.close()
    for descriptor, (_, line) in daemons.items():
        os.close(descriptor)
        line.close()


def _set_up_daemon(request: bytes, line: socket.socket) -> DaemonSpec:
    """Set up the process as if it had just been executed."""
    spec = decode(DaemonSpec, request)
    line.sendall(f"{os.getpid()}\n".encode())
    os.dup2(line.fileno(), 1)
    line.close()
    log = os.open(spec.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.close(log)
    # Opened anew on the new files: a stream finds out when it is opened whether it is seekable.
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.environ.clear()
    os.environ.update(spec.environment)
    os.chdir(spec.directory)
    sys.path[1:1] = [
        entry for entry in spec.environment.get("PYTHONPATH", "").split(os.pathsep) if entry
    ]
    sys.argv = [spec.module, *spec.arguments]
    return spec


def main() -> None:
    """Serve; in a forked process, run the daemon."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in PRELOADED:
        import_module(name)
    build()
    gc.freeze()  # so that garbage collection in a fork copies no page of it
    spec = serve(control)
    if spec is not None:
        import_module(spec.module).main()


if __name__ == "__main__":
    main()
