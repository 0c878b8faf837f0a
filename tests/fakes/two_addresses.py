"""Names with two addresses: one refuses connections, the other can't be reached."""

import socket

import pytest


def two_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve every name to these addresses, until the test ends."""
    addresses = [
        (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, 1))
        for address in ("127.0.0.1", "255.255.255.255")
    ]

    def resolved(*_args: object, **_options: object) -> object:
        return addresses

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
