"""Where approvers and operators are reached: with a question, or with a sentence about a problem.

A sentence becomes a row of `NOTICES`, in the commit that it reports, until an operator can be
reached; `Notices` then moves it to the outbox.

    a failure, a start, a channel ──row──▶ a channel comes up ──▶ outbox, and no row

Of failing messages, the first ones are reported by a line each, the rest by a count.

    quiet ──a failure──▶ reported, for a period ──more──▶ counted ──the period ends──▶ count
    reported
      ▲                                                                                  │
      └─────────────── a period without one ◀── a period that is twice as long ◀─────────┘

The line of a failure is committed with the failure. The count is kept in memory and lost by a
restart; each failed message is recorded all the same, and the next one is reported again.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from functools import partial

from zeroclaw.channel import Channel
from zeroclaw.config.model import CurrentConfig
from zeroclaw.conversation.message_text import span
from zeroclaw.delivery.rows import NOTICES, notice_row
from zeroclaw.envelope import Address, Principal, Reader
from zeroclaw.foreign import call_now
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.identity import Contact, People
from zeroclaw.store import Commit, DurablePoint, Put, Reads, readable
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized, translated
from zeroclaw.turn.context import Failure
from zeroclaw.value import Struct, field, replace


class Operators(Struct, eq=False):
    """Finds the chats of operators on the channels that are up.

    Attributes:
        people: Where they can be reached.
        channel_of: Returns a channel that can send, by name.
        settings: Who is asked now, and whether the requester of a call may approve it.
        may_approve: Whether a person may answer requests about a tool now.
    """

    people: People
    channel_of: Callable[[str], Channel | None]
    settings: CurrentConfig
    may_approve: Callable[[Principal, str], bool]

    def approvers(
        self,
        principal: Principal,
        here: Address,
        tools: Collection[str],
        *,
        refused: Collection[str] = (),
        requester_may_answer: bool = True,
    ) -> tuple[Reader, ...]:
        """Return the best chats for a question about calls of these tools.

        An approver who asks in private answers in that same chat. Otherwise it is the configured
        chat, else the approvers on the channel that asked, else those anywhere, else the operator
        at this machine.

        Args:
            principal: Who asks.
            here: The chat of their turn.
            tools: By name. Who is near may approve one, and only others the next.
            refused: The keys of chats that did not take the question.
            requester_may_answer: False if the question was asked while the requester might not.
        """
        principal = self.people.by_now(principal)
        may_answer = requester_may_answer and self.settings.config.approvals.requester_may_answer

        def left(readers: Iterable[Reader]) -> tuple[Reader, ...]:
            return tuple(one for one in readers if one.address.key() not in refused)

        found: dict[str, Reader] = {}
        for tool in sorted(tools):
            own: tuple[Reader, ...] = ()
            if here.direct and may_answer and self.may_approve(principal, tool):
                own = (Reader(address=here, language=self.people.language_of(principal.id)),)
            reached = self._who_may_answer(principal, tool, may_answer=may_answer)
            best = left(own) or left(self._routed(reached)) or self._nearest(left(reached), here)
            found.update((one.address.key(), one) for one in best)
        return tuple(found.values())

    def readers(self, but: str = "", but_channel: str = "") -> tuple[Reader, ...]:
        """Return every operator's chat: of all named people, else of this machine.

        Args:
            but: The key of an address that is left out.
            but_channel: The name of a channel that is left out.
        """
        contacts = (
            contact for contact in self.people.operators() if contact.channel != but_channel
        )
        reached = self._reached(contacts)
        return self._best(tuple(one for one in reached if one.address.key() != but))

    def _routed(self, reached: tuple[Reader, ...]) -> tuple[Reader, ...]:
        """Return the configured chat, if an approver is on its channel and can answer there."""
        channel, _, place = self.settings.config.approvals.chat.partition(":")
        chat, _, thread = place.partition("/")
        return tuple(
            Reader(
                address=replace(one.address, chat=chat, thread=thread or None, direct=False),
                language=self.people.language,
            )
            for one in reached
            if one.address.channel == channel
        )[:1]

    def _who_may_answer(
        self, principal: Principal, tool: str, *, may_answer: bool
    ) -> tuple[Reader, ...]:
        contacts = tuple(
            one
            for one in self.people.contacts(self.settings.config.approvals.approvers)
            if (person := self.people.identified(f"{one.channel}:{one.sender}")) is not None
            and self.may_approve(person, tool)
        )
        if not may_answer:
            own = (principal.channel, principal.sender)
            contacts = tuple(
                one
                for one in contacts
                if one.person != principal.id and (one.channel, one.sender) != own
            )
        return self._reached(contacts)

    def _nearest(self, reached: tuple[Reader, ...], here: Address) -> tuple[Reader, ...]:
        near = tuple(one for one in reached if one.address.channel == here.channel)
        return near or self._best(reached)

    def _best(self, reached: tuple[Reader, ...]) -> tuple[Reader, ...]:
        far = tuple(one for one in reached if one.address.channel not in self.people.local)
        return far or reached[:1]

    def _reached(self, contacts: Iterable[Contact]) -> tuple[Reader, ...]:
        found: dict[str, Reader] = {}
        for contact in contacts:
            channel = self.channel_of(contact.channel)
            if channel is None:
                continue
            # An adapter that fails here reaches no chat, but does not stop the turn.
            address = call_now(
                lambda channel=channel, contact=contact: channel.direct_address(contact.sender)
            )
            if isinstance(address, Address):
                found[address.key()] = Reader(address=address, language=contact.language)
        return tuple(found.values())


FIRST_WHILE_S = 600.0
LONGEST_WHILE_S = 3600.0
MOST_CAUSES = 3
"""Different causes that get a line each during a spell; one cause may have endless forms."""


class _Spell(Struct, kw_only=True):
    """A time in which messages fail.

    Attributes:
        causes: The causes that were reported by a line.
        lines: The line of each failure by id; empty for those that were counted.
        fresh: The failures in the current period.
        counted: How many of them were not reported by a line.
    """

    causes: set[str] = field(default_factory=set[str])
    lines: dict[str, tuple[Put, ...]] = field(default_factory=dict[str, tuple[Put, ...]])
    fresh: int = 0
    counted: int = 0


class Notices(Struct, eq=False):
    """Reports problems to operators.

    Attributes:
        group: Owns the waiting task.
    """

    context: InboundContext
    operators: Operators
    group: asyncio.TaskGroup
    _spell: _Spell | None = None

    async def tell(self, says: Localized, *, but_channel: str = "") -> None:
        """Send a sentence to every operator's chat, except on the channel it is about."""
        notice = notice_row(self.context.ids.ulid(), says, but_channel=but_channel)
        commit = Commit(point=DurablePoint.HOUSEKEEPING, writes=(notice,))
        await self.context.store.commit(commit)

    async def post(self) -> None:
        """Move all notices to the outbox, if an operator can be reached."""
        store, waiting = self.context.store, NOTICES.where()
        async for key, _ in readable(store, waiting, lambda row: (row.key, NOTICES.of(row))):
            posted = partial(self._posted, key)
            await self.context.transact(posted, DurablePoint.HOUSEKEEPING)

    async def _posted(self, key: str, reads: Reads) -> Plan:
        notice = await NOTICES.get(reads, key)
        if notice is None or not self.operators.readers():
            return Plan(conversation=None)
        # If this leaves out the only operator, they were told when it happened.
        notes = (
            self.context.note(
                translated(notice.text, notice.others, one.language),
                one.address,
                language=one.language,
                quiet=True,
            )
            for one in self.operators.readers(notice.but, notice.but_channel)
        )
        return Plan(conversation=None, writes=(*notes, NOTICES.delete(key)))

    def line(self, failure: Failure) -> tuple[Put, ...]:
        """Return the write that reports a failure to operators; never waits.

        Called again for the same failure it returns the same.
        """
        if self.operators.readers() and not self.operators.readers(failure.place):
            return ()  # the only operator wrote the message, and was told
        if self._spell is None:
            self._spell = _Spell()
            self.group.create_task(self._count(self._spell), name="failures")
        spell = self._spell
        if failure.id not in spell.lines:
            spell.lines[failure.id] = self._new(spell, failure)
        return spell.lines[failure.id]

    def _new(self, spell: _Spell, failure: Failure) -> tuple[Put, ...]:
        spell.fresh += 1
        if failure.reason in spell.causes or len(spell.causes) >= MOST_CAUSES:
            spell.counted += 1
            return ()
        spell.causes.add(failure.reason)
        return (notice_row(self.context.ids.ulid(), failure.line, but=failure.place),)

    async def _count(self, spell: _Spell) -> None:
        """Report how many failures there were, at growing intervals, until there are none."""
        while_s = FIRST_WHILE_S
        while spell.fresh:
            spell.fresh = 0
            await self.context.clock.sleep(while_s)
            # Counted failures are no longer asked for by now.
            spell.lines = {one: line for one, line in spell.lines.items() if line}
            if spell.counted:
                count, spell.counted = spell.counted, 0
                await self.tell(catalogue.MORE_FAILED.about(count=count, time=span(while_s)))
            while_s = min(while_s * 2, LONGEST_WHILE_S)
        self._spell = None
