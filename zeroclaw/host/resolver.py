"""Resolves host names with this machine's resolver.

A look-up can't be interrupted: if its caller gives up, its thread waits for as long as a stranger's
name server takes. So look-ups run in a separate pool, and can't use up the threads for file access;
and neither the end of a `LeavingLoop` nor that of the process (`zeroclaw.cli.main`) waits for one.
"""

import asyncio
import socket
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from zeroclaw.errors import ZeroclawError, system_words

T = TypeVar("T")

MAX_LOOKUPS = 16
"""Concurrent look-ups; more have to wait. Equals the number of concurrent fetches."""
_THREADS = ThreadPoolExecutor(MAX_LOOKUPS, thread_name_prefix="names")
"""The threads for look-ups, each started when it is needed; they end with the process."""


class LeavingLoop(asyncio.SelectorEventLoop):
    """A loop whose end does not wait for threads: look-ups in them take as long as name servers do."""

    async def shutdown_default_executor(self, *_: float | None) -> None:
        """Leave the threads to `close`."""


def run(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine that may look up names; as `asyncio.run`, but on a `LeavingLoop`."""
    with asyncio.Runner(loop_factory=LeavingLoop) as runner:
        return runner.run(main)


class NameUnknown(ZeroclawError):
    """Raised when a name has no address, or no name server answered; the text says which."""


async def resolve(name: str) -> tuple[str, ...]:
    """Return all addresses of a name, in the order in which to try them.

    Reads the hosts file, too. A numeric address, in any notation, is returned as an address.

    Raises:
        NameUnknown: The name could not be resolved.
    """
    loop = asyncio.get_running_loop()
    try:
        look_up = partial(socket.getaddrinfo, name, None, type=socket.SOCK_STREAM)
        found = await loop.run_in_executor(_THREADS, look_up)
    except OSError as error:
        raise NameUnknown(system_words(error)) from error
    except UnicodeError as error:
        message = "the name can't be looked up"
        raise NameUnknown(message) from error
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))
