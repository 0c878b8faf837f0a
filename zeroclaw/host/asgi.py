"""ASGI as the local listener speaks it (asgi.readthedocs.io, version 3, read 2026-11)."""

from collections.abc import Awaitable, Callable, MutableMapping

Scope = MutableMapping[str, object]
Message = MutableMapping[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

PROVE = "zeroclaw.prove"
"""In a scope: what is called, without arguments, with a request that is of use; see `crowd.py`."""
