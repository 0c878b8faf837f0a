"""Resolves host names with this machine's resolver.

A look-up can't be interrupted: if its caller gives up, its thread waits for as long as a stranger's
name server takes. So look-ups run in a separate pool, and can't use up the threads for file access.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

from zeroclaw.errors import ZeroclawError, system_words

MAX_LOOKUPS = 16
"""Concurrent look-ups; more have to wait. Equals the number of concurrent fetches."""


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
        found = await loop.run_in_executor(_threads(), look_up)
    except OSError as error:
        raise NameUnknown(system_words(error)) from error
    except UnicodeError as error:
        message = "the name can't be looked up"
        raise NameUnknown(message) from error
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the resolver threads, created on first use; they end with the process."""
    return ThreadPoolExecutor(MAX_LOOKUPS, thread_name_prefix="names")
