"""Opens the operator's web page, where there is a local listener and a web chat beside it.

The page, and what it is made of, is loaded when somebody asks for it first, in a thread: a daemon
whose operator never looks pays for it neither at its start nor in memory.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from zeroclaw.console.pulse import Pulse
from zeroclaw.daemon.in_force import PolicyInForce
from zeroclaw.daemon.parts import Parts
from zeroclaw.envelope import Admission, Envelope
from zeroclaw.host.control import Answer
from zeroclaw.host.local_listener import Receive, Scope, Send
from zeroclaw.inbound.identity import People
from zeroclaw.inbound.transcript import Transcript
from zeroclaw.value import Value

PREFIX = "/console"


class Given(Value):
    """What the page reads and calls of the house.

    Attributes:
        pulse: Tells open pages of changes.
        people: Who is known.
        policy: The one in force.
        transcript: What was said.
        admit: Ingress.
        pair: As `zeroclaw pair` asks it.
        grants: As `zeroclaw grants` asks it.
    """

    pulse: Pulse
    people: People
    policy: PolicyInForce
    transcript: Transcript
    admit: Callable[[Envelope], Awaitable[Admission]]
    pair: Answer
    grants: Answer


class Rooms(Protocol):
    """What is used of the page's rooms once they are loaded."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        ...

    async def keep(self) -> None:
        """Keep the page fresh, until cancelled."""
        ...


class OperatorPage:
    """The page, from its first request to the end; one for the whole daemon.

    Attributes:
        pulse: Tells open pages of changes.
    """

    def __init__(self, parts: Parts, group: asyncio.TaskGroup, given: Given) -> None:
        """Hold what it is wired of; nothing is loaded before it is asked for."""
        self._parts = parts
        self._group = group
        self._given = given
        self.pulse = given.pulse
        channels = parts.start.checked.channels
        self._web = next((part.name for part in channels if part.manifest.kind == "web"), "")
        self._loading = asyncio.Lock()
        self._rooms: Rooms | None = None

    def start(self) -> None:
        """Mount the page, if there is somewhere to mount it."""
        if self._parts.listener is not None and self._web:
            self._parts.listener.beside(PREFIX, self.answer)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the first one loads the page, and says where it is mounted."""
        async with self._loading:
            if self._rooms is None:
                self._rooms = await asyncio.to_thread(self._load, str(scope["root_path"]))
                self._group.create_task(self._rooms.keep(), name="console")
        await self._rooms.answer(scope, receive, send)

    def _load(self, root: str) -> Rooms:
        from zeroclaw.daemon.console_rooms import ConsoleRooms

        return ConsoleRooms(self._parts, self._given, self._web, root)
