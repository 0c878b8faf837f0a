"""Asks this machine's resolver for the addresses of a host's name.

The resolver can't be interrupted: who gives up leaves its thread waiting, for as long as a stranger's
name server likes. So it has threads of its own, and never takes those that all files wait for.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

from zeroclaw.errors import ZeroclawError, system_words

ASKED_AT_ONCE = 16
"""Names; further ones wait. As many as fetches run at once."""


class NameUnknown(ZeroclawError):
    """Raised when a name has no address, or no server could be asked; the text says which."""


async def resolve(name: str) -> tuple[str, ...]:
    """Return every address of a name, in the order in which they should be tried.

    The hosts file counts. An address in numbers, however it is written, comes back as itself.

    Raises:
        NameUnknown: There is none.
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
    """Return the threads that ask, made for the first name; they end with the process."""
    return ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="names")
