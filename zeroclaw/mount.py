"""The contract of the daemon's own listeners, for channels that people or platforms connect to."""

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from zeroclaw.value import Value

_FINAL = range(200, 600)
HOOK_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")
"""The paths that the public listener accepts; see `Mount.public`."""


class LineStream(Protocol):
    """One control-socket connection: one JSON object per line, at most 1 MiB each."""

    async def receive(self) -> Mapping[str, object] | None:
        """Return the next object, None once the connection has ended."""
        ...

    async def send(self, line: Mapping[str, object]) -> None:
        """Write one object; raise `ConnectionError` if the peer has disconnected."""
        ...


class HookRequest(Protocol):
    """One POST to a mounted path; only the head has been read so far."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by lower-case name; the last one wins if repeated. Untrusted."""
        ...

    async def body(self, max_bytes: int = 0) -> bytes:
        """Read the body, within the listener's limits of size and time; call it once.

        A hook that can recognise strangers by the head alone should do so before reading, so that
        they cost nothing. A body that is too large, too slow or cut off raises an exception that
        only the listener catches.

        Args:
            max_bytes: A size limit for the recognised platform, in place of the one for strangers.
        """
        ...


class HookAnswer(Value):
    """The response to the platform.

    Attributes:
        status: The HTTP status; the connection stays open for more requests only below 300.
        retry_after_s: When the platform should retry, 0 to leave that to it.
        body: Plain text, for a platform that expects its own text back.
    """

    status: int = 200
    retry_after_s: int = 0
    body: str = ""

    def __post_init__(self) -> None:
        """Check the status.

        Raises:
            ValueError: The status is not a final one, from 200 to 599.
        """
        if self.status not in _FINAL:
            message = f"`{self.status}` is no HTTP status from 200 to 599"
            raise ValueError(message)


Hook = Callable[[HookRequest], Awaitable[HookAnswer]]
"""Answers requests, several at once; an exception becomes a status of 500 or more."""


class Mount(Protocol):
    """The daemon's own listeners, for channels that people or platforms connect to."""

    def web(self, prefix: str, application: object) -> str:
        """Mount an ASGI application on the local listener, behind login, CSRF and host check.

        Returns:
            The URL that a person opens, with a one-time login.
        """
        ...

    def stream(self, name: str, serve: Callable[[LineStream], Awaitable[None]]) -> None:
        """Serve control-socket connections that open with `name`; same uid only."""
        ...

    def public(self, path: str, hook: Hook) -> AbstractContextManager[None]:
        """Answer POST requests to one path of the public listener while the context is open.

        The path is open to the whole internet: the hook must authenticate each request. Only for
        channels whose manifest says so; others have no such listener.

        Args:
            path: The whole path, such as `/telegram`.
            hook: Called with each request.

        Raises:
            ConfigError: Another channel has the path, or there is no public listener.
        """
        ...
