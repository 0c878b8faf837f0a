"""Mailboxes: each serves the two lanes of one conversation, in order (P2).

A mailbox is open while its conversation is busy. It takes the conversation, resumes a turn that a
restart left open, and then starts a turn for each waiting item, oldest first. A running turn handles
the control lane; between turns the mailbox does. All state is in the inbox, so a mailbox may end at
any time.
"""

import asyncio
from functools import partial

from zeroclaw.backoff import BackOff
from zeroclaw.channel import Log
from zeroclaw.conversation.downloads import Downloads
from zeroclaw.delivery.outbox import Outbox
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import Fenced
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.live_config import LivePolicy
from zeroclaw.inbound.operators import Notices
from zeroclaw.inbound.reassembly import Reassembly
from zeroclaw.inbound.supervisor import contain, fault_line, pause
from zeroclaw.text import catalogue
from zeroclaw.turn.runner import TurnRunner
from zeroclaw.turn.session import SessionCache
from zeroclaw.value import Struct, field

BACK_OFF = BackOff(first_s=1.0, longest_s=60.0)
NOTICE_AFTER = 6
"""Failures in a row before operators get a notice; a turn that always fails is given up before."""


class Mailboxes(Struct, kw_only=True, eq=False):
    """All open mailboxes.

    Attributes:
        group: Owns their tasks.
    """

    sessions: SessionCache
    turns: TurnRunner
    arrivals: Downloads
    outbox: Outbox
    group: asyncio.TaskGroup
    log: Log
    conversations: Conversations
    reassembly: Reassembly
    notices: Notices
    policy: LivePolicy
    _open: dict[ConversationId, asyncio.Event] = field(
        default_factory=dict[ConversationId, asyncio.Event]
    )
    _failing: set[ConversationId] = field(default_factory=set[ConversationId])
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _early: dict[ConversationId, None] | None = field(default_factory=dict[ConversationId, None])
    _admitting: bool = True
    _halted: dict[ConversationId, None] = field(default_factory=dict[ConversationId, None])

    def __len__(self) -> int:
        """Return the number of busy conversations."""
        return len(self._open)

    def is_open(self, conversation: ConversationId) -> bool:
        """Whether a mailbox of the conversation is open, and does not wait after a failure."""
        return conversation in self._open and not self.is_failing(conversation)

    def is_failing(self, conversation: ConversationId) -> bool:
        """Whether the work on a conversation failed, and waits before it is tried again."""
        return conversation in self._failing

    def wake(self, conversation: ConversationId) -> None:
        """Report a new item in the inbox of a conversation; never waits."""
        if self._early is not None:
            self._early[conversation] = None
            return
        wakeup = self._open.get(conversation)
        if wakeup is None:
            if not self._admitting:
                return
            wakeup = self._open[conversation] = asyncio.Event()
            work = self._serve(conversation, wakeup)
            self.group.create_task(work, name=f"mailbox {conversation}")
        wakeup.set()

    def start(self) -> None:
        """Open the mailboxes that were woken so far, in order; from now on they open at once.

        Called when the channels have started: an interrupted turn may have to ask an approver.
        """
        early, self._early = self._early or {}, None
        for conversation in early:
            self.wake(conversation)

    def halt_changed(self) -> None:
        """Obey the policy's halt or its end: while halted no turn starts, and messages wait."""
        for wakeup in self._open.values():
            wakeup.set()
        if self.policy.last_halt.over:
            halted, self._halted = self._halted, {}
            for conversation in halted:
                self.wake(conversation)

    def close(self) -> None:
        """Start no more turns; running ones may finish."""
        self._admitting = False
        for wakeup in self._open.values():
            wakeup.set()

    async def notify(self) -> None:
        """Wake the tasks that wait for mailboxes to close, so that they check again."""
        async with self._changed:
            self._changed.notify_all()

    async def at_rest(self) -> None:
        """Wait until no mailbox is open, except those that wait for a person, or after a failure.

        A person may take hours, and their card still works after the next start.
        """
        # A conversation that waits for its predecessor starts no turn any more, so it can close.
        await self.notify()
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._open.keys() <= self.turns.parked() | self._failing
            )

    async def _serve(self, conversation: ConversationId, wakeup: asyncio.Event) -> None:
        failures = 0
        try:
            while True:
                self._failing.discard(conversation)
                error = await contain(lambda: self._work(conversation, wakeup))
                if error is None or not self._admitting:
                    return
                # The next lease waits for, or fences off, a commit that the error left running.
                self.sessions.leases.mark_lost(conversation)
                if isinstance(error, Fenced):
                    return
                failures += 1
                reason, wait_s = fault_line(error), BACK_OFF.wait_s(failures)
                self.log(
                    "conversation_failed",
                    conversation=conversation,
                    reason=reason,
                    again_in_s=wait_s,
                    level="warning",
                )
                if failures == NOTICE_AFTER:
                    told = catalogue.CONVERSATION_FAILS.about(conversation=conversation, why=reason)
                    await contain(partial(self.notices.tell, told))  # the store may be what fails
                # A successor need not wait for a conversation that fails.
                self._failing.add(conversation)
                await self.notify()
                await pause(wait_s, clock=self.sessions.clock, group=self.group)
        finally:
            del self._open[conversation]
            self._failing.discard(conversation)
            await self.notify()

    async def _work(self, conversation: ConversationId, wakeup: asyncio.Event) -> None:
        """Serve until the inbox is empty; does not await after the last check."""
        # The resumed turn handles the items that arrived during a failed try.
        wakeup.set()
        await self.outbox.caught_up(conversation)
        session = await self.sessions.take(conversation)
        await self.turns.resume(session, wakeup)
        while True:
            session.is_next = session.is_next or await self._may_follow(conversation)
            wakeup.clear()
            await self.turns.between(session)
            items = (
                await self.reassembly.next_items(conversation, wakeup, lambda: self._may_start)
                if session.is_next
                else ()
            )
            if items and self._may_start:
                # A halt does not stop the preparation; the turn begins after the halt.
                await self.arrivals.fetch(session.fence, items, wakeup, lambda: self._admitting)
            # A halt may have come while it waited for another message, or for a file.
            if items and self._may_start:
                await self.turns.run(session, items, wakeup)
            elif not wakeup.is_set():
                if not self.policy.last_halt.over:
                    # Closed until `/resume`, so that no erasure has to wait for that.
                    self._halted[conversation] = None
                self.sessions.leave(session)
                return

    @property
    def _may_start(self) -> bool:
        return self._admitting and self.policy.last_halt.over

    async def _may_follow(self, conversation: ConversationId) -> bool:
        """Let the conversation before `/new` be answered first, unless it is failing.

        During a halt return False, whatever the other one waits for.
        """
        old = await self.conversations.predecessor(conversation)
        if old is None:
            return True
        async with self._changed:
            await self._changed.wait_for(lambda: not (self.is_open(old) and self._may_start))
        return self.policy.last_halt.over
