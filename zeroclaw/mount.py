"""The contract of the daemon's own doors, which channels that are reached here open."""

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from zeroclaw.value import Value

_FINAL = range(200, 600)
HOOK_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+")
"""What the public listener serves; see `Mount.public`."""


class LineStream(Protocol):
    """One control-socket connection, a JSON object a line, at most 1 MiB each."""

    async def receive(self) -> Mapping[str, object] | None:
        """Return the next object, None at the end of the connection."""
        ...

    async def send(self, line: Mapping[str, object]) -> None:
        """Write one object; raises ConnectionError when the peer is gone."""
        ...


class HookRequest(Protocol):
    """One POST to a mounted path, of which only the head has been read."""

    @property
    def headers(self) -> Mapping[str, str]:
        """By name in lower case; of headers that came twice, the last. Untrusted."""
        ...

    async def body(self) -> bytes:
        """Read the body, within the listener's bounds of size and time; once.

        A hook that can tell strangers by the head alone does so before it reads: then they cost
        nothing. What is too large, too slow or cut raises what only the listener catches.
        """
        ...


class HookAnswer(Value):
    """What the platform is told.

    Attributes:
        status: The HTTP status; only below 300 is the connection kept for more requests.
        retry_after_s: When the platform should try again, 0 to leave that to it.
        body: Plain text, for a platform that wants its own words back.
    """

    status: int = 200
    retry_after_s: int = 0
    body: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no status that ends a request.

        Raises:
            ValueError: It is none.
        """
        if self.status not in _FINAL:
            message = f"`{self.status}` is no HTTP status from 200 to 599"
            raise ValueError(message)


Hook = Callable[[HookRequest], Awaitable[HookAnswer]]
"""Answers requests, several at once; what it raises is told as a status of 500 or more."""


class Mount(Protocol):
    """The daemon's own doors, for channels that people or platforms reach on this machine."""

    def web(self, prefix: str, application: object) -> str:
        """Mount an ASGI application on the local listener, behind login, CSRF and host check.

        Returns:
            The URL that a person opens, with a one-time login.
        """
        ...

    def stream(self, name: str, serve: Callable[[LineStream], Awaitable[None]]) -> None:
        """Serve connections of the control socket that open with `name`; same uid only."""
        ...

    def public(self, path: str, hook: Hook) -> AbstractContextManager[None]:
        """Answer POST requests to one path of the public listener, while the context is open.

        Open to the whole internet: the hook itself finds out who asks. Only for channels whose
        manifest says so; for others there is no such listener.

        Args:
            path: The whole path, such as `/telegram`.
            hook: Called with each request.

        Raises:
            ConfigError: Another channel has the path, or there is no public listener.
        """
        ...
