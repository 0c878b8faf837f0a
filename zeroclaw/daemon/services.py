"""The services of a running daemon, created and wired in one place."""

import asyncio
import os
from functools import partial

from zeroclaw.channel import Menu
from zeroclaw.config.model import NotesSettings
from zeroclaw.context.composer import RequestSources
from zeroclaw.context.model import Model, ModelRecord
from zeroclaw.context.notes import Notes
from zeroclaw.context.offers import Offers
from zeroclaw.context.providers import ContextProviders
from zeroclaw.context.recollection import Recollection
from zeroclaw.context.skills import skills_provider
from zeroclaw.conversation.downloads import Downloads
from zeroclaw.conversation.turn_row import open_drafts
from zeroclaw.daemon.channel_host import ChannelHost
from zeroclaw.daemon.extensions import built_in_context, by_name
from zeroclaw.daemon.foundation import Foundation, ReadyFacts
from zeroclaw.daemon.reload import Reloader
from zeroclaw.delivery.live import Live
from zeroclaw.delivery.outbox import Outbox
from zeroclaw.errors import RecordUnreadable, StoreUnusable
from zeroclaw.events import Bus
from zeroclaw.foreign import Raised, call
from zeroclaw.gate.decide import Gate
from zeroclaw.gate.receipt_screen import screen_shown
from zeroclaw.gate.verdict import Refusals
from zeroclaw.host.answers import Status
from zeroclaw.host.executors import FairShare
from zeroclaw.host.logs import EventLog
from zeroclaw.inbound.anchors import Anchors
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.commands.grants import GrantCommands
from zeroclaw.inbound.commands.pair import PairCommand
from zeroclaw.inbound.commands.registry import Commands, menu_of
from zeroclaw.inbound.commands.reports import StatusCommand
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.identity import PEOPLE, People
from zeroclaw.inbound.ingress import Ingress
from zeroclaw.inbound.limiter import RateLimiter
from zeroclaw.inbound.live_config import HALTS, Halt, LivePolicy, last_halt
from zeroclaw.inbound.mailbox import Mailboxes
from zeroclaw.inbound.open_requests import OpenRequests
from zeroclaw.inbound.operators import Notices, Operators
from zeroclaw.inbound.outbox_hooks import OutboxHooks
from zeroclaw.inbound.planner import Planner
from zeroclaw.inbound.reassembly import Reassembly
from zeroclaw.inbound.receipts import ReceiptVerifier
from zeroclaw.inbound.revocation import Revocation
from zeroclaw.inbound.strangers import Strangers
from zeroclaw.inbound.supervisor import Supervisor
from zeroclaw.inbound.transcript import Transcript
from zeroclaw.limits.budget import UsageBudget
from zeroclaw.provider import Measuring, Preloading
from zeroclaw.retention.disk import DiskWatch
from zeroclaw.retention.erase import Erasure
from zeroclaw.retention.sweep import Sweep
from zeroclaw.store import Delete, Put, RowKind, Write
from zeroclaw.text import catalogue
from zeroclaw.tools import attachments, loading, results
from zeroclaw.turn.context import TurnServices
from zeroclaw.turn.results import Results
from zeroclaw.turn.runner import TurnRunner
from zeroclaw.turn.session import Leases, SessionCache
from zeroclaw.turn.titles import Titles

_OF_PEOPLE = frozenset({RowKind.PERSON, RowKind.LANGUAGE, RowKind.STRANGER})
MAX_QUEUED_HISTORIES = 10_000
"""Limit of queued reads of long histories: turns queue for them too, so it is as many as the rate
limits can let through."""
MEASURE_AFTER_S = (0.0, 60.0, 600.0)
"""Seconds before each question for a model's window; a large model takes minutes to load."""


class Services:
    """All services of a running daemon; create them inside the task group that owns their tasks."""

    def __init__(self, foundation: Foundation, group: asyncio.TaskGroup) -> None:
        """Wire the services; nothing runs before `remember`."""
        self.foundation = foundation
        self._group = group
        store, clock, settings = foundation.store, foundation.clock, foundation.settings
        start, checked = foundation.start, foundation.start.checked
        self.channels = channels = ChannelHost(foundation, group)
        self.policy = LivePolicy(settings)
        self.people = People(start.config, {part.name: part.manifest for part in checked.channels})
        self._leases = Leases(store)
        self.live = live = Live(account_of=channels.draft_account, group=group)
        self.bus = Bus(
            lambda raised: EventLog("turn")(
                "subscriber_failed", reason=raised.line, level="warning"
            )
        )
        self.context = context = InboundContext(
            store=store,
            clock=clock,
            ids=foundation.ids,
            settings=settings,
            policy=self.policy,
            people=self.people,
            redact=checked.redactor.redact,
            log=EventLog("ingress"),
            announce=self.announce,
        )
        self.operators = Operators(self.people, channels.channel_of, settings, context.may_approve)
        self.notices = Notices(context, self.operators, group)
        self.reassembly = Reassembly(context)
        self.requests = Approvals(context)
        self.open_requests = OpenRequests(context, self.requests, self.notices, channels.wakeup)
        self.outbox = Outbox(
            store=store,
            accounts=channels.accounts,
            clock=clock,
            group=group,
            fence_of=self._leases.fence_of,
            hooks=OutboxHooks(context, self.requests, self.notices),
            jitter=foundation.jitter,
            drafts=lambda: open_drafts(store),
        )
        self.model_record = ModelRecord(clock)
        self.budget = UsageBudget(
            store, clock, settings=settings, model=foundation.provider.facts.model
        )
        self.offers = Offers(
            tools=foundation.tools,
            groups=foundation.groups,
            skills=lambda: settings.skills,
            policy=self.policy,
            current=self.people.by_now,
            now=clock.now,
            settings=settings,
        )
        self.anchors = Anchors(store, clock)
        self.retention = Sweep(
            store=store,
            anchors=self.anchors,
            clock=clock,
            settings=settings,
            log=EventLog("retention"),
            earlier=foundation.keys.earlier,
        )
        loaders = loading.tools(self.offers.groups_for, self.offers.skills_for)
        self.tools = {**foundation.tools, **by_name({"loading": loaders})}
        self._turns = self._turn_services()
        self.titles = Titles(self._turns)
        self.bus.subscribe(self.titles.hear)
        self.sources = self._turns.sources
        self.runner = TurnRunner(
            self._turns,
            # A shutdown must notice that a turn now waits for a person.
            on_parked=lambda: self.mailboxes.notify(),  # noqa: PLW0108  created below
        )
        self.conversations = Conversations(context)
        self.rate_limiter = RateLimiter(context, self.conversations)
        self.mailboxes = Mailboxes(
            sessions=SessionCache(store, self._leases, clock),
            turns=self.runner,
            arrivals=self._turns.arrivals,
            outbox=self.outbox,
            group=group,
            log=EventLog("mailbox"),
            conversations=self.conversations,
            reassembly=self.reassembly,
            notices=self.notices,
            policy=self.policy,
        )
        self.strangers = Strangers(context, self.requests, self.operators.readers)
        self.pair = PairCommand(context, self.requests)
        self.grants = GrantCommands(context)
        self.revocation = Revocation(context, group, channels.wakeup)
        self.reloader = Reloader(foundation, self.revocation)
        self.status = StatusCommand(store, self._report)
        planner = Planner(
            context,
            conversations=self.conversations,
            limiter=self.rate_limiter,
            reassembly=self.reassembly,
            commands=Commands(
                context=context,
                conversations=self.conversations,
                requests=self.requests,
                pair=self.pair,
                grants=self.grants,
                status=self.status,
                budget=self.budget,
                sources=self.sources,
            ),
            requests=self.requests,
            turns=self.runner,
        )
        self.ingress = Ingress(context, self.strangers, planner, self.revocation)
        self.supervisor = Supervisor(
            admit=channels.recording_positions(self.ingress.admit),
            clock=clock,
            tell_operators=lambda name, message: self.notices.tell(message, but_channel=name),
            log=EventLog("channels"),
        )
        self.transcript = Transcript(store, live, partial(screen_shown, redactor=checked.redactor))
        self.erasure = Erasure(context, self._leases, self.mailboxes, log=EventLog("erasure"))
        self._disk = DiskWatch(foundation.start.places.data, clock, self.notices.tell)
        self.receipts = ReceiptVerifier(store, foundation.keys)

    def _turn_services(self) -> TurnServices:
        """Return the services of turns."""
        foundation, settings, log = self.foundation, self.foundation.settings, EventLog("turn")
        config, redactor = foundation.start.config, foundation.start.checked.redactor
        recollection = Recollection(
            notes=Notes(foundation.store),
            max_chars=recalled_chars(config.tools.notes, foundation.provider.facts.context_tokens),
            redact=redactor.redact,
            max_notes=config.tools.notes.max_notes,
        )
        model = Model(
            provider=foundation.provider,
            summariser=foundation.summariser or foundation.provider,
            redactor=redactor,
            record=self.model_record,
            slots=asyncio.Semaphore(config.runtime.model_concurrency),
            max_output_tokens=config.provider.max_output_tokens,
        )
        reader = results.NAME if results.NAME in foundation.tools else ""
        return TurnServices(
            store=foundation.store,
            sources=RequestSources(
                model=model,
                offers=self.offers,
                providers=ContextProviders(
                    (
                        *built_in_context(
                            settings, foundation.start.places.workspaces, foundation.store
                        ),
                        skills_provider(self.offers.skills_for, self.offers.folders_for),
                        *foundation.context,
                        recollection,
                    ),
                    redactor.finds,
                ),
                files=config.attachments,
                reader=reader,
                settings=settings,
                clock=foundation.clock,
                publish=self.bus.publish,
                log=log,
                share=FairShare("long histories", at_once=2, max_waiting=MAX_QUEUED_HISTORIES),
            ),
            gate=Gate(
                tools=self.tools,
                policy=self.policy,
                protected=foundation.protected,
                redactor=redactor,
                refusals=Refusals(redactor, foundation.keys.current),
                clock=foundation.clock,
                ids=foundation.ids,
                settings=settings,
                approvers=self.operators.approvers,
                approver_now=self.context.approver_now,
            ),
            arrivals=Downloads(
                store=foundation.store,
                accounts=self.channels.accounts,
                clock=foundation.clock,
                settings=config.attachments,
                has_room=self.retention.has_room,
                reader=attachments.NAME if attachments.NAME in foundation.tools else "",
                takes=foundation.provider.facts.takes,
                log=log,
            ),
            recollection=recollection,
            live=self.live,
            outbox=self.outbox,
            results=Results(
                keys=foundation.keys, redactor=redactor, settings=settings, reader=reader
            ),
            clock=foundation.clock,
            ids=foundation.ids,
            log=log,
            budget=self.budget,
            report_failure=self.notices.notice,
            halted_by=self.policy.ended_by,
            current=self.people.by_now,
            revoked_by=self.people.excluded_by,
            workspaces=foundation.start.places.workspaces,
            reassembly_s=self.reassembly.remaining_s,
        )

    # --- stored state --------------------------------------------------------------------------

    async def remember(self) -> None:
        """Load the stored state before any message is admitted; once, at the start."""
        store = self.foundation.store
        try:
            self.take_halt(await last_halt(store))
            await self.people.load(store)
        except RecordUnreadable as error:  # nobody who was revoked may be let in for it
            message = (
                f"the record of a person or a halt is damaged ({error}); put a backup in place: "
                "`zeroclaw restore --force BACKUP`"
            )
            raise StoreUnusable(message) from error
        self.policy.revoke(self.people.revoked)
        await self.revocation.sweep()
        await self.reassembly.remember()
        await self.budget.remember()

    def announce(self, plan: Plan) -> None:
        """Tell every service about a committed plan; never waits."""
        for write in plan.writes:
            match write:
                case Put(kind=RowKind.OUTBOX):
                    self.outbox.announce(write)
                case Put(kind=RowKind.ADDRESS | RowKind.FORGETTING):
                    self.erasure.learn(write)
                case Put(kind=RowKind.SWITCH):
                    self.take_halt(HALTS.of(write))
                case Put(kind=RowKind.PERSON):
                    person = PEOPLE.of(write)
                    self.foundation.log(
                        "person_decided", person=person.id, now=person.state, by=person.by
                    )
                case _:
                    pass
        if any(isinstance(it, Put | Delete) and it.kind in _OF_PEOPLE for it in plan.writes):
            self.learn_people(plan.writes)
        for conversation in plan.wake:
            self.mailboxes.wake(conversation)

    def learn_people(self, writes: tuple[Write, ...]) -> None:
        """Update ingress and gate about admitted, waiting and revoked people."""
        self.strangers.written(writes)
        if self.people.learn_from_writes(writes):
            self.policy.revoke(self.people.revoked)
            self.revocation.begin()

    def take_halt(self, halt: Halt) -> None:
        """Put a halt into force at once, which ends running turns, or lift it."""
        self.policy.halt(halt)
        self.mailboxes.halt_changed()
        if not halt.over:
            self._group.create_task(self.runner.halt(halt.by), name="halt")

    # --- start ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start listeners and channels; return when the listeners answer."""
        foundation = self.foundation
        ready = asyncio.Event()
        tasks = {
            "control": foundation.control.serve(ready.set),
            "anchors": self.anchors.keep(),
            "retention": self.retention.keep(),
            "disk": self._disk.keep(),
            "erasure": self.erasure.keep(),
            "mailboxes": self.mailboxes.sessions.keep(),
            "titles": self.titles.keep(),
        }
        if foundation.listener is not None:
            tasks["listener"] = foundation.listener.serve()
        if foundation.public is not None:
            tasks["public_listener"] = foundation.public.serve()
        for name, work in tasks.items():
            self._group.create_task(work, name=name)
        await self.channels.start(self.supervisor, self.transcript, self.notices, self._menu)
        # After the channels' tasks: before they are up, it would find no reachable operator.
        self._group.create_task(self.open_requests.keep(), name="open_requests")
        # Last, because a model's problems are reported through the channels.
        for provider in (foundation.provider, foundation.summariser):
            if isinstance(provider, Measuring):
                self._group.create_task(self._measure(provider), name="window")
        if isinstance(foundation.provider, Preloading):
            self._group.create_task(self._preload(foundation.provider), name="model")
        await ready.wait()

    def ready_facts(self) -> ReadyFacts:
        """Return the facts for a greeting now."""
        foundation, web_name = self.foundation, self.channels.web_name
        facts, checked = foundation.provider.facts, foundation.start.checked
        listener = foundation.listener
        return ReadyFacts(
            model=facts.model,
            note=facts.note,
            web_url="" if listener is None else listener.new_login_url(f"/{web_name}/"),
            channels=tuple(part.name for part in checked.channels),
            shell=foundation.shell_note,
            is_root=os.geteuid() == 0,
            halted=self.policy.halted_by,
            claim=self.strangers.open_claim(part.name for part in checked.channels),
        )

    # --- callbacks of services -------------------------------------------------------------------

    def _menu(self, channel: str) -> Menu:
        return menu_of(channel, self.policy(), self.people.operators(), self.foundation.clock.now())

    async def _measure(self, provider: Measuring) -> None:
        """Ask for the window; again later, for an endpoint that starts together with the daemon."""
        for wait_s in MEASURE_AFTER_S:
            await self.foundation.clock.sleep(wait_s)
            await call(provider.measure)

    async def _preload(self, provider: Preloading) -> None:
        """Load the model before the first question; if it fails, tell the operators."""
        loaded = await call(provider.start)
        if isinstance(loaded, Raised):
            self.foundation.log("model_failed", reason=loaded.line, level="error")
            await self.notices.tell(catalogue.MODEL_UNUSABLE.about(why=loaded.line))

    def _report(self) -> Status:
        return Status(
            version=self.foundation.start.version,
            model=self.foundation.provider.facts.model,
            channels=dict(self.supervisor.states),
            busy=len(self.mailboxes),
            failures=self.model_record.failures,
            halted=self.policy.halted_by,
            restart_for=self.reloader.waiting,
            dropped=dict(self.ingress.dropped),
            refused=dict(self.rate_limiter.refused),
        )


def recalled_chars(settings: NotesSettings, context_tokens: int | None) -> int:
    """Return the character budget for the notes in one request; a small window has little room.

    A character may take four tokens in a language that the model hardly knows; then the notes fill
    half of the window.
    """
    max_chars = settings.recalled_chars if settings.enabled else 0
    return max_chars if context_tokens is None else min(max_chars, context_tokens // 8)
