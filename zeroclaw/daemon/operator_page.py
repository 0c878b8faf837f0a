"""The operator's web page, mounted if there is a local listener.

The first request loads the page and its libraries, in a thread. Until then the page costs no time
at the start, and no memory.
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
from zeroclaw.value import Struct, field

PREFIX = "/console"
PING_S = 15.0


class OperatorPage(Struct, eq=False):
    """The page, from its first request to the end; the daemon has one.

    Attributes:
        services: The daemon's services.
        group: Owns its tasks.
        notifier: Tells open pages of changes.
    """

    services: Services
    group: asyncio.TaskGroup
    notifier: Notifier = field(default_factory=Notifier)
    _loading: asyncio.Lock = field(default_factory=asyncio.Lock)
    _application: ASGIApp | None = None

    def start(self) -> None:
        """Mount the page if there is a listener, which means that there is a web chat."""
        if (listener := self.services.foundation.listener) is not None:
            listener.mount_beside(PREFIX, self.answer)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the first one loads the page, because it has the page's root path."""
        async with self._loading:
            if self._application is None:
                root = str(scope["root_path"])
                self._application, keep_chains = await asyncio.to_thread(self._load, root)
                self.group.create_task(self._keep(keep_chains), name="console")
        await self._application(scope, receive, send)

    async def _keep(self, keep_chains: Callable[[], Coroutine[None, None, None]]) -> None:
        """Check the audit chains and ping open pages, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(keep_chains(), name="chains")
                while True:
                    await self.services.foundation.clock.sleep(PING_S)
                    self.notifier.ping()
        finally:
            self.notifier.close()

    def _load(self, root: str) -> tuple[ASGIApp, Callable[[], Coroutine[None, None, None]]]:
        """Load the web stack and the files of the page; blocks.

        Args:
            root: The path that the page is mounted at.

        Returns:
            The page, and the coroutine function that checks its audit chains.
        """
        from zeroclaw.console.context import ConsoleContext
        from zeroclaw.console.frame import ConsolePaths
        from zeroclaw.console.site import Site
        from zeroclaw.inbound.commands.explain import Explainer

        services, foundation = self.services, self.services.foundation
        prefix, web = root.removesuffix(PREFIX), services.channels.web_name
        context = ConsoleContext(
            paths=ConsolePaths(
                root=root,
                chat=f"{prefix}/{web}/",
                log_out=f"{prefix}{LOG_OUT}",
                token=foundation.ids.token(),
            ),
            chat=Address(channel=web, account="local", chat=OPERATOR, direct=True),
            notifier=self.notifier,
            inbound=services.context,
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
            sources=services.sources,
            admit=services.ingress.admit,
            pair=services.pair.console,
            grants=services.grants.console,
            log=EventLog("console"),
        )
        site = Site(context)
        # Starlette has its own types for ASGI's three arguments.
        return cast("ASGIApp", site.application()), site.chains.run
