"""Bind a listening socket, or say in one line why it can't be had."""

import errno
import socket

from zeroclaw.errors import PortInUse


def bind(host: str, port: int, *, key: str) -> socket.socket:
    """Return a socket that listens and does not block; whoever asked closes it.

    Args:
        host: An address of this machine, of either family.
        port: 0 for any free one.
        key: The key of the configuration that says the port.

    Raises:
        PortInUse: Somebody else has the port, or it may not be had.
    """
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a restart need not wait
        bound.bind((host, port))
        bound.listen()  # binding alone would let a second daemon bind as well
    except OSError as error:
        bound.close()
        taken = error.errno == errno.EADDRINUSE
        why = "is in use by another program" if taken else f"can't be had: {error.strerror}".lower()
        message = f"port {port} on {host} {why}; set `{key}` to a free one, or stop that"
        raise PortInUse(message if taken else message.removesuffix(", or stop that")) from error
    bound.setblocking(False)  # noqa: FBT003  the library's own signature
    return bound
