"""Wires the operator's web page, where there is a local listener and a web chat that opens it."""

import asyncio
from collections.abc import Awaitable, Callable

from zeroclaw.console.acting import Acts, Asked
from zeroclaw.console.checking import Chains
from zeroclaw.console.frame import Place
from zeroclaw.console.pulse import Pulse
from zeroclaw.console.reading import Look
from zeroclaw.console.sections import Judge, Sections
from zeroclaw.daemon.in_force import PolicyInForce
from zeroclaw.daemon.parts import Parts
from zeroclaw.envelope import Address, Admission, Envelope
from zeroclaw.host.logs import EventLog
from zeroclaw.inbound.people import OPERATOR, People
from zeroclaw.inbound.transcript import Transcript

PREFIX = "/console"
PING_S = 15.0


class OperatorPage:
    """The page, from start to end; one for the whole daemon.

    Attributes:
        chains: What looks through the audit; `start` keeps it.
        pulse: What tells open pages of changes.
    """

    def __init__(
        self,
        parts: Parts,
        group: asyncio.TaskGroup,
        *,
        pulse: Pulse,
        people: People,
        policy: PolicyInForce,
        transcript: Transcript,
        admit: Callable[[Envelope], Awaitable[Admission]],
        pair: Asked,
        grants: Asked,
    ) -> None:
        """Wire it; nothing runs before `start`."""
        self._parts = parts
        self._group = group
        self.pulse = pulse
        channels = parts.start.checked.channels
        self._web = next((part.name for part in channels if part.manifest.kind == "web"), "")
        self._log = EventLog("console")
        self.chains = Chains(parts.store, parts.clock, changed=pulse.beat, log=self._log)
        self._place = Place(root=PREFIX, chat=f"/{self._web}/", token=parts.ids.token())
        look = Look(
            store=parts.store,
            clock=parts.clock,
            config=lambda: parts.settings.config,
            people=people,
            transcript=transcript,
            chains=self.chains,
            redact=parts.start.checked.redactor.redact,
            halted=lambda: policy.halted_by,
        )
        judge = Judge(
            policy=policy,
            config=lambda: parts.settings.config,
            tools=parts.tools,
            workspaces=parts.start.places.workspaces,
        )
        self._sections = Sections(
            place=self._place, look=look, chains=self.chains, judge=judge, clock=parts.clock
        )
        seat = Address(channel=self._web, account="local", chat=OPERATOR, direct=True)
        self._acts = Acts(admit=admit, seat=seat, pair=pair, grants=grants, ids=parts.ids)

    def start(self) -> None:
        """Mount the page and keep it fresh, if there is somewhere to mount it."""
        if self._parts.listener is not None and self._web:
            self._group.create_task(self._serve(), name="console")
            self._group.create_task(self.chains.keep(), name="chains")

    async def _serve(self) -> None:
        application = await asyncio.to_thread(self.application)
        if self._parts.listener is not None:
            self._parts.listener.beside(PREFIX, application)
        try:
            while True:
                await self._parts.clock.sleep(PING_S)
                self.pulse.ping()
        finally:
            self.pulse.close()

    def application(self) -> object:
        """Load the web stack and the files of the page; blocks."""
        from zeroclaw.console.site import Site, load_page

        site = Site(
            place=self._place,
            sections=self._sections,
            acts=self._acts,
            pulse=self.pulse,
            files=load_page(),
            ids=self._parts.ids,
            log=self._log,
        )
        return site.application()
