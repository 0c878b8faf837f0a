"""The whole daemon over fakes: the real rooms and the real wiring, no socket and no wall clock.

    world = World(tmp_path)
    async with world.running() as house:
        await house.say("hello")
        assert house.texts() == ["ok"]

Leaving the block is a `kill -9`: commits stay, and the next `running` is a restart. The clock stands
still until `advance`, so a deadline or a back-off never passes by itself.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from tests.fakes.chains import verify
from tests.fakes.counting_ids import CountingIds
from tests.fakes.house_parts import (
    CAPABILITIES,
    CONFIG,
    Facts,
    QuietControl,
    Threads,
    checked_of,
    part_of,
    places_in,
)
from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_tool import BURN, LOOK, POKE, PlainTool
from tests.fakes.scripted_channel import ScriptedChannel, Shown
from tests.fakes.scripted_model import Answer, ScriptedModel
from zeroclaw.channel import Capabilities, Card, Channel, ChannelContext, Outcome, TranscriptItem
from zeroclaw.clock import Ids
from zeroclaw.config.model import ChannelSettings, Config
from zeroclaw.context_provider import ContextProvider
from zeroclaw.conversation.inbox import INBOX, Obeyed
from zeroclaw.daemon.config_check import ChannelPart
from zeroclaw.daemon.foundation import Foundation, ReadyFacts, Start
from zeroclaw.daemon.life import Daemon, Hooks, Stopped
from zeroclaw.envelope import (
    Address,
    Admission,
    Answered,
    Attachment,
    Body,
    CheckedReceipt,
    Choice,
    Command,
    Deleted,
    Edited,
    Envelope,
    Pressed,
    Said,
    Sender,
)
from zeroclaw.events import Event
from zeroclaw.gate import approval, audit, receipt
from zeroclaw.gate.protection import Protected
from zeroclaw.gate.receipt_keys import DAY, Keys
from zeroclaw.inbound.live_config import Halt, LiveConfig, halt_put
from zeroclaw.retention.tables import TABLES
from zeroclaw.store import LogKind, Query, Row, RowKind
from zeroclaw.stores.off_the_record import OffTheRecord
from zeroclaw.tool import Tool
from zeroclaw.turn import entries
from zeroclaw.value import replace


class World:
    """Everything that outlives a restart: the store, the platforms, the model, the time.

    Attributes:
        config: The configuration that the next process, or a reload, reads.
        adapters: Functions that make a real channel, in place of the platform of the same name.
        local: The names of platforms on which every sender is the operator.
        others: Real tools, in addition to the fakes.
        context: The context providers of other packages.
        facts: The log, with `stopped` for a process that ended as it should.
        ready: The facts that each process reported when it was up.
        contexts: The newest context of each platform's adapter.
    """

    def __init__(
        self, path: Path, config: Config = CONFIG, clock: ManualClock | None = None
    ) -> None:
        self.config = config
        self.clock = clock or ManualClock()
        self.ids: Ids = CountingIds(clock=self.clock)
        self.store = MemoryStore(clock=self.clock, tables=TABLES)
        self.model = ScriptedModel()
        self.summariser: ScriptedModel | None = None
        self.look, self.poke, self.burn = (PlainTool(spec) for spec in (LOOK, POKE, BURN))
        self.tools: tuple[PlainTool, ...] = (self.look, self.poke, self.burn)
        self.others: tuple[Tool, ...] = ()
        self.context: tuple[ContextProvider, ...] = ()
        self.platforms: dict[str, ScriptedChannel] = {}
        self.adapters: dict[str, Callable[[ChannelContext], Channel]] = {}
        self.local: tuple[str, ...] = ()
        self.facts = Facts()
        self.ready: list[ReadyFacts] = []
        self.contexts: dict[str, ChannelContext] = {}
        self.numbers = itertools.count(1)
        self.path = path
        self._processes = itertools.count(1)
        self._earlier: tuple[receipt.Key, ...] = ()
        self._starts: list[datetime] = []
        for name in config.channels:
            self.add_platform(name)

    def add_platform(self, name: str, capabilities: Capabilities = CAPABILITIES) -> ScriptedChannel:
        """Make a platform, or replace it by one with other capabilities."""
        platform = ScriptedChannel(clock=self.clock, capabilities=capabilities, name=name)
        self.platforms[name] = platform
        return platform

    def add_channel(self, name: str) -> None:
        """Configure another platform, for the next process."""
        self.configure(channels={**self.config.channels, name: ChannelSettings()})
        self.add_platform(name)

    def configure(self, **settings: object) -> None:
        """Change keys of the configuration, for the next process or a reload."""
        self.config = self.config.model_copy(update=settings)

    async def halt(self, by: str) -> None:
        """Halt the bot while no process runs."""
        await self.store.write(halt_put(Halt(by=by, at=self.clock.now())))

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["House"]:
        """Run a process; leaving the block kills it."""
        loop = asyncio.get_running_loop()
        threads = Threads()
        loop.set_default_executor(threads)
        async with asyncio.TaskGroup() as owner:
            started: asyncio.Future[House] = loop.create_future()

            async def process() -> None:
                try:
                    async with asyncio.TaskGroup() as group:
                        hooks = Hooks(on_ready=self.ready.append, stop=asyncio.Event())
                        parts = self._parts()
                        daemon = Daemon(parts, hooks, group)
                        started.set_result(House(self, daemon, parts, hooks, threads))
                        await daemon.live()
                except* Stopped:
                    self.facts("stopped")

            task = owner.create_task(process(), name="process")
            try:
                house = await started
                await house.settle()
                yield house
            finally:
                task.cancel()

    @asynccontextmanager
    async def told(
        self, text: str, *script: Answer, by: str = "ada", room: str = "", channel: str = "chat"
    ) -> AsyncGenerator["House"]:
        """Run a process to which a person has written; the script is what the model answers."""
        self.model.will(*script)
        async with self.running() as house:
            await house.say(text, by, room=room, channel=channel)
            yield house

    def _parts(self) -> Foundation:
        process = next(self._processes)
        key = receipt.Key(id=f"key {process}", secret=bytes([process]) * 32)
        starts = [at for at in self._starts if at <= self.clock.now() - DAY]
        earlier = max(starts, default=None)
        keys = Keys(current=key, every=(*self._earlier, key), since_s=0, earlier=earlier)
        self._earlier = keys.every
        self._starts.append(self.clock.now())
        start = self._read()
        return Foundation(
            start=start,
            settings=LiveConfig(start.config, start.checked.statements),
            store=OffTheRecord(self.store, facts_of=approval.without_words),
            provider=self.model,
            tools={tool.spec.name: tool for tool in (*self.tools, *self.others)},
            keys=keys,
            protected=Protected(closed=()),
            listener=None,
            public=None,
            control=QuietControl(self.path, log=self.facts),
            clock=self.clock,
            ids=self.ids,
            log=self.facts,
            jitter=lambda: 1.0,
            shell_note="",
            watched="",
            context=self.context,
            summariser=self.summariser,
        )

    def _read(self) -> Start:
        return Start(
            config=self.config,
            checked=checked_of(self.config, self._part),
            places=places_in(self.path),
            version="1",
            reread=self._read,
        )

    def _part(self, name: str) -> ChannelPart:
        def make(context: ChannelContext) -> Channel:
            self.contexts[name] = context
            return self.adapters[name](context) if name in self.adapters else self.platforms[name]

        return part_of(name, local=name in self.local, make=make)


class House:
    """One process, with the people who write to it.

    People are named by their sender ids; `ada` is the operator. Without `room` they write in their
    own direct chat; `room/1` is a thread of the room.
    """

    def __init__(
        self, world: World, daemon: Daemon, parts: Foundation, hooks: Hooks, threads: "Threads"
    ) -> None:
        self.world = world
        self.daemon = daemon
        self.services = daemon.services
        self.page = daemon.page
        self.parts = parts
        self.hooks = hooks
        self._threads = threads

    # --- time ----------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Wait until nothing more happens without time passing."""
        await self.world.clock.settle()
        while self._threads.has_news():
            await self._threads.catch_up()
            await self.world.clock.settle()

    async def advance(self, seconds: float) -> None:
        """Let time pass."""
        await self.settle()
        await self.world.clock.advance(seconds)
        await self.settle()

    async def stop(self) -> None:
        """Send SIGTERM."""
        self.hooks.stop.set()
        await self.settle()

    # --- people --------------------------------------------------------------------------------

    def place(self, who: str = "ada", room: str = "", channel: str = "chat") -> Address:
        chat, _, thread = room.partition("/")
        address = self.world.platforms[channel].address(chat or who, direct=not room)
        return replace(address, thread=thread or None)

    async def say(
        self, text: str, who: str = "ada", *, room: str = "", channel: str = "chat"
    ) -> Admission:
        """Send a message or a command, and settle."""
        return await self.event(self.said(text), who, room=room, channel=channel)

    async def edit(self, message: str, text: str, who: str = "ada", *, room: str = "") -> Admission:
        """Edit a message; `message` is `p1` for the first event of the world."""
        return await self.event(Edited(message=message, said=Said(text=text)), who, room=room)

    async def withdraw(self, message: str, who: str = "ada", *, room: str = "") -> Admission:
        return await self.event(Deleted(message=message), who, room=room)

    async def press(
        self,
        choice: Choice = "once",
        who: str = "ada",
        *,
        call: int = 0,
        at: str = "",
        reason: str = "",
        channel: str = "chat",
    ) -> str:
        """Answer a call of the newest card in a person's chat; return the toast."""
        cards = [
            message
            for message in self._messages(at or who, "", channel)
            if message.card is not None
        ]
        card = cards[-1].card
        assert card is not None
        pressed = Pressed(
            approval=card.calls[call].approval, choice=choice, reason=reason, card=cards[-1].ref
        )
        admission = await self.event(pressed, who, channel=channel)
        return admission.text if isinstance(admission, Answered) else ""

    def said(self, text: str) -> Body:
        if text.startswith("/"):
            name, _, rest = text[1:].partition(" ")
            return Command(name=name, rest=rest)
        return Said(text=text)

    def command(self, name: str, rest: str = "") -> Command:
        return Command(name=name, rest=rest)

    def pressed(self, choice: Choice = "once", *, call: int = 0) -> Pressed:
        """Return a press on Ada's newest card."""
        return Pressed(approval=self.card().calls[call].approval, choice=choice)

    async def say_and_die(self, text: str, *files: Attachment) -> None:
        """Send a message or a command; some commit never returns, see `MemoryStore.cut_after`."""
        await self._and_die(replace(self.envelope(self.said(text)), attachments=files))

    def watch(self) -> list[Event]:
        """Return a list that collects the events of turns from now on."""
        events: list[Event] = []
        self.services.bus.subscribe(events.append)
        return events

    async def press_and_die(self) -> None:
        """Press approve; some commit never returns, see `MemoryStore.cut_after`."""
        await self._and_die(self.envelope(self.pressed()))

    async def _and_die(self, envelope: Envelope) -> None:
        async with asyncio.TaskGroup() as group:
            admission = group.create_task(self.services.ingress.admit(envelope))
            await self.settle()
            admission.cancel()

    async def event(
        self, body: Body, who: str = "ada", *, room: str = "", channel: str = "chat", key: str = ""
    ) -> Admission:
        """Give an event to the adapter, and settle."""
        envelope = self.envelope(body, who, room=room, channel=channel, key=key)
        admission = await self.world.platforms[channel].say(envelope)
        await self.settle()
        return admission

    def envelope(
        self, body: Body, who: str = "ada", *, room: str = "", channel: str = "chat", key: str = ""
    ) -> Envelope:
        """Return an event as the adapter decodes it; the n-th one's message is `p<n>`."""
        number = next(self.world.numbers)
        return Envelope(
            address=self.place(who, room, channel),
            sender=Sender(id=who, verified=True, display=who.title()),
            dedup=(key or f"n{number}",),
            body=body,
            message=f"p{number}",
        )

    # --- the chats -----------------------------------------------------------------------------

    def texts(self, who: str = "ada", *, room: str = "", channel: str = "chat") -> list[str]:
        """Return the texts of the messages in a chat."""
        return [shown.text for shown in self._messages(who, room, channel)]

    def receipts(self, who: str = "ada", *, back: int = 1) -> tuple[CheckedReceipt, ...]:
        """Return the receipts of a message in a person's chat: the newest, or one further back."""
        return self._messages(who, "", "chat")[-back].receipts

    def card(self, who: str = "ada", *, channel: str = "chat") -> Card:
        """Return the newest card in a person's chat."""
        return [
            message.card for message in self._messages(who, "", channel) if message.card is not None
        ][-1]

    def outcome(self, who: str = "ada", *, channel: str = "chat") -> Outcome | None:
        """Return the outcome that the newest card shows."""
        cards = [
            message for message in self._messages(who, "", channel) if message.card is not None
        ]
        return cards[-1].outcome

    def endings(self, who: str = "ada", *, channel: str = "chat") -> list[tuple[str, str]]:
        """Return how each call of the newest card ended, and who ended it."""
        outcome = self.outcome(who, channel=channel)
        return [] if outcome is None else [(end.how, end.by) for end in outcome.endings]

    def _messages(self, who: str, room: str, channel: str) -> list[Shown]:
        address = self.place(who, room, channel)
        return self.world.platforms[channel].standing(address)

    # --- the store -----------------------------------------------------------------------------

    async def states(self, *kinds: str) -> list[str]:
        """Return the states of the inbox rows of turns, in order of admission."""
        rows = await self.world.store.select(Query(kind=RowKind.INBOX))
        items = [row for row in rows if not isinstance(INBOX.of(row).content, Obeyed)]
        return [row.state for row in items if not kinds or row.state in kinds]

    async def ask(self, name: str, **fields: object) -> dict[str, object]:
        """Make a call over the control socket."""
        control = self.parts.control
        assert isinstance(control, QuietControl)
        answer = await control.ask(name, **fields)
        await self.settle()
        return answer

    async def transcript(self) -> tuple[TranscriptItem, ...]:
        """Return the transcript of Ada's own chat."""
        return await self.services.transcript.read(self.place(), "")

    def streams(self) -> list[str]:
        """Return the names of the control socket's streams."""
        control = self.parts.control
        assert isinstance(control, QuietControl)
        return control.streams

    async def numbers(self) -> tuple[int, ...]:
        """Return the numbers of open approval requests in their approvers' chats, in order."""
        rows = await self.rows(RowKind.APPROVAL, "pending")
        requests = [approval.APPROVALS.of(row) for row in rows]
        return tuple(
            sorted(numbered.number for request in requests for numbered in request.numbers)
        )

    async def rows(self, kind: RowKind, state: str | None = None) -> tuple[Row, ...]:
        return await self.world.store.select(Query(kind=kind, state=state))

    async def journal(self) -> list[entries.Entry]:
        """Return the journal entries of all conversations."""
        journal: list[entries.Entry] = []
        for stream in await self.world.store.streams(LogKind.JOURNAL):
            log = await self.world.store.read(LogKind.JOURNAL, stream)
            journal += [entries.decode(entry.body) for entry in log]
        return journal

    async def audited(self) -> list[str]:
        """Return the kinds of the audit entries of all conversations, and verify each chain."""
        kinds: list[str] = []
        for stream in await self.world.store.streams(LogKind.AUDIT):
            bodies = [entry.body for entry in await self.world.store.read(LogKind.AUDIT, stream)]
            assert isinstance(verify(bodies), audit.Intact)
            records = [audit.read(body) for body in bodies]
            kinds += [record.kind for record in records if isinstance(record, audit.Entry)]
        return kinds
