"""The operator's web page, where there is a local listener and a web chat beside it.

The page, and what it is made of, is loaded when somebody asks for it first, in a thread: a daemon
whose operator never looks pays for it neither at its start nor in memory.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import cast

from zeroclaw.console.notifier import Notifier
from zeroclaw.daemon.services import Services
from zeroclaw.envelope import Address
from zeroclaw.host.connections import ASGIApp, Receive, Scope, Send
from zeroclaw.host.local_listener import LOG_OUT
from zeroclaw.host.logs import EventLog
from zeroclaw.inbound.identity import OPERATOR

PREFIX = "/console"
PING_S = 15.0


class OperatorPage:
    """The page, from its first request to the end; one for the whole daemon.

    Attributes:
        notifier: Tells open pages of changes.
    """

    def __init__(self, services: Services, group: asyncio.TaskGroup, notifier: Notifier) -> None:
        """Hold what it reads and calls; nothing is loaded before it is asked for."""
        self._services = services
        self._group = group
        self.notifier = notifier
        channels = services.foundation.start.checked.channels
        self._web = next((part.name for part in channels if part.manifest.kind == "web"), "")
        self._loading = asyncio.Lock()
        self._application: ASGIApp | None = None

    def start(self) -> None:
        """Mount the page, if there is somewhere to mount it."""
        listener = self._services.foundation.listener
        if listener is not None and self._web:
            listener.beside(PREFIX, self.answer)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the first one loads the page, and says where it is mounted."""
        async with self._loading:
            if self._application is None:
                root = str(scope["root_path"])
                self._application, keep_chains = await asyncio.to_thread(self._load, root)
                self._group.create_task(self._keep(keep_chains), name="console")
        await self._application(scope, receive, send)

    async def _keep(self, keep_chains: Callable[[], Coroutine[None, None, None]]) -> None:
        """Look through the audit, and have open pages tried, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(keep_chains(), name="chains")
                while True:
                    await self._services.foundation.clock.sleep(PING_S)
                    self.notifier.ping()
        finally:
            self.notifier.close()

    def _load(self, root: str) -> tuple[ASGIApp, Callable[[], Coroutine[None, None, None]]]:
        """Load the web stack and the files of the page; blocks.

        Args:
            root: The path that the page is mounted at.

        Returns:
            The page, and what keeps its audit chains looked through.
        """
        from zeroclaw.console.context import ConsoleContext
        from zeroclaw.console.frame import Place
        from zeroclaw.console.site import Site
        from zeroclaw.inbound.commands.explain import Explainer

        services, foundation = self._services, self._services.foundation
        beside = root.removesuffix(PREFIX)
        context = ConsoleContext(
            place=Place(
                root=root,
                chat=f"{beside}/{self._web}/",
                log_out=f"{beside}{LOG_OUT}",
                token=foundation.ids.token(),
            ),
            chat=Address(channel=self._web, account="local", chat=OPERATOR, direct=True),
            notifier=self.notifier,
            store=foundation.store,
            explainer=Explainer(
                settings=foundation.settings,
                people=services.people,
                policy=services.policy,
                protected=foundation.protected,
                tools=services.tools,
                workspaces=foundation.start.places.workspaces.resolve(),
                clock=foundation.clock,
            ),
            transcript=services.transcript,
            halted=lambda: services.policy.halted_by,
            sources=services.sources,
            redact=foundation.start.checked.redactor.redact,
            admit=services.ingress.admit,
            pair=services.pair.console,
            grants=services.grants.console,
            ids=foundation.ids,
            log=EventLog("console"),
        )
        site = Site(context)
        # Starlette spells ASGI's three arguments in types of its own.
        return cast("ASGIApp", site.application()), site.chains.keep
