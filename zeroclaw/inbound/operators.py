"""The chats of approvers and operators, and the notices about problems that operators get.

A notice is a row of `NOTICES`, written in the commit that it reports; once an operator can be
reached, `Notices` moves it to the outbox.

    a failure, a start, a channel ──row──▶ a channel comes up ──▶ outbox, and no row

The first messages that fail are reported by a notice each, the others by a count.

    quiet ──a failure──▶ reported, for a period ──more──▶ counted ──the period ends──▶ count
    reported
      ▲                                                                                  │
      └─────────────── a period without one ◀── a period that is twice as long ◀─────────┘

The notice of a failure is committed with the failure. The count is in memory and lost in a
restart; each failed message has its row all the same, and the next one is reported again.
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
from zeroclaw.gate.approval import is_same_person
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.identity import People
from zeroclaw.store import Commit, DurablePoint, Put, Reads, readable
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized, translated
from zeroclaw.turn.context import Failure
from zeroclaw.value import Struct, field, replace


class Operators(Struct, eq=False):
    """Finds the chats of operators on the channels that are up.

    Attributes:
        people: Finds operators and approvers.
        channel_of: Returns a channel that can send, by name.
        settings: The current approvers, and whether the requester of a call may approve it.
        may_approve: Whether a person may answer requests about a tool now.
    """

    people: People
    channel_of: Callable[[str], Channel | None]
    settings: CurrentConfig
    may_approve: Callable[[Principal, str], bool]

    def approvers(
        self,
        principal: Principal,
        chat: Address,
        tools: Collection[str],
        *,
        refused: Collection[str] = (),
        requester_may_answer: bool = True,
    ) -> tuple[Reader, ...]:
        """Return the best chats for a request to approve calls of these tools.

        A requester who may approve in private answers in that same chat. Otherwise it is the
        configured chat, else the approvers on the requester's channel, else those on any, else the
        operator at this machine.

        Args:
            principal: The requester.
            chat: The chat of their turn.
            tools: By name; each may have other approvers.
            refused: The keys of chats that refused the card.
            requester_may_answer: False if the requester might not answer when the request began.
        """
        principal = self.people.by_now(principal)
        may_answer = requester_may_answer and self.settings.config.approvals.requester_may_answer

        def not_refused(readers: Iterable[Reader]) -> tuple[Reader, ...]:
            return tuple(reader for reader in readers if reader.address.key() not in refused)

        found: dict[str, Reader] = {}
        for tool in sorted(tools):
            readers: tuple[Reader, ...] = ()
            if chat.direct and may_answer and self.may_approve(principal, tool):
                readers = (Reader(address=chat, language=self.people.language_of(principal.id)),)
            reached = self._answerers(principal, tool, may_answer=may_answer)
            best = not_refused(readers) or not_refused(self._routed(reached))
            near = (reader for reader in reached if reader.address.channel == chat.channel)
            best = best or not_refused(near) or self._best(not_refused(reached))
            found.update((reader.address.key(), reader) for reader in best)
        return tuple(found.values())

    def readers(self, but: str = "", but_channel: str = "") -> tuple[Reader, ...]:
        """Return the chats of all operators on platforms, else the best local one.

        Args:
            but: The key of an address that is left out.
            but_channel: The name of a channel that is left out.
        """
        others = (person for person in self.people.operators() if person.channel != but_channel)
        reached = self._reached(others)
        return self._best(tuple(reader for reader in reached if reader.address.key() != but))

    def _routed(self, reached: tuple[Reader, ...]) -> tuple[Reader, ...]:
        """Return the configured chat, if an approver can be reached on its channel."""
        channel, _, place = self.settings.config.approvals.chat.partition(":")
        chat, _, thread = place.partition("/")
        return tuple(
            Reader(
                address=replace(reader.address, chat=chat, thread=thread or None, direct=False),
                language=self.people.language,
            )
            for reader in reached
            if reader.address.channel == channel
        )[:1]

    def _answerers(
        self, principal: Principal, tool: str, *, may_answer: bool
    ) -> tuple[Reader, ...]:
        return self._reached(
            person
            for named in self.people.contacts(self.settings.config.approvals.approvers)
            if (person := self.people.identified(named.identity)) is not None
            and self.may_approve(person, tool)
            and (may_answer or not is_same_person(person, principal))
        )

    def _best(self, reached: tuple[Reader, ...]) -> tuple[Reader, ...]:
        far = tuple(reader for reader in reached if reader.address.channel not in self.people.local)
        return far or reached[:1]

    def _reached(self, people: Iterable[Principal]) -> tuple[Reader, ...]:
        found: dict[str, Reader] = {}
        for person in people:
            channel = self.channel_of(person.channel)
            if channel is None:
                continue
            # An adapter that fails here reaches no chat, but does not stop the turn.
            address = call_now(
                lambda channel=channel, person=person: channel.direct_address(person.sender)
            )
            if isinstance(address, Address):
                found[address.key()] = Reader(address=address, language=person.language)
        return tuple(found.values())


FIRST_PERIOD_S = 600.0
LONGEST_PERIOD_S = 3600.0
MAX_CAUSES = 3
"""Different causes that get a notice each; one cause may have endless forms."""


class _Spell(Struct, kw_only=True):
    """A time in which messages fail.

    Attributes:
        causes: The causes that got a notice.
        notices: The notice of each failure by id; empty for those that were counted.
        recent: The failures in the current period.
        counted: The failures since the last report that got no notice.
    """

    causes: set[str] = field(default_factory=set[str])
    notices: dict[str, tuple[Put, ...]] = field(default_factory=dict[str, tuple[Put, ...]])
    recent: int = 0
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

    async def tell(self, sentence: Localized, *, but_channel: str = "") -> None:
        """Send a sentence to every operator's chat, except those on one channel."""
        notice = notice_row(self.context.ids.ulid(), sentence, but_channel=but_channel)
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
        # If this leaves out the only operator, they saw the problem themselves.
        notes = (
            self.context.note(
                translated(notice.text, notice.others, reader.language), reader, quiet=True
            )
            for reader in self.operators.readers(notice.but, notice.but_channel)
        )
        return Plan(conversation=None, writes=(*notes, NOTICES.delete(key)))

    def notice(self, failure: Failure) -> tuple[Put, ...]:
        """Return the write that reports a failure to operators; never waits.

        Called again for the same failure during a spell, it returns the same writes.
        """
        if self.operators.readers() and not self.operators.readers(failure.place):
            return ()  # the only operator wrote the message, and got the error
        if self._spell is None:
            self._spell = _Spell()
            self.group.create_task(self._count(self._spell), name="failures")
        spell = self._spell
        if failure.id not in spell.notices:
            spell.notices[failure.id] = self._notice_of(spell, failure)
        return spell.notices[failure.id]

    def _notice_of(self, spell: _Spell, failure: Failure) -> tuple[Put, ...]:
        spell.recent += 1
        if failure.reason in spell.causes or len(spell.causes) >= MAX_CAUSES:
            spell.counted += 1
            return ()
        spell.causes.add(failure.reason)
        return (notice_row(self.context.ids.ulid(), failure.line, but=failure.place),)

    async def _count(self, spell: _Spell) -> None:
        """Report the number of failures, at growing intervals, until there are none."""
        period_s = FIRST_PERIOD_S
        while spell.recent:
            spell.recent = 0
            await self.context.clock.sleep(period_s)
            # No caller asks for counted failures any more.
            spell.notices = {key: puts for key, puts in spell.notices.items() if puts}
            if spell.counted:
                count, spell.counted = spell.counted, 0
                await self.tell(catalogue.MORE_FAILED.about(count=count, time=span(period_s)))
            period_s = min(period_s * 2, LONGEST_PERIOD_S)
        self._spell = None
