"""Asks this machine's resolver for the addresses of a host's name."""

import asyncio
import socket

from zeroclaw.errors import ZeroclawError


class NameUnknown(ZeroclawError):
    """Raised when a name has no address, or nobody could be asked; the text says which."""


async def resolve(name: str) -> tuple[str, ...]:
    """Return every address of a name, in the order in which they should be tried.

    The hosts file counts. An address in numbers, however it is written, comes back as itself.

    Raises:
        NameUnknown: There is none.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        words = error.strerror if isinstance(error, OSError) else None
        raise NameUnknown((words or "the name can't be asked for").lower()) from error
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))
