"""Wires the rooms to each other: who is handed what, in one place."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from zeroclaw.channel import Channel, ChannelContext, LineStream
from zeroclaw.daemon.acquaintance import Acquaintance, people_of
from zeroclaw.daemon.checked import ChannelPart
from zeroclaw.daemon.in_force import PolicyInForce
from zeroclaw.daemon.parts import Parts, ReadyFacts
from zeroclaw.delivery.account import Account
from zeroclaw.delivery.live import Live
from zeroclaw.delivery.outbox import Outbox
from zeroclaw.delivery.rows import note_row
from zeroclaw.envelope import ConversationId, Position
from zeroclaw.errors import PortInUse
from zeroclaw.events import Bus
from zeroclaw.foreign import Raised, call
from zeroclaw.gate.approval import who
from zeroclaw.gate.conditions import ToolFacts, facts_of
from zeroclaw.gate.decide import Gate
from zeroclaw.gate.refusal import Refusals
from zeroclaw.gate.verdict import GateSettings
from zeroclaw.host.logs import EventLog
from zeroclaw.inbound.admission import Door
from zeroclaw.inbound.anchors import Anchors
from zeroclaw.inbound.answers import Answers
from zeroclaw.inbound.collecting import Collecting
from zeroclaw.inbound.commands import Commands
from zeroclaw.inbound.conversations import Conversations
from zeroclaw.inbound.forget import ForgetCommand
from zeroclaw.inbound.mailbox import Mailboxes
from zeroclaw.inbound.operators import Notices, Operators
from zeroclaw.inbound.plan import Plan
from zeroclaw.inbound.questions import CardsOfStrangers
from zeroclaw.inbound.receipts import Receipts
from zeroclaw.inbound.status import StatusOf
from zeroclaw.inbound.supervisor import Supervisor
from zeroclaw.inbound.transcript import Transcript
from zeroclaw.keeping.disk import DiskWatch
from zeroclaw.keeping.forgetting import Forgetting
from zeroclaw.keeping.sweep import Retention
from zeroclaw.provider import Preloading
from zeroclaw.record import decode
from zeroclaw.store import Put, RowKind, find_all
from zeroclaw.tools import results
from zeroclaw.turn.deliveries import Deliveries
from zeroclaw.turn.inbox import Item
from zeroclaw.turn.leases import Leases
from zeroclaw.turn.numbers import Numbers
from zeroclaw.turn.results import Results
from zeroclaw.turn.rooms import Rooms
from zeroclaw.turn.runner import Runner
from zeroclaw.turn.states import Limits

CALLS_AT_ONCE = 32
"""Calls to one platform under way at once; each is a request of its own."""

Answer = Callable[[Mapping[str, object]], Awaitable[Mapping[str, object]]]


class Wired:
    """Every room of a running daemon; made inside the task group that owns their tasks."""

    def __init__(
        self, parts: Parts, group: asyncio.TaskGroup, *, announce: Callable[[Plan], None]
    ) -> None:
        """Wire them; nothing runs before `start`."""
        self._parts = parts
        self._group = group
        config, checked = parts.start.config, parts.start.checked
        self._accounts: dict[str, Account] = {}
        self._web_url = ""
        self.policy = PolicyInForce(parts)
        self.people = people_of(config, checked.channels)
        self.operators = Operators(
            self.people,
            self._channel_of,
            requester_may_answer=config.approvals.requester_may_answer,
            approvers=config.approvals.approvers,
        )
        leases = Leases(parts.store)
        self.live = Live(account_of=self._shows_drafts, group=group)
        turn_log = EventLog("turn")
        self.bus = Bus(
            lambda raised: turn_log("subscriber_failed", why=raised.line, level="warning")
        )
        rooms = self._turn_rooms(leases, turn_log)
        self.outbox = rooms.outbox
        self.notices = Notices(self.operators, parts.store, self.outbox, parts.ids)
        self.runner = Runner(rooms, on_parked=self._look_again)
        self.conversations = Conversations(
            parts.store,
            parts.clock,
            parts.ids,
            channels=config.channels,
        )
        self.mailboxes = Mailboxes(
            store=parts.store,
            leases=leases,
            turns=self.runner,
            group=group,
            clock=parts.clock,
            log=EventLog("mailbox"),
            predecessor=self.conversations.predecessor,
            collecting=Collecting(
                parts.store,
                parts.clock,
                {name: settings.collect_s for name, settings in config.channels.items()},
            ),
        )
        self.acquaintance = Acquaintance(
            parts,
            self.people,
            group=group,
            policy=self.policy,
            operators=self.operators.addresses,
            numbers=rooms.numbers,
            wake=self.mailboxes.wake,
            announce=announce,
        )
        self.answers = Answers(
            store=parts.store,
            questions=self.acquaintance.questions,
            policy=self.policy,
            facts_of=self._facts_of,
            redact=checked.redactor.redact,
            ids=parts.ids,
            grant_s=config.approvals.grant_s,
        )
        self.supervisor: Supervisor
        self.status = StatusOf(
            version=parts.start.version,
            store=parts.store,
            model=lambda: parts.provider.facts.model,
            channels=lambda: self.supervisor.states,
            busy=lambda: len(self.mailboxes),
            halted=lambda: self.policy.halted_by,
            dropped=lambda: self.door.dropped,
        )
        self.door = Door(
            store=parts.store,
            people=self.people,
            strangers=self.acquaintance.strangers,
            conversations=self.conversations,
            commands=Commands(
                conversations=self.conversations,
                answers=self.answers,
                pair=self.acquaintance.pair,
                grants=self.acquaintance.grants,
                forget=ForgetCommand(
                    parts.store, policy=self.policy, clock=parts.clock, ids=parts.ids
                ),
                policy=self.policy,
                status=self.status,
                clock=parts.clock,
                ids=parts.ids,
            ),
            answers=self.answers,
            clock=parts.clock,
            ids=parts.ids,
            announce=announce,
            waiting_note=self._waiting_note,
            put_out=self.acquaintance.put_out,
            log=EventLog("door"),
            backlog=config.runtime.backlog,
        )
        self.supervisor = Supervisor(
            admit=self.door.admit,
            clock=parts.clock,
            tell_operators=lambda name, text: self.notices.tell(text, but_channel=name),
            log=EventLog("channels"),
        )
        self.transcript = Transcript(parts.store, self.live)
        self.anchors = Anchors(parts.store, parts.clock)
        self.retention = Retention(
            store=parts.store,
            anchors=self.anchors,
            clock=parts.clock,
            settings=config.retention,
            log=EventLog("retention"),
        )
        self.forgetting = Forgetting(
            store=parts.store,
            leases=leases,
            mailboxes=self.mailboxes,
            clock=parts.clock,
            ids=parts.ids,
            announce=self.outbox.announce_written,
            log=EventLog("forgetting"),
        )
        self._disk = DiskWatch(parts.start.places.data, parts.clock, self.notices.tell)
        self._receipts = Receipts(parts.store, parts.keys)

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
        self._group.create_task(self.anchors.keep(), name="anchors")
        self._group.create_task(self.acquaintance.questions.keep(), name="strangers")
        self._group.create_task(self.retention.keep(), name="retention")
        self._group.create_task(self._disk.keep(), name="disk")
        self._group.create_task(self.forgetting.keep(), name="forgetting")
        positions = [row async for row in find_all(parts.store, RowKind.POSITION)]
        for part in parts.start.checked.channels:
            mine = [row for row in positions if row.key.startswith(f"{part.name}/")]
            cursors = (decode(Position, row.body) for row in mine)
            context = ChannelContext(
                name=part.name,
                settings=part.settings,
                secrets=part.secrets,
                clock=parts.clock,
                mount=self,
                log=EventLog(f"channel.{part.name}"),
                positions={one.scope: one.cursor for one in cursors},
                transcript=self.transcript.read,
            )
            self._group.create_task(
                self.supervisor.keep(part.name, self._maker(part, context), self._up),
                name=f"channel {part.name}",
            )
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
            web_url=self.login_url(),
            channels=tuple(part.name for part in parts.start.checked.channels),
            shell=parts.shell_note,
            halted=self.policy.halted_by,
            claim=self.acquaintance.open_claim(),
        )

    def login_url(self) -> str:
        """Return a fresh address that opens the web chat and logs in, once; empty without one."""
        listener, channels = self._parts.listener, self._parts.start.checked.channels
        web = next((part for part in channels if part.manifest.kind == "web"), None)
        if listener is None or web is None:
            return ""
        return listener.fresh_login_url(f"/{web.name}/")

    async def receipts_in(self, text: str) -> list[dict[str, object]]:
        """Return every receipt of a text, verified."""
        return await self._receipts.verify(text)

    # --- mounts --------------------------------------------------------------------------------

    def web(self, prefix: str, application: object) -> str:
        """Mount a web application; see `Mount`."""
        if self._parts.listener is None:
            message = "there is no local listener"
            raise PortInUse(message)
        return self._parts.listener.web(prefix, application)

    def stream(self, name: str, serve: Callable[[LineStream], Awaitable[None]]) -> None:
        """Serve connections of the control socket; see `Mount`."""
        self._parts.control.stream(name, serve)

    # --- what rooms call above themselves ------------------------------------------------------

    def _turn_rooms(self, leases: Leases, log: EventLog) -> Rooms:
        parts, config = self._parts, self._parts.start.config
        redactor = parts.start.checked.redactor
        refusals = Refusals(redactor, parts.keys.current)
        gate = Gate(
            tools=parts.tools,
            policy=self.policy,
            protected=parts.protected,
            redactor=redactor,
            refusals=refusals,
            clock=parts.clock,
            ids=parts.ids,
            settings=GateSettings(
                approval_timeout_s=config.approvals.timeout_s,
                approvers=config.approvals.approvers,
                requester_may_answer=config.approvals.requester_may_answer,
            ),
        )
        hooks = Deliveries(lambda: rooms)
        outbox = Outbox(
            store=parts.store,
            account_of=self._accounts.get,
            clock=parts.clock,
            group=self._group,
            fence_of=leases.fence_of,
            hooks=CardsOfStrangers(hooks, lambda: self.acquaintance.questions),
            jitter=parts.jitter,
        )
        rooms = Rooms(
            store=parts.store,
            provider=parts.provider,
            gate=gate,
            refusals=refusals,
            tools=parts.tools,
            live=self.live,
            outbox=outbox,
            redactor=redactor,
            keys=parts.keys,
            results=Results(
                keys=parts.keys,
                redactor=redactor,
                cap_chars=config.runtime.result_chars,
                reader=results.NAME if results.NAME in parts.tools else "",
            ),
            numbers=Numbers(parts.store),
            clock=parts.clock,
            ids=parts.ids,
            publish=self.bus.publish,
            log=log,
            limits=Limits(
                max_rounds=config.runtime.max_iterations,
                max_tokens=config.runtime.max_session_tokens or None,
            ),
            approvers=self.operators.approvers,
            operators=self.operators.addresses,
            policy=self.policy,
            halted=lambda: self.policy.halted_by,
            revoked=lambda principal: self.people.revoked_by(principal.id),
            workspace=self._workspace,
            model_slots=asyncio.Semaphore(config.runtime.model_concurrency),
            prompt=config.runtime.prompt,
            max_output_tokens=config.provider.max_output_tokens,
        )
        return rooms

    async def _look_again(self) -> None:
        """Let a stop see that a turn has come to wait for a person."""
        await self.mailboxes.look_again()

    async def _preload(self, provider: Preloading) -> None:
        """Load a model before the first question; what is wrong is told, and asking tells again."""
        loaded = await call(provider.start)
        if isinstance(loaded, Raised):
            self._parts.log("model_failed", why=loaded.line, level="error")
            await self.notices.tell(f"The model can't be used: {loaded.line}")

    async def _workspace(self, conversation: ConversationId) -> Path:
        path = self._parts.start.places.workspaces / conversation
        await asyncio.to_thread(path.mkdir, mode=0o700, parents=True, exist_ok=True)
        return path

    def _facts_of(self, tool: str) -> ToolFacts | None:
        found = self._parts.tools.get(tool)
        return None if found is None else facts_of(found.spec)

    def _channel_of(self, name: str) -> Channel | None:
        account = self._accounts.get(name)
        return None if account is None else account.channel

    def _shows_drafts(self, name: str) -> Account | None:
        """Return the account of a channel whose answers are shown while they are written."""
        # An answer may still be due in a chat of a channel that was taken out since.
        settings = self._parts.start.config.channels.get(name)
        return self._accounts.get(name) if settings is not None and settings.stream else None

    def _maker(self, part: ChannelPart, context: ChannelContext) -> Callable[[], Channel]:
        return lambda: self._parts.openers.channel(part.make(context))

    def _up(self, channel: Channel) -> None:
        self._accounts[channel.name] = Account(
            channel=channel,
            clock=self._parts.clock,
            group=self._group,
            call_timeout_s=self._parts.start.config.runtime.call_timeout_s,
            calls_at_once=CALLS_AT_ONCE,
        )

    def _waiting_note(self, item: Item) -> Put | None:
        """Tell a writer why their message waits, when it is not just the queue (§4)."""
        if self.policy.halted_by:
            text = f"Halted by {self.policy.halted_by}; your message waits for `/resume`."
        elif tools := self.runner.waits_for(item):
            names = ", ".join(f"`{tool}`" for tool in dict.fromkeys(tools))
            approvers = who(self._parts.start.config.approvals.approvers)
            text = f"Waiting for {approvers} to approve {names}; your message is next."
        else:
            return None
        return note_row(
            key=self._parts.ids.ulid(),
            conversation=item.conversation,
            address=item.address,
            text=text,
        )
