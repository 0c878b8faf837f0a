"""Resolves host names with this machine's resolver.

A look-up can't be interrupted: a caller that gives up leaves its thread waiting for as long as a
stranger's name server likes. So look-ups have threads of their own, and can't use up those for file
access.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

from zeroclaw.errors import ZeroclawError, system_words

ASKED_AT_ONCE = 16
"""Concurrent look-ups; more have to wait. Equals the number of concurrent fetches."""


class NameUnknown(ZeroclawError):
    """Raised when a name has no address, or no server could be asked; the text says which."""


async def resolve(name: str) -> tuple[str, ...]:
    """Return all addresses of a name, in the order in which to try them.

    The hosts file counts. A numeric address, in any notation, is returned as an address.

    Raises:
        NameUnknown: The name could not be resolved.
    """
    loop = asyncio.get_running_loop()
    try:
        ask = partial(socket.getaddrinfo, name, None, type=socket.SOCK_STREAM)
        found = await loop.run_in_executor(_threads(), ask)
    except OSError as error:
        raise NameUnknown(system_words(error)) from error
    except UnicodeError as error:
        message = "the name can't be asked for"
        raise NameUnknown(message) from error
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the resolver threads, created on first use; they end with the process."""
    return ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="names")
