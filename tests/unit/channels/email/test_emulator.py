"""The test mail servers say why they do not start."""

import re
import signal
import socket
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path

import pytest

from channels._remote.emulator.http import reserve_port
from channels.email.emulator import servers
from zeroclaw import ConfigError


@pytest.mark.needs("dovecot", "postfix")
def test_a_server_that_fails_at_its_start_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At once, even if another program answers at its port; no process or file remains (P10)."""
    with tempfile.TemporaryDirectory(prefix="zeroclaw-") as directory, socket.socket() as occupied:
        place = Path(directory)
        place.chmod(0o711)  # the servers run as other users
        monkeypatch.setattr(tempfile, "tempdir", directory)
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        ports = chain([int(occupied.getsockname()[1])], iter(reserve_port, None))
        monkeypatch.setattr(servers, "reserve_port", lambda: next(ports))
        with pytest.raises(ConfigError) as raised:
            servers.started("secret")
        assert list(place.iterdir()) == []
    assert re.fullmatch(
        r"try: dovecot does not start: [^\n]*already in use[^\n]*", str(raised.value)
    )


KILLED = """
import os, signal
from channels.email.emulator.servers import started
found = started("secret")
print(found.home, found.imaps, found.submission, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.needs("dovecot", "postfix")
def test_a_kill_leaves_no_server_and_no_file() -> None:
    """The guard holds the pipe until it has cleaned up."""
    process = subprocess.run((sys.executable, "-c", KILLED), stdout=subprocess.PIPE, check=False)
    home, *ports = process.stdout.decode().split()
    assert (process.returncode, len(ports), Path(home).exists()) == (-signal.SIGKILL, 2, False)
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(port)))


def test_a_reserved_port_is_not_given_to_others() -> None:
    """But a server that is given it can listen there."""
    port = reserve_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with (
        socket.create_server(("127.0.0.1", port)) as server,
        socket.create_connection(("127.0.0.1", port)),
    ):
        server.accept()[0].close()
