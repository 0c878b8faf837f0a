"""A name with two addresses: one refuses connections, and the other can't be reached."""

import socket

import pytest


def two_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every name lead there, until the test ends."""
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, 1))
        for address in ("127.0.0.1", "255.255.255.255")
    ]

    def resolved(*_args: object, **_options: object) -> object:
        return found

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
