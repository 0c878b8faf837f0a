"""Every room of a running daemon, made and wired to each other in one place."""

import asyncio
import os
from collections.abc import Mapping
from functools import partial

from zeroclaw.daemon.channel_host import ChannelHost
from zeroclaw.daemon.foundation import Foundation, ReadyFacts
from zeroclaw.daemon.live_config import LivePolicy, learn_stored, people_of
from zeroclaw.daemon.reload import Reloader
from zeroclaw.daemon.turn_rooms import turn_rooms
from zeroclaw.delivery.live import Live
from zeroclaw.events import Bus
from zeroclaw.foreign import Raised, call
from zeroclaw.gate.receipt_screen import screen_shown
from zeroclaw.host.answers import ChannelSeen, Status
from zeroclaw.host.control import Call
from zeroclaw.host.logs import EventLog
from zeroclaw.inbound.anchors import Anchors
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.commands.grants import GrantCommands
from zeroclaw.inbound.commands.halt import HALTS, Halt, read_halt
from zeroclaw.inbound.commands.pair import PairCommand
from zeroclaw.inbound.commands.registry import Commands, menu_of
from zeroclaw.inbound.commands.status import StatusOf
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.deadlines import Deadlines
from zeroclaw.inbound.identity import LANGUAGE_CHOICES, PEOPLE
from zeroclaw.inbound.ingress import Ingress
from zeroclaw.inbound.limiter import RateLimiter
from zeroclaw.inbound.mailbox import Mailboxes
from zeroclaw.inbound.operators import Notices, Operators
from zeroclaw.inbound.planner import Planner
from zeroclaw.inbound.reassembly import Debounce, Reassembly
from zeroclaw.inbound.receipts import Receipts
from zeroclaw.inbound.revocation import Revocation
from zeroclaw.inbound.strangers import Strangers
from zeroclaw.inbound.supervisor import Supervisor
from zeroclaw.inbound.transcript import Transcript
from zeroclaw.menu import Menu
from zeroclaw.provider import Preloading
from zeroclaw.retention.disk import DiskWatch
from zeroclaw.retention.erase import Erasure
from zeroclaw.retention.sweep import Sweep
from zeroclaw.store import Delete, Put, RowKind, Write
from zeroclaw.text import catalogue
from zeroclaw.turn.runner import TurnRunner
from zeroclaw.turn.session import Leases

_OF_PEOPLE = frozenset({RowKind.PERSON, RowKind.LANGUAGE, RowKind.STRANGER})


class Services:
    """Every room of a running daemon; made inside the task group that owns their tasks."""

    def __init__(self, foundation: Foundation, group: asyncio.TaskGroup) -> None:
        """Wire them; nothing runs before `remember`."""
        self.foundation = foundation
        self._group = group
        config, checked = foundation.start.config, foundation.start.checked
        self.channels = ChannelHost(foundation, group)
        settings = foundation.settings
        self.policy = LivePolicy(settings)
        self.people = people_of(
            config, (part.name for part in checked.channels if part.manifest.local_operator)
        )
        self.operators = Operators(
            self.people,
            self.channels.channel_of,
            settings=lambda: settings.config.approvals,
        )
        leases = Leases(foundation.store)
        self.live = Live(account_of=self.channels.shows_drafts, group=group)
        turn_log = EventLog("turn")
        self.bus = Bus(
            lambda raised: turn_log("subscriber_failed", why=raised.line, level="warning")
        )
        context = InboundContext(
            store=foundation.store,
            clock=foundation.clock,
            ids=foundation.ids,
            settings=settings,
            policy=self.policy,
            people=self.people,
            redact=checked.redactor.redact,
            log=EventLog("ingress"),
            announce=self.announce,
        )
        self.notices = Notices(context, self.operators, group)
        self.reassembly = Reassembly(context)
        rooms = turn_rooms(
            foundation,
            group,
            serving=self.channels,
            leases=leases,
            live=self.live,
            policy=self.policy,
            people=self.people,
            operators=self.operators,
            requests=lambda: (self.requests, self.deadlines),
            left_s=self.reassembly.left_s,
            failed=self.notices.line,
            publish=self.bus.publish,
            log=turn_log,
        )
        self.outbox = rooms.outbox
        self.model_record = rooms.model.record
        self.runner = TurnRunner(rooms, on_parked=self._look_again)
        self.conversations = Conversations(context)
        self.rate_limiter = RateLimiter(context, self.conversations)
        self.mailboxes = Mailboxes(
            store=foundation.store,
            leases=leases,
            turns=self.runner,
            group=group,
            clock=foundation.clock,
            log=EventLog("mailbox"),
            predecessor=self.conversations.predecessor,
            debounce=Debounce(context, self.reassembly.left_s),
        )
        self.requests = Approvals(context, rooms.numbers)
        self.deadlines = Deadlines(context, group, requests=self.requests)
        self.strangers = Strangers(context, rooms.numbers, self.operators.readers)
        self.pair = PairCommand(context, self.requests)
        self.grants = GrantCommands(context)
        self.revocation = Revocation(context, group)
        self.reloader = Reloader(
            foundation, policy=self.policy, people=self.people, revocation=self.revocation
        )
        self.supervisor: Supervisor
        self.status = StatusOf(foundation.store, self._report)
        commands = Commands(
            context,
            conversations=self.conversations,
            requests=self.requests,
            pair=self.pair,
            grants=self.grants,
            status=self.status,
        )
        self.ingress = Ingress(
            context,
            strangers=self.strangers,
            conversations=self.conversations,
            reassembly=self.reassembly,
            rate_limiter=self.rate_limiter,
            planner=Planner(
                context,
                conversations=self.conversations,
                limiter=self.rate_limiter,
                reassembly=self.reassembly,
                commands=commands,
                requests=self.requests,
                turns=self.runner,
            ),
            commands=commands,
            revocation=self.revocation,
        )
        self.supervisor = Supervisor(
            admit=self.channels.noting(self.ingress.admit),
            clock=foundation.clock,
            tell_operators=lambda name, says: self.notices.tell(says, but_channel=name),
            log=EventLog("channels"),
        )
        self.transcript = Transcript(
            foundation.store,
            self.live,
            partial(screen_shown, redactor=foundation.start.checked.redactor),
        )
        self.anchors = Anchors(foundation.store, foundation.clock)
        self.retention = Sweep(
            store=foundation.store,
            anchors=self.anchors,
            clock=foundation.clock,
            settings=lambda: settings.config.retention,
            log=EventLog("retention"),
        )
        self.erasure = Erasure(
            store=foundation.store,
            leases=leases,
            mailboxes=self.mailboxes,
            clock=foundation.clock,
            ids=foundation.ids,
            ids_of=self.people.ids_of,
            announce=self.announce,
            log=EventLog("forgetting"),
        )
        self._disk = DiskWatch(foundation.start.places.data, foundation.clock, self.notices.tell)
        self._receipts = Receipts(foundation.store, foundation.keys)

    # --- what is stored ------------------------------------------------------------------------

    async def remember(self) -> None:
        """Take up what is stored, before anybody is let in; once, at a start."""
        store = self.foundation.store
        await self.take_halt(await read_halt(store))
        await learn_stored(store, self.people)
        async for chosen in LANGUAGE_CHOICES.all(store):
            self.people.chose(chosen)
        self.policy.revoke(self.people.revoked)
        await self.revocation.sweep()
        await self.deadlines.resume_strangers()
        await self.reassembly.remember()

    def announce(self, plan: Plan) -> None:
        """Tell every room what has just been committed; never waits."""
        for write in plan.writes:
            match write:
                case Put(kind=RowKind.OUTBOX):
                    self.outbox.announce(write)
                case Put(kind=RowKind.ADDRESS, expect=expect) if expect:
                    self.conversations.forget(write.key)
                case Put(kind=RowKind.FORGETTING):
                    self.erasure.learn(plan.writes)
                case Put(kind=RowKind.SWITCH):
                    self._group.create_task(self.take_halt(HALTS.of(write)), name="halt")
                case Put(kind=RowKind.PERSON):
                    now = PEOPLE.of(write)
                    self.foundation.log("person_decided", person=now.id, now=now.state, by=now.by)
                case _:
                    pass
        if any(isinstance(one, Put | Delete) and one.kind in _OF_PEOPLE for one in plan.writes):
            self.learn_people(plan.writes)
        for conversation in plan.wake:
            self.mailboxes.wake(conversation)

    def learn_people(self, writes: tuple[Write, ...]) -> None:
        """Keep ingress and gate in step with who is in, who wants in, and who was put out."""
        self.deadlines.written(writes)
        self.strangers.written(writes)
        before = self.people.revoked
        if self.people.written(writes):
            self.policy.revoke(self.people.revoked)
            if self.people.revoked - before:
                self.revocation.begin()

    async def take_halt(self, halt: Halt | None) -> None:
        """Put a halt in force, or end it."""
        self.policy.halt(halt)
        self.mailboxes.hold(halt is not None)
        if halt is not None:
            await self.runner.abort_all("halt", halt.by)

    # --- the life ------------------------------------------------------------------------------

    async def start(self, control: Mapping[str, Call]) -> None:
        """Start listeners and channels; returns when the listeners answer."""
        foundation = self.foundation
        for name, answer in control.items():
            foundation.control.call(name, answer)
        ready = asyncio.Event()
        self._group.create_task(foundation.control.serve(ready.set), name="control")
        if foundation.listener is not None:
            self._group.create_task(foundation.listener.serve(), name="listener")
        if foundation.public is not None:
            self._group.create_task(foundation.public.serve(), name="public listener")
        self._group.create_task(self.anchors.keep(), name="anchors")
        self._group.create_task(self.retention.keep(), name="retention")
        self._group.create_task(self._disk.keep(), name="disk")
        self._group.create_task(self.erasure.keep(), name="erasure")
        self._group.create_task(self.mailboxes.keep(), name="mailboxes")
        await self.channels.start(self.supervisor, self.transcript, self._menu)
        # Last, because what is wrong with a model is told by the channels.
        if isinstance(foundation.provider, Preloading):
            self._group.create_task(self._preload(foundation.provider), name="model")
        await ready.wait()

    def ready_facts(self) -> ReadyFacts:
        """Return what a person is told now."""
        foundation = self.foundation
        facts, checked = foundation.provider.facts, foundation.start.checked
        return ReadyFacts(
            model=facts.model,
            note=facts.note,
            web_url=self.channels.login_url(),
            channels=tuple(part.name for part in checked.channels),
            shell=foundation.shell_note,
            is_root=os.geteuid() == 0,
            halted=self.policy.halted_by,
            claim=self.strangers.open_claim(part.name for part in checked.channels),
        )

    async def receipts_in(self, text: str) -> list[dict[str, object]]:
        """Return every receipt of a text, verified."""
        return await self._receipts.verify(text)

    # --- what rooms call above themselves ------------------------------------------------------

    async def _look_again(self) -> None:
        """Let a stop see that a turn has come to wait for a person."""
        await self.mailboxes.look_again()

    def _menu(self, channel: str) -> Menu:
        return menu_of(channel, self.policy(), self.people.operators(), self.foundation.clock.now())

    async def _preload(self, provider: Preloading) -> None:
        """Load a model before the first question; what is wrong is told, and asking tells again."""
        loaded = await call(provider.start)
        if isinstance(loaded, Raised):
            self.foundation.log("model_failed", why=loaded.line, level="error")
            await self.notices.tell(catalogue.MODEL_UNUSABLE.about(why=loaded.line))

    def _report(self) -> Status:
        return Status(
            version=self.foundation.start.version,
            model=self.foundation.provider.facts.model,
            channels={
                name: ChannelSeen(condition=one.condition, since=one.since, why=one.why)
                for name, one in self.supervisor.states.items()
            },
            busy=len(self.mailboxes),
            halted=self.policy.halted_by,
            restart_for=self.reloader.waiting,
            dropped=dict(self.ingress.dropped),
            refused=dict(self.rate_limiter.refused),
        )
