"""A house over one real channel: the real rooms and the real adapter, on the platform that stands in.

    async with living(adapter, tmp_path) as home:
        async with home.running():
            await home.asked()
            await home.answer("olga", "once")
            await home.until_said("ann", "so be it")

Ann and Bob may write to the bot; Olga is its operator; Mallory is a stranger. Where everybody is
the operator of this machine, Ann is Olga, and nobody else is there.
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
MOST_LOOKS = 1_500
"""In vain, before what was waited for is given up."""


class Doored:
    """A channel whose events pass by a harness, which tells people what became of them."""

    def __init__(self, channel: Channel, home: "Home") -> None:
        self._channel = channel
        self._home = home

    def __getattr__(self, name: str) -> object:
        return getattr(self._channel, name)

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        def is_ready() -> None:
            ready()
            self._home.up.set()

        await self._channel.receive(self._home.harness.door(self._home.held(admit)), is_ready)


class Home:
    """One channel, its people and the processes that come and go.

    Attributes:
        facts: All that the channel has logged.
        heard: Every event that came to be admitted.
        came: Set by each event that comes.
        open: While it is not set, events that came wait before they are stored.
        gate: Likewise, behind it: they are stored, and the platform is not told.
        up: Set when the channel hears.
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
        self._given = harness.context
        self.world.store.after = self._committed
        self.world.adapters[self.name] = self._made

    @property
    def name(self) -> str:
        return self.harness.address.channel

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[House]:
        """One process, from the moment that its channel hears; leaving it kills it."""
        self.up.clear()
        async with self.world.running() as house:
            # Platforms are waited for in threads, and a house of fakes has one alone.
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
            await self.until(self._is_up)
            async with self.harness.present():
                yield house

    async def until(self, holds: Callable[[], Awaitable[T | None]]) -> T:
        """Look after each commit until something holds; time passes only while nothing comes.

        Raises:
            AssertionError: It never did; the message tells what came in, and what was logged.
        """
        looks = 0
        while looks < MOST_LOOKS:
            self._news.clear()
            if found := await holds():
                return found
            try:
                async with asyncio.timeout(LOOKS_S):
                    await self._news.wait()
            except TimeoutError:
                looks += 1
                await self.world.clock.advance(STEP_S)
        message = "\n".join(("it did not come about:", *map(repr, self.heard), *self.facts))
        raise AssertionError(message)

    # --- people --------------------------------------------------------------------------------

    async def said_to(self, who: str) -> Sequence[str]:
        """What stands in somebody's chat."""
        await self.turn_to(who)
        return [one.text for one in await self.harness.messages()]

    async def gather(self, *others: str) -> None:
        """Let everybody talk in one chat from now on, the others too; approvals are asked there."""
        for one in (*PEOPLE, *others):
            await self.turn_to(one)
        room = await self.harness.gather()
        self.world.configure(approvals=ApprovalSettings(chat=f"{self.name}:{room}"))

    async def turn_to(self, who: str) -> None:
        """Let the harness be somebody."""
        if not self.adapter.is_local:
            await self.harness.turn_to(who)

    async def say(self, who: str, text: str) -> bool:
        """Write as somebody; like `Harness.say`, and time passes while the bot comes back."""
        await self.turn_to(who)

        async def told() -> bool:
            return saying.done()

        async with asyncio.TaskGroup() as group:
            saying = group.create_task(self.harness.say(text))
            await self.until(told)
        return saying.result()

    async def until_said(self, who: str, *words: str) -> Sequence[str]:
        """Wait until somebody's chat holds all these words, and return its messages."""

        async def holds() -> Sequence[str]:
            said = await self.said_to(who)
            whole = "\n".join(said).lower()
            return said if all(word in whole for word in words) else ()

        return await self.until(holds)

    async def asked(self) -> Approval:
        """Let Ann's model want what must be approved; return the question once its card is shown."""
        self.world.model.will(asks_for(("poke", '{"at": 1}')), says(POKED))
        await self.turn_to("ann")
        assert await self.harness.say("please poke")

        async def carded() -> Approval | None:
            rows = await self.world.store.select(Query(kind=RowKind.APPROVAL))
            return next((one for one in map(APPROVALS.of, rows) if one.refs), None)

        return await self.until(carded)

    async def newest(self) -> Approval:
        """Return the question as it stands now."""
        rows = await self.world.store.select(Query(kind=RowKind.APPROVAL))
        return APPROVALS.of(rows[-1])

    async def answer(self, who: str, approval: ApprovalRequest, choice: Choice = "once") -> bool:
        """Answer as somebody: by a button, or by a command where there are none."""
        await self.turn_to(who)
        if self.adapter.capabilities.has_buttons:
            return await self.harness.press(approval.refs[0], approval.id, choice)
        word = "approve" if choice == "once" else "deny"
        return await self.harness.say(f"/{word} {approval.numbers[0].number}")

    def logs_no_secret(self, *words: str) -> None:
        """Hold that no line of the log has a secret of the channel's, or these words. P8."""
        secrets = (*self._given.secrets.values(), *words)
        lines = (*self.facts, *map(repr, self.world.facts.seen))
        assert [line for line in lines for one in secrets if one in line] == []

    # --- inside --------------------------------------------------------------------------------

    def held(self, admit: Admit) -> Admit:
        """Return what admits events and waits where it is told to."""

        async def admitted(envelope: Envelope) -> Admission:
            self.heard.append(envelope)
            self.came.set()
            await self.open.wait()
            admission = await admit(envelope)
            await self.gate.wait()
            return admission

        return admitted

    def _made(self, context: ChannelContext) -> Channel:
        own = self._given
        self.harness.context = replace(
            context,
            settings=own.settings,
            secrets=own.secrets,
            mount=own.mount,
            log=noting(self.facts),
        )
        return cast("Channel", Doored(self.harness.make(), self))

    def _committed(self, _commit: Commit) -> None:
        self._news.set()

    async def _is_up(self) -> bool:
        return self.up.is_set()


@asynccontextmanager
async def living(adapter: Adapter, directory: Path, **channel: object) -> AsyncGenerator[Home]:
    """Start the platform, and make what outlives a process; `channel` are settings of the channel."""
    async with adapter.platform(directory) as harness:
        people: list[PersonSettings] = []
        name = harness.address.channel
        for one in () if adapter.is_local else PEOPLE:
            await harness.turn_to(one)
            roles = ("operator",) if one == "olga" else ()
            people.append(PersonSettings(name=one, ids=(f"{name}:{harness.person}",), roles=roles))
        ids = tuple(one.ids[0].partition(":")[2] for one in people)
        settings = ChannelSettings(allowed_users=ids).model_copy(update=channel)
        config = CONFIG.model_copy(update={"people": tuple(people), "channels": {name: settings}})
        world = World(directory / "house", config, harness.clock)
        if adapter.is_local:
            world.local = (name,)
        yield Home(adapter, harness, world)
