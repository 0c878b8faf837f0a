"""Wires the rooms that know people: who is in, who wants in, who was put out or granted what."""

import asyncio
from collections.abc import Iterable

from zeroclaw.config.model import Config
from zeroclaw.daemon.foundation import Foundation
from zeroclaw.daemon.live_config import LivePolicy
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.commands.grants import GrantCommands
from zeroclaw.inbound.commands.pair import PairCommand
from zeroclaw.inbound.deadlines import Deadlines
from zeroclaw.inbound.identity import LANGUAGE_CHOICES, PEOPLE, People
from zeroclaw.inbound.operators import Operators
from zeroclaw.inbound.plan import InboundContext
from zeroclaw.inbound.revocation import Revocation
from zeroclaw.inbound.strangers import Strangers
from zeroclaw.store import Put, RowKind, Rows, Write
from zeroclaw.turn.numbers import Numbers


class Membership:
    """Lets people in and puts them out, and keeps ingress and gate in step with what is stored."""

    def __init__(
        self,
        foundation: Foundation,
        people: People,
        context: InboundContext,
        *,
        group: asyncio.TaskGroup,
        policy: LivePolicy,
        operators: Operators,
        numbers: Numbers,
    ) -> None:
        """Wire them; nothing runs before `remember`."""
        self._foundation = foundation
        self._people = people
        self._policy = policy
        self.requests = Approvals(context, numbers)
        self.deadlines = Deadlines(context, group, requests=self.requests, operators=operators)
        self.strangers = Strangers(context, numbers, operators.readers)
        self.pair = PairCommand(context, self.requests)
        self.grants = GrantCommands(context)
        self.revocation = Revocation(context, group)

    async def remember(self) -> None:
        """Take up what is stored, before anybody is let in; once, at a start."""
        await learn_stored(self._foundation.store, self._people)
        async for chosen in LANGUAGE_CHOICES.all(self._foundation.store):
            self._people.chose(chosen)
        self._policy.revoke(self._people.revoked)
        await self.revocation.sweep()
        await self.deadlines.resume_strangers()

    def learn(self, writes: tuple[Write, ...]) -> None:
        """Follow what has just been committed; never waits."""
        self.deadlines.written(writes)
        self.strangers.written(writes)
        for write in writes:
            if isinstance(write, Put) and write.kind is RowKind.PERSON:
                known = PEOPLE.of(write)
                self._foundation.log(
                    "person_decided", person=known.id, now=known.state, by=known.by
                )
        before = self._people.revoked
        if self._people.written(writes):
            self._policy.revoke(self._people.revoked)
            if self._people.revoked - before:
                self.revocation.begin()

    def open_claim(self) -> str:
        """Return the code of the first operator, empty when there is one; see `Strangers`."""
        return self.strangers.open_claim(
            part.name for part in self._foundation.start.checked.channels
        )


async def learn_stored(rows: Rows, people: People) -> None:
    """Take up who was let in and put out since."""
    async for known in PEOPLE.all(rows):
        people.learn(known)


def people_of(config: Config, local: Iterable[str]) -> People:
    """Return the people of a configuration; `local` are the channels of the operator alone."""
    return People(
        config.people,
        allowed=allowed_of(config),
        # The page keeps what was said while nobody looked, so it comes before the terminal.
        local=tuple(sorted(local, key=lambda name: config.kind_of(name) != "web")),
        language=config.language,
    )


def allowed_of(config: Config) -> dict[str, tuple[str, ...]]:
    """Return the sender ids that each channel lets in."""
    return {name: settings.allowed_users for name, settings in config.channels.items()}
