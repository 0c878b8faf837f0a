"""What both listeners are made with: a bound socket, bounds, and ASGI's names."""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, MutableMapping

from zeroclaw.errors import PortInUse, system_words
from zeroclaw.value import Value

# ASGI, version 3 (asgi.readthedocs.io, read 2026-11); Starlette's own names for it load Starlette.
Scope = MutableMapping[str, object]
Message = MutableMapping[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

CLOSE_S = 1.0
PROVE = "zeroclaw.prove"
"""In an ASGI scope: called without arguments for a request that proves its connection."""


class Bounds(Value):
    """What strangers can make grow on a listener, and how far; times in seconds.

    Attributes:
        connections: Also those whose handshake is under way; each carries one request at a time.
        head_bytes: Of a request line and its headers.
        body_bytes: Telegram's largest update, a long message that answers another one, stays below
            a tenth of it by the limits that its API documents.
        head_s: For the TLS handshake, and again from there to the end of the first head.
        body_s: For a body.
        answer_s: For the body and the hook; Telegram gives up after 60 s.
        keep_s: From an answer to the end of the next head; longer than the 60 s after which
            Telegram closes, so that it is the one who does, and no update meets a connection that
            is about to go.
        linger_bytes: Read and thrown away behind an early answer.
        linger_s: Likewise, and waited for.
        full_s: Until a connection is accepted again after the system had no room for one.
        mount_s: From the start of serving, for a page that is yet to be mounted.
    """

    connections: int = 128
    head_bytes: int = 16 * 1024
    body_bytes: int = 1024 * 1024
    head_s: float = 10.0
    body_s: float = 10.0
    answer_s: float = 50.0
    keep_s: float = 75.0
    linger_bytes: int = 64 * 1024
    linger_s: float = 1.0
    full_s: float = 1.0
    mount_s: float = 0.0


async def close_stream(writer: asyncio.StreamWriter) -> None:
    """Close a connection; what a peer doesn't read within a second is lost. Safe twice."""
    writer.close()
    try:
        async with asyncio.timeout(CLOSE_S):
            await writer.wait_closed()
    except TimeoutError:
        writer.transport.abort()
    except OSError:
        return


def bind(host: str, port: int, *, key: str) -> socket.socket:
    """Return a socket that listens and does not block; the caller closes it.

    Args:
        host: An address of this machine, of either family.
        port: 0 for any free one.
        key: The key of the configuration that says the port.

    Raises:
        PortInUse: Another program has the port, or it may not be had.
    """
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a restart need not wait
        bound.bind((host, port))
        bound.listen()  # binding alone would let a second daemon bind as well
    except OSError as error:
        bound.close()
        taken = error.errno == errno.EADDRINUSE
        why = "is in use by another program" if taken else f"can't be had: {system_words(error)}"
        message = f"port {port} on {host} {why}; set `{key}` to a free one, or stop that"
        raise PortInUse(message if taken else message.removesuffix(", or stop that")) from error
    bound.setblocking(False)  # noqa: FBT003  the library's own signature
    return bound
