"""Wires the rooms to each other: who is handed what, in one place."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from zeroclaw.console.pulse import Pulse
from zeroclaw.daemon.acquaintance import Acquaintance, people_of
from zeroclaw.daemon.in_force import PolicyInForce
from zeroclaw.daemon.operator_page import Given, OperatorPage
from zeroclaw.daemon.parts import Parts, ReadyFacts
from zeroclaw.daemon.reloading import Reloading
from zeroclaw.daemon.serving import Serving
from zeroclaw.daemon.turn_rooms import turn_rooms
from zeroclaw.delivery.live import Live
from zeroclaw.events import Bus
from zeroclaw.foreign import Raised, call
from zeroclaw.gate.receipt_screen import screen_shown
from zeroclaw.host.logs import EventLog
from zeroclaw.inbound.anchors import Anchors
from zeroclaw.inbound.answers import Answers
from zeroclaw.inbound.commands.forget import ForgetCommand
from zeroclaw.inbound.commands.menu import menu_of
from zeroclaw.inbound.commands.registry import Commands
from zeroclaw.inbound.commands.status import StatusOf
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.ingress import Ingress
from zeroclaw.inbound.limiter import RateLimiter
from zeroclaw.inbound.mailbox import Mailboxes
from zeroclaw.inbound.operators import Failures, Notices, Operators
from zeroclaw.inbound.plan import Plan
from zeroclaw.inbound.planner import Planner
from zeroclaw.inbound.reassembly import Debounce, Reassembly
from zeroclaw.inbound.receipts import Receipts
from zeroclaw.inbound.reminding import Reminding
from zeroclaw.inbound.supervisor import Supervisor
from zeroclaw.inbound.transcript import Transcript
from zeroclaw.menu import Menu
from zeroclaw.provider import Preloading
from zeroclaw.retention.disk import DiskWatch
from zeroclaw.retention.erase import Erasure
from zeroclaw.retention.sweep import Sweep
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.turn.leases import Leases
from zeroclaw.turn.runner import Runner

Answer = Callable[[Mapping[str, object]], Awaitable[Mapping[str, object]]]


class Wired:
    """Every room of a running daemon; made inside the task group that owns their tasks."""

    def __init__(
        self,
        parts: Parts,
        group: asyncio.TaskGroup,
        *,
        announce: Callable[[Plan], None],
        pulse: Pulse,
    ) -> None:
        """Wire them; nothing runs before `start`. `pulse` beats with each commit."""
        self._parts = parts
        self._group = group
        config, checked = parts.start.config, parts.start.checked
        self.serving = Serving(parts, group)
        settings = parts.settings
        self.policy = PolicyInForce(settings)
        self.people = people_of(
            config, (part.name for part in checked.channels if part.manifest.local_operator)
        )
        self.operators = Operators(
            self.people,
            self.serving.channel_of,
            settings=lambda: settings.config.approvals,
        )
        leases = Leases(parts.store)
        self.live = Live(account_of=self.serving.shows_drafts, group=group)
        turn_log = EventLog("turn")
        self.bus = Bus(
            lambda raised: turn_log("subscriber_failed", why=raised.line, level="warning")
        )
        self.failures = Failures(
            readers=self.operators.readers,
            tell=self._tell,
            clock=parts.clock,
            ids=parts.ids,
            group=group,
        )
        self.reassembly = Reassembly(parts.store, parts.clock)
        self.reminding: Reminding
        rooms = turn_rooms(
            parts,
            group,
            serving=self.serving,
            leases=leases,
            live=self.live,
            policy=self.policy,
            people=self.people,
            operators=self.operators,
            questions=lambda: self.acquaintance.questions,
            reminding=lambda: self.reminding,
            left_s=self.reassembly.left_s,
            failed=self.failures.line,
            publish=self.bus.publish,
            log=turn_log,
        )
        self.outbox = rooms.outbox
        self.model_record = rooms.model_record
        self.notices = Notices(self.operators, parts.store, self.outbox, parts.ids)
        self.reminding = Reminding(
            store=parts.store,
            clock=parts.clock,
            ids=parts.ids,
            group=group,
            lead_s=self._remind_s,
            language_at=self.operators.language_at,
            announce=self.outbox.announce_written,
        )
        self.runner = Runner(rooms, on_parked=self._look_again)
        self.conversations = Conversations(
            parts.store,
            parts.clock,
            parts.ids,
            channels=lambda: settings.config.channels,
        )
        context = InboundContext(
            store=parts.store,
            clock=parts.clock,
            ids=parts.ids,
            settings=settings,
            policy=self.policy,
            people=self.people,
            redact=checked.redactor.redact,
            log=EventLog("ingress"),
        )
        self.rate_limiter = RateLimiter(context, self.conversations)
        self.mailboxes = Mailboxes(
            store=parts.store,
            leases=leases,
            turns=self.runner,
            group=group,
            clock=parts.clock,
            log=EventLog("mailbox"),
            predecessor=self.conversations.predecessor,
            debounce=Debounce(
                parts.store,
                parts.clock,
                self._collect_s,
                self.reassembly.left_s,
            ),
        )
        self.acquaintance = Acquaintance(
            parts,
            self.people,
            context,
            group=group,
            policy=self.policy,
            operators=self.operators.readers,
            numbers=rooms.numbers,
            wake=self.mailboxes.wake,
            announce=announce,
        )
        self.answers = Answers(
            store=parts.store,
            questions=self.acquaintance.questions,
            policy=self.policy,
            redact=checked.redactor.redact,
            ids=parts.ids,
            numbers=rooms.numbers,
        )
        self.reloading = Reloading(
            parts,
            policy=self.policy,
            people=self.people,
            revocation=self.acquaintance.revocation,
        )
        self.supervisor: Supervisor
        self.status = StatusOf(
            version=parts.start.version,
            store=parts.store,
            model=lambda: parts.provider.facts.model,
            channels=lambda: self.supervisor.states,
            busy=lambda: len(self.mailboxes),
            halted=lambda: self.policy.halted_by,
            waiting_keys=lambda: self.reloading.waiting,
            dropped=lambda: self.ingress.dropped,
            refused=lambda: self.rate_limiter.refused,
        )
        commands = Commands(
            conversations=self.conversations,
            answers=self.answers,
            pair=self.acquaintance.pair,
            grants=self.acquaintance.grants,
            forget=ForgetCommand(parts.store, policy=self.policy, clock=parts.clock, ids=parts.ids),
            policy=self.policy,
            status=self.status,
            clock=parts.clock,
            ids=parts.ids,
        )
        self.ingress = Ingress(
            context,
            strangers=self.acquaintance.strangers,
            conversations=self.conversations,
            reassembly=self.reassembly,
            rate_limiter=self.rate_limiter,
            planner=Planner(
                context,
                conversations=self.conversations,
                limiter=self.rate_limiter,
                commands=commands,
                answers=self.answers,
                turns=self.runner,
            ),
            commands=commands,
            revocation=self.acquaintance.revocation,
            announce=announce,
        )
        self.supervisor = Supervisor(
            admit=self.serving.noting(self.ingress.admit),
            clock=parts.clock,
            tell_operators=lambda name, says: self.notices.tell(says, but_channel=name),
            log=EventLog("channels"),
        )
        self.transcript = Transcript(
            parts.store,
            self.live,
            partial(screen_shown, redactor=parts.start.checked.redactor),
        )
        self.anchors = Anchors(parts.store, parts.clock)
        self.retention = Sweep(
            store=parts.store,
            anchors=self.anchors,
            clock=parts.clock,
            settings=lambda: settings.config.retention,
            log=EventLog("retention"),
        )
        self.forgetting = Erasure(
            store=parts.store,
            leases=leases,
            mailboxes=self.mailboxes,
            clock=parts.clock,
            ids=parts.ids,
            ids_of=self.people.ids_of,
            announce=self.outbox.announce_written,
            log=EventLog("forgetting"),
        )
        self._disk = DiskWatch(parts.start.places.data, parts.clock, self.notices.tell)
        self._receipts = Receipts(parts.store, parts.keys)
        given = Given(
            pulse=pulse,
            people=self.people,
            policy=self.policy,
            transcript=self.transcript,
            admit=self.ingress.admit,
            pair=self.acquaintance.pair.console,
            grants=self.acquaintance.grants.console,
        )
        self.page = OperatorPage(parts, group, given)

    # --- the life ------------------------------------------------------------------------------

    async def start(self, control: Mapping[str, Answer]) -> None:
        """Start listeners and channels; returns when the listeners answer."""
        parts = self._parts
        for name, answer in control.items():
            parts.control.call(name, answer)
        ready = asyncio.Event()
        self._group.create_task(parts.control.serve(ready.set), name="control")
        if parts.listener is not None:
            self._group.create_task(parts.listener.serve(), name="listener")
        if parts.public is not None:
            self._group.create_task(parts.public.serve(), name="public listener")
        self._group.create_task(self.anchors.keep(), name="anchors")
        self._group.create_task(self.acquaintance.questions.keep(), name="strangers")
        self._group.create_task(self.retention.keep(), name="retention")
        self._group.create_task(self._disk.keep(), name="disk")
        self._group.create_task(self.forgetting.keep(), name="forgetting")
        self._group.create_task(self.mailboxes.keep(), name="desks")
        self.page.start()
        await self.serving.start(self.supervisor, self.transcript, self._menu)
        # Last, because what is wrong with a model is told by the channels.
        if isinstance(parts.provider, Preloading):
            self._group.create_task(self._preload(parts.provider), name="model")
        await ready.wait()

    def ready_facts(self) -> ReadyFacts:
        """Return what a person is told now."""
        parts = self._parts
        facts = parts.provider.facts
        return ReadyFacts(
            model=facts.model,
            note=facts.note,
            web_url=self.serving.login_url(),
            channels=tuple(part.name for part in parts.start.checked.channels),
            shell=parts.shell_note,
            is_root=os.geteuid() == 0,
            halted=self.policy.halted_by,
            claim=self.acquaintance.open_claim(),
        )

    async def receipts_in(self, text: str) -> list[dict[str, object]]:
        """Return every receipt of a text, verified."""
        return await self._receipts.verify(text)

    # --- what rooms call above themselves ------------------------------------------------------

    async def _look_again(self) -> None:
        """Let a stop see that a turn has come to wait for a person."""
        await self.mailboxes.look_again()

    def _menu(self, channel: str) -> Menu:
        return menu_of(channel, self.policy(), self.people.operators(), self._parts.clock.now())

    def _remind_s(self) -> float:
        approvals = self._parts.settings.config.approvals
        return approvals.timeout_s * approvals.remind_share

    async def _tell(self, says: Localized) -> None:
        """Tell every operator; how they are told is made after those who have to."""
        await self.notices.tell(says)

    async def _preload(self, provider: Preloading) -> None:
        """Load a model before the first question; what is wrong is told, and asking tells again."""
        loaded = await call(provider.start)
        if isinstance(loaded, Raised):
            self._parts.log("model_failed", why=loaded.line, level="error")
            await self.notices.tell(catalogue.MODEL_UNUSABLE.about(why=loaded.line))

    def _collect_s(self, channel: str) -> float:
        # A message may wait that came by a channel that was taken out since.
        settings = self._parts.settings.config.channels.get(channel)
        return 0.0 if settings is None else settings.collect_s
