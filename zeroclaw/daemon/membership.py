"""Wires the rooms that know people: who is in, who wants in, who was put out or granted what."""

import asyncio
from collections.abc import Callable, Iterable

from zeroclaw.config.model import Config
from zeroclaw.daemon.config_check import ChannelPart
from zeroclaw.daemon.foundation import Foundation
from zeroclaw.daemon.live_config import LivePolicy
from zeroclaw.envelope import ConversationId
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.commands.grants import GrantCommands
from zeroclaw.inbound.commands.pair import PairCommand
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.deadlines import Deadlines
from zeroclaw.inbound.identity import LANGUAGE_CHOICES, PEOPLE, People, chosen_of, known_of
from zeroclaw.inbound.operators import Operators
from zeroclaw.inbound.plan import Plan
from zeroclaw.inbound.revocation import Revocation
from zeroclaw.inbound.strangers import Strangers
from zeroclaw.store import Put, RowKind, Rows, Write, scan
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
        wake: Callable[[ConversationId], None],
        announce: Callable[[Plan], None],
    ) -> None:
        """Wire them; nothing runs before `remember`."""
        channels = foundation.start.checked.channels
        self._foundation = foundation
        self._people = people
        self._policy = policy
        self.requests = Approvals(context, numbers)
        self.deadlines = Deadlines(
            context, group, requests=self.requests, operators=operators, announce=announce
        )
        self.strangers = Strangers(
            store=foundation.store,
            people=people,
            holds_s=lambda: _holds_s(foundation.settings.config, channels),
            operators=operators.readers,
            numbers=numbers,
            clock=foundation.clock,
            ids=foundation.ids,
        )
        self.pair = PairCommand(context, self.requests, announce)
        self.grants = GrantCommands(context, announce)
        self.revocation = Revocation(context, group, wake=wake)

    async def remember(self) -> None:
        """Take up what is stored, before anybody is let in; once, at a start."""
        await learn_stored(self._foundation.store, self._people)
        async for row in scan(self._foundation.store, LANGUAGE_CHOICES.where()):
            self._people.chose(chosen_of(row))
        self._policy.revoke(self._people.revoked)
        await self.revocation.sweep()
        await self.deadlines.resume_strangers()

    def learn(self, writes: tuple[Write, ...]) -> None:
        """Follow what has just been committed; never waits."""
        self.deadlines.written(writes)
        self.strangers.written(writes)
        for write in writes:
            if isinstance(write, Put) and write.kind is RowKind.PERSON:
                known = known_of(write)
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
    async for row in scan(rows, PEOPLE.where()):
        people.learn(known_of(row))


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


def _holds_s(config: Config, channels: tuple[ChannelPart, ...]) -> dict[str, float]:
    """Return how long a code holds on each channel that gives strangers one."""
    return {
        part.name: config.channels[part.name].pairing_s
        for part in channels
        if config.channels[part.name].pairing == "code" and not part.manifest.local_operator
    }
