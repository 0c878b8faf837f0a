"""The common parts of all listeners: a bound socket, the accept loop, bounds, and ASGI's types."""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from contextlib import suppress

from zeroclaw.channel import Log, Refusals
from zeroclaw.errors import PortInUse, system_words
from zeroclaw.value import Value

# ASGI, version 3 (asgi.readthedocs.io, read 2026-11). Importing these from Starlette would load it.
Scope = MutableMapping[str, object]
Message = MutableMapping[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

CLOSE_S = 1.0
PROVE = "zeroclaw.prove"
"""Key in an ASGI scope; call its value to mark the connection as proven."""


class Bounds(Value):
    """Bounds the resources that strangers can use on a listener; times in seconds.

    Attributes:
        connections: Maximum number, including those in the TLS handshake; each serves one request
            at a time.
        head_bytes: Size of request line and headers.
        body_bytes: Size of a body, unless a hook that has recognised the platform accepts more.
        head_s: Time for the TLS handshake, and again from there to the end of the first head.
        body_s: Time for a body; on the local listener, for its next piece.
        answer_s: Time for body and hook together; Telegram gives up after 60 s.
        keep_s: Time from an answer to the end of the next head. It exceeds the 60 s after which
            Telegram closes, so Telegram closes first, and no update meets a connection that this
            side is closing.
        linger_bytes: Limit of bytes read and discarded after an early answer.
        linger_s: Time limit for that.
        full_s: Pause before accepting again when the system had no room for a connection.
        mount_s: Time from the start of serving in which requests wait for a page to be mounted.
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


async def accept_each(
    bound: socket.socket,
    serve: Callable[[socket.socket], Coroutine[object, object, None]],
    *,
    log: Log,
    full_s: float = 1.0,
) -> None:
    """Accept connections until cancelled; serve each in a task, and close it when that ends.

    asyncio's `start_server` and `sock_accept` would leave a connection open that arrives while they
    are cancelled, and the former does any number of TLS handshakes before it reports a connection.

    Args:
        bound: Listens, and does not block.
        serve: Serves a connection; must not raise.
        log: Receives an event when the system has no room for a connection.
        full_s: Pause after one of these, in seconds.
    """
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    refused = Refusals(log, "connection_not_accepted", level="error")
    async with asyncio.TaskGroup() as group:
        while True:
            loop.add_reader(bound, readable.set)
            try:
                await readable.wait()
            finally:
                loop.remove_reader(bound)
                readable.clear()
            try:
                accepted, _ = bound.accept()
            except (BlockingIOError, ConnectionError):  # the peer left before it was accepted
                continue
            except OSError as error:  # out of descriptors or memory
                refused.note(system_words(error))
                await asyncio.sleep(full_s)
                continue
            refused.clear()
            task = group.create_task(serve(accepted))
            # Not in the task: one that is cancelled before it began runs no `finally`.
            task.add_done_callback(lambda _, accepted=accepted: accepted.close())


async def close_stream(writer: asyncio.StreamWriter) -> None:
    """Close a connection; drops what the peer doesn't read within a second. Safe twice."""
    accepted = writer.get_extra_info("socket")
    writer.close()
    try:
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(CLOSE_S):
                await writer.wait_closed()
    finally:
        # Also if this is cancelled, or the loop would go on watching the socket that its owner now
        # closes. A closed transport can't be aborted (AttributeError).
        if accepted is not None and accepted.fileno() >= 0:
            writer.transport.abort()


def bind(host: str, port: int, *, key: str) -> socket.socket:
    """Return a listening, non-blocking socket; the caller closes it.

    Args:
        host: An address of this machine, IPv4 or IPv6.
        port: 0 for any free one.
        key: Configuration key of the port, for messages.

    Raises:
        PortInUse: Another program has the port, or binding is not permitted.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio lets a small write go at once only where the socket names its protocol.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # for quick restarts
        bound.bind((host, port))
        bound.listen()  # otherwise a second daemon could bind too
    except OSError as error:
        bound.close()
        remedy = f"set `{key}` to a free one"
        if error.errno == errno.EADDRINUSE:
            message = f"port {port} on {host} is in use by another program; {remedy}, or stop that"
        else:
            message = f"port {port} on {host} can't be used: {system_words(error)}; {remedy}"
        raise PortInUse(message) from error
    bound.settimeout(0)
    return bound
