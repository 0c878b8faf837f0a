"""Where approvers and operators are reached: with a question, or with a sentence about trouble.

A sentence is a row of `NOTICES`, in the commit of what it tells of, until an operator can be reached;
`Notices` then puts it into the outbox instead.

    a failure, a start, a channel ──row──▶ a channel comes up ──▶ outbox, and no row

Of messages that fail it tells the first ones each by a line, the rest by a count.

    quiet ──a failure──▶ told, for a while ──more──▶ counted ──the while is over──▶ told how many
      ▲                                                                                  │
      └─────────────── a while without one ◀── a while that is twice as long ◀───────────┘

The line of a failure is committed with the failure; the count is kept in memory, and a restart
loses it: each failed message is on record all the same, and the next one is told again.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from zeroclaw.channel import Channel
from zeroclaw.config.model import CurrentConfig
from zeroclaw.conversation.message_text import span
from zeroclaw.delivery.rows import NOTICES, notice_row
from zeroclaw.envelope import Address, Principal, Reader
from zeroclaw.foreign import call_now
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.identity import Contact, People
from zeroclaw.store import Commit, DurablePoint, Put, Reads, scan
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized, translated
from zeroclaw.turn.context import Failure
from zeroclaw.value import Struct, field, replace


class Operators(Struct, eq=False):
    """Finds the chats of operators on the channels that are there now.

    Attributes:
        people: Where they can be reached.
        channel_of: Returns a channel that can send, by name.
        settings: Who is asked by now, and whether the requester of a call may approve it.
    """

    people: People
    channel_of: Callable[[str], Channel | None]
    settings: CurrentConfig

    def approvers(self, principal: Principal, here: Address) -> tuple[Reader, ...]:
        """Return where a question is put: the best chats, and a group only where one is configured.

        An approver who asks in private answers in that very chat. Else the chat that is configured,
        else the approvers on the channel that asked, else those anywhere, else the operator at this
        machine.
        """
        own = {principal.id, *(f"role:{role}" for role in principal.roles)}
        settings = self.settings.config.approvals
        may_answer, approvers = settings.requester_may_answer, settings.approvers
        if here.direct and may_answer and not own.isdisjoint(approvers):
            return (Reader(address=here, language=self.people.language_of(principal.id)),)
        reached = self._who_may_answer(principal)
        return self._routed(reached) or self._nearest(reached, here)

    def each_approver(self, principal: Principal, here: Address) -> tuple[Reader, ...]:
        """Return where a question is put that the chat that is configured does not take."""
        return self._nearest(self._who_may_answer(principal), here)

    def readers(self, but: str = "", but_channel: str = "") -> tuple[Reader, ...]:
        """Return every operator's chat: all named people's, else this machine's.

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
        """Return the chat that is configured, where an approver is on its channel to answer there."""
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

    def _who_may_answer(self, principal: Principal) -> tuple[Reader, ...]:
        settings = self.settings.config.approvals
        contacts = self.people.contacts(settings.approvers)
        if not settings.requester_may_answer:
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
            # An adapter that breaks down here reaches no chat, and stops no other's turn.
            address = call_now(
                lambda channel=channel, contact=contact: channel.direct_address(contact.sender)
            )
            if isinstance(address, Address):
                found[address.key()] = Reader(address=address, language=contact.language)
        return tuple(found.values())


FIRST_WHILE_S = 600.0
LONGEST_WHILE_S = 3600.0
MOST_CAUSES = 3
"""Different causes that are told by a line each while it lasts; a cause may have endless forms."""


class _Spell(Struct, kw_only=True):
    """A time in which messages fail.

    Attributes:
        causes: What was told by a line.
        lines: Of the failures, by id; none for those that were counted.
        fresh: How many there were in this while.
        counted: How many of them were not told by a line.
    """

    causes: set[str] = field(default_factory=set[str])
    lines: dict[str, tuple[Put, ...]] = field(default_factory=dict[str, tuple[Put, ...]])
    fresh: int = 0
    counted: int = 0


class Notices(Struct, eq=False):
    """Tells operators about trouble.

    Attributes:
        group: Owns what waits.
        news: Set when a notice is on record, or when a channel has come up.
    """

    context: InboundContext
    operators: Operators
    group: asyncio.TaskGroup
    news: asyncio.Event
    _spell: _Spell | None = None

    async def tell(self, says: Localized, *, but_channel: str = "") -> None:
        """Have a sentence put into every operator's chat, but not by the channel it is about."""
        notice = notice_row(self.context.ids.ulid(), says, but_channel=but_channel)
        commit = Commit(point=DurablePoint.HOUSEKEEPING, writes=(notice,))
        await self.context.store.commit(commit)

    async def keep(self) -> None:
        """Put notices into the outbox, those of an earlier process too, while operators are there."""
        self.news.set()
        while True:
            await self.news.wait()
            self.news.clear()
            async for row in scan(self.context.store, NOTICES.where()):
                posted = partial(self._posted, row.key)
                await self.context.transact(posted, DurablePoint.HOUSEKEEPING)

    async def _posted(self, key: str, reads: Reads) -> Plan:
        notice = await NOTICES.get(reads, key)
        if notice is None or not self.operators.readers():
            return Plan(conversation=None)
        # Where this leaves out the only one, they were told as it came about.
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
        """Return what to write with a failure, so that operators are told; never waits.

        Asked again for the same failure it returns the same.
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
        if failure.why in spell.causes or len(spell.causes) >= MOST_CAUSES:
            spell.counted += 1
            return ()
        spell.causes.add(failure.why)
        return (notice_row(self.context.ids.ulid(), failure.says, but=failure.place),)

    async def _count(self, spell: _Spell) -> None:
        """Tell how many there were, ever more rarely, until there are none."""
        while_s = FIRST_WHILE_S
        while spell.fresh:
            spell.fresh = 0
            await self.context.clock.sleep(while_s)
            # What was only counted is asked for no more by now.
            spell.lines = {one: line for one, line in spell.lines.items() if line}
            if spell.counted:
                count, spell.counted = spell.counted, 0
                await self.tell(catalogue.MORE_FAILED.about(count=count, time=span(while_s)))
            while_s = min(while_s * 2, LONGEST_WHILE_S)
        self._spell = None
