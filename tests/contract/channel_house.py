"""The product's rooms over one real channel adapter, on an emulated platform.

    async with living(adapter, tmp_path) as home:
        async with home.running():
            approval = await home.request_approval()
            await home.answer("olga", approval)
            await home.until_texts("ann", "so be it")

Ann and Bob may write to the bot; Olga is its operator; Mallory is a stranger. On a local channel every
person is the operator, so Ann is Olga, and the others do not exist.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar, cast

from tests.contract.channel_suite import Adapter, Harness, noting
from tests.fakes.house import House, World
from tests.fakes.house_parts import CONFIG
from tests.fakes.scripted_model import asks_for, says
from zeroclaw import Admission, Admit, Channel, ChannelContext, Choice, Envelope
from zeroclaw.config.model import ApprovalSettings, ChannelSettings, PersonSettings
from zeroclaw.gate.approval import APPROVALS, Approval, ApprovalRequest
from zeroclaw.store import Commit, Query, RowKind
from zeroclaw.value import replace

T = TypeVar("T")
PEOPLE = ("ann", "bob", "olga")
POKED = "so be it"
LOOKS_S = 0.02
"""Real seconds for which a wait gives the sockets a chance before it lets the clock move on."""
STEP_S = 0.5
"""By which it moves."""
MAX_LOOKS = 1_500
"""The time without success after which `until` gives up."""


class Doored:
    """A channel whose events pass through a harness, which learns whether they were admitted."""

    def __init__(self, channel: Channel, home: "Home") -> None:
        self._channel = channel
        self._home = home

    def __getattr__(self, name: str) -> object:
        return getattr(self._channel, name)

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        def is_ready() -> None:
            ready()
            self._home.up.set()

        await self._channel.receive(
            self._home.harness.door(self._home.holding_admit(admit)), is_ready
        )


class Home:
    """One channel, its people and its successive processes.

    Attributes:
        facts: Everything that the channel has logged.
        heard: Every event that was handed over for admission.
        came: Set by each event.
        open: While it is not set, events wait before they are stored.
        gate: While it is not set, events are stored, but not yet acknowledged to the platform.
        up: Set when the channel receives events.
    """

    def __init__(self, adapter: Adapter, harness: Harness, world: World) -> None:
        self.adapter = adapter
        self.harness = harness
        self.world = world
        self.facts: list[str] = []
        self.heard: list[Envelope] = []
        self.came, self.up = asyncio.Event(), asyncio.Event()
        self.open, self.gate = asyncio.Event(), asyncio.Event()
        self.open.set()
        self.gate.set()
        self._news = asyncio.Event()
        self._settings = harness.context
        self.world.store.after = self._committed
        self.world.adapters[self.name] = self._create

    @property
    def name(self) -> str:
        return self.harness.address.channel

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[House]:
        """Run one process, once its channel receives events; leaving the context kills it."""
        self.up.clear()
        async with self.world.running() as house:
            # Platforms are waited for in threads, and a house of fakes has one alone.
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
            await self.until(self._is_up)
            async with self.harness.present():
                yield house

    async def until(self, condition: Callable[[], Awaitable[T | None]]) -> T:
        """Check after each commit until `condition` is true; time passes only while no event comes.

        Raises:
            AssertionError: It never was; the message lists the events and the log.
        """
        timeouts = 0
        while timeouts < MAX_LOOKS:
            self._news.clear()
            if found := await condition():
                return found
            try:
                async with asyncio.timeout(LOOKS_S):
                    await self._news.wait()
            except TimeoutError:
                timeouts += 1
                await self.world.clock.advance(STEP_S)
        message = "\n".join(("it did not come about:", *map(repr, self.heard), *self.facts))
        raise AssertionError(message)

    # --- people --------------------------------------------------------------------------------

    async def texts_of(self, person: str) -> Sequence[str]:
        """Return the bot's texts in a person's chat."""
        await self.turn_to(person)
        return [message.text for message in await self.harness.messages()]

    async def gather(self, *guests: str) -> None:
        """Move everyone, and these guests, into one chat; approval requests go there as well."""
        for name in (*PEOPLE, *guests):
            await self.turn_to(name)
        room = await self.harness.gather()
        self.world.configure(approvals=ApprovalSettings(chat=f"{self.name}:{room}"))

    async def turn_to(self, person: str) -> None:
        """Let the harness act as a person."""
        if not self.adapter.is_local:
            await self.harness.turn_to(person)

    async def say(self, person: str, text: str) -> bool:
        """Write as a person; like `Harness.say`, but time passes while the bot reconnects."""
        await self.turn_to(person)

        async def delivered() -> bool:
            return saying.done()

        async with asyncio.TaskGroup() as group:
            saying = group.create_task(self.harness.say(text))
            await self.until(delivered)
        return saying.result()

    async def until_texts(self, person: str, *parts: str) -> Sequence[str]:
        """Wait until a person's chat contains all these parts, and return its texts."""

        async def texts_with_parts() -> Sequence[str]:
            texts = await self.texts_of(person)
            joined = "\n".join(texts).lower()
            return texts if all(part in joined for part in parts) else ()

        return await self.until(texts_with_parts)

    async def request_approval(self, *, saying: str = "") -> Approval:
        """Let Ann's turn call a tool that needs approval; return the request once its card is shown."""
        self.world.model.will(asks_for(("poke", '{"at": 1}'), saying=saying), says(POKED))
        await self.turn_to("ann")
        assert await self.harness.say("please poke")

        async def carded() -> Approval | None:
            rows = await self.world.store.select(Query(kind=RowKind.APPROVAL))
            return next((approval for approval in map(APPROVALS.of, rows) if approval.refs), None)

        return await self.until(carded)

    async def newest(self) -> Approval:
        """Return the current state of the request."""
        rows = await self.world.store.select(Query(kind=RowKind.APPROVAL))
        return APPROVALS.of(rows[-1])

    async def answer(self, person: str, approval: ApprovalRequest, choice: Choice = "once") -> bool:
        """Answer as a person: by a button, or by a command where there are none."""
        await self.turn_to(person)
        if self.adapter.capabilities.has_buttons:
            return await self.harness.press(approval.refs[0], approval.id, choice)
        verb = "approve" if choice == "once" else "deny"
        return await self.harness.say(f"/{verb} {approval.numbers[0].number}")

    def logs_no_secret(self, *texts: str) -> None:
        """Hold that no line of the log has a secret of the channel's, or these words. P8."""
        secrets = (*self._settings.secrets.values(), *texts)
        lines = (*self.facts, *map(repr, self.world.facts.seen))
        assert [line for line in lines for secret in secrets if secret in line] == []

    # --- inside --------------------------------------------------------------------------------

    def holding_admit(self, admit: Admit) -> Admit:
        """Return an `admit` that waits at `open` and at `gate`."""

        async def admitted(envelope: Envelope) -> Admission:
            self.heard.append(envelope)
            self.came.set()
            await self.open.wait()
            admission = await admit(envelope)
            await self.gate.wait()
            return admission

        return admitted

    def _create(self, context: ChannelContext) -> Channel:
        settings = self._settings
        self.harness.context = replace(
            context,
            settings=settings.settings,
            secrets=settings.secrets,
            mount=settings.mount,
            log=noting(self.facts),
        )
        return cast("Channel", Doored(self.harness.make(), self))

    def _committed(self, _commit: Commit) -> None:
        self._news.set()

    async def _is_up(self) -> bool:
        return self.up.is_set()


@asynccontextmanager
async def living(adapter: Adapter, directory: Path, **channel: object) -> AsyncGenerator[Home]:
    """Start the platform and the state that outlives a process; `channel` are the channel's settings."""
    async with adapter.platform(directory) as harness:
        people: list[PersonSettings] = []
        name = harness.address.channel
        for person in () if adapter.is_local else PEOPLE:
            await harness.turn_to(person)
            roles = ("operator",) if person == "olga" else ()
            people.append(
                PersonSettings(name=person, ids=(f"{name}:{harness.person}",), roles=roles)
            )
        ids = tuple(person.ids[0].partition(":")[2] for person in people)
        settings = ChannelSettings(allowed_users=ids).model_copy(update=channel)
        config = CONFIG.model_copy(update={"people": tuple(people), "channels": {name: settings}})
        world = World(directory / "house", config, harness.clock)
        if adapter.is_local:
            world.local = (name,)
        yield Home(adapter, harness, world)
