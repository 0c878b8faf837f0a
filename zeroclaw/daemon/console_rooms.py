"""Wires the rooms of the operator's web page; loaded when somebody asks for the page first."""

import asyncio
from typing import cast

from zeroclaw.console.acting import Acts
from zeroclaw.console.checking import Chains
from zeroclaw.console.frame import Place
from zeroclaw.console.reading import Look
from zeroclaw.console.sections import Sections
from zeroclaw.console.site import Site, load_page
from zeroclaw.daemon.operator_page import PREFIX, Given
from zeroclaw.daemon.parts import Parts
from zeroclaw.envelope import Address
from zeroclaw.host.local_listener import LOG_OUT, ASGIApp, Receive, Scope, Send
from zeroclaw.host.logs import EventLog
from zeroclaw.inbound.commands.explain import Explainer
from zeroclaw.inbound.identity import OPERATOR

PING_S = 15.0


class ConsoleRooms:
    """The rooms of the page; one for the whole daemon."""

    def __init__(self, parts: Parts, given: Given, web: str, root: str) -> None:
        """Load the web stack and the files of the page, and wire it; blocks.

        Args:
            parts: The daemon's.
            given: What the page reads and calls.
            web: The name of the web chat, which is mounted beside the page.
            root: The path that the page is mounted at.
        """
        self._clock, self._pulse = parts.clock, given.pulse
        log = EventLog("console")
        self._chains = Chains(parts.store, parts.clock, changed=given.pulse.beat, log=log)
        seat = Address(channel=web, account="local", chat=OPERATOR, direct=True)
        look = Look(
            store=parts.store,
            clock=parts.clock,
            config=lambda: parts.settings.config,
            people=given.people,
            transcript=given.transcript,
            chains=self._chains,
            redact=parts.start.checked.redactor.redact,
            halted=lambda: given.policy.halted_by,
            seat=seat.key(),
        )
        explainer = Explainer(
            config=lambda: parts.settings.config,
            people=given.people,
            policy=given.policy,
            protected=parts.protected,
            tools=parts.tools,
            workspaces=parts.start.places.workspaces.resolve(),
            clock=parts.clock,
        )
        beside = root.removesuffix(PREFIX)
        place = Place(
            root=root,
            chat=f"{beside}/{web}/",
            log_out=f"{beside}{LOG_OUT}",
            token=parts.ids.token(),
        )
        site = Site(
            place=place,
            sections=Sections(place=place, look=look, chains=self._chains, explainer=explainer),
            acts=Acts(
                admit=given.admit,
                seat=seat,
                pair=given.pair,
                grants=given.grants,
                ids=parts.ids,
            ),
            pulse=given.pulse,
            files=load_page(),
            ids=parts.ids,
            log=log,
        )
        # Starlette spells ASGI's three arguments in types of its own.
        self._application = cast("ASGIApp", site.application())

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of one of its pages."""
        await self._application(scope, receive, send)

    async def keep(self) -> None:
        """Look through the audit, and have open pages tried, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._chains.keep(), name="chains")
                while True:
                    await self._clock.sleep(PING_S)
                    self._pulse.ping()
        finally:
            self._pulse.close()
