"""What stands in for mail says why it does not start."""

import re
import socket
from pathlib import Path

import pytest

from channels._remote.emulator.http import kept_port
from channels.email.emulator.servers import Servers
from zeroclaw import ConfigError


@pytest.mark.needs("dovecot", "postfix")
def test_a_server_that_ends_at_its_start_is_told_in_one_line(tmp_path: Path) -> None:
    """At once, and even if another program answers at its port (P10)."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        submission, sasl, mx, other = (kept_port() for _ in range(4))
        mail = Servers(
            home=tmp_path,
            imaps=port,
            submission=submission,
            sasl=sasl,
            mx=mx,
            milter=other,
            tokens=other,
        )
        try:
            with pytest.raises(ConfigError) as told:
                mail.start()
        finally:
            mail.stop()
    assert re.fullmatch(r"try: dovecot does not start: [^\n]*already in use[^\n]*", str(told.value))


def test_a_kept_port_is_given_to_nobody_else() -> None:
    """But a server that was told of it can listen there."""
    port = kept_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with (
        socket.create_server(("127.0.0.1", port)) as server,
        socket.create_connection(("127.0.0.1", port)),
    ):
        server.accept()[0].close()
