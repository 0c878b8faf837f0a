"""A bot on the stand-in server, whose clock, log and ingress a test controls."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from channels.discord import DiscordSettings
from channels.discord.adapter import DiscordChannel
from channels.discord.emulator.server import DiscordServer, Person
from tests.contract.channel_suite import Desk, receiving
from tests.contract.discord_harness import SETTINGS, discord_context
from tests.fakes.manual_clock import ManualClock
from zeroclaw import Admit, Channel, ChannelContext, Menu, replace


class RecordingLog:
    """A log whose entries a test can wait for."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._waiting: list[tuple[str, int, asyncio.Event]] = []

    def __call__(self, event: str, /, **fields: object) -> None:
        self.lines.append(f"{event} {fields}")
        for name, count, reached in self._waiting:
            if self.count(name) >= count:
                reached.set()

    def count(self, name: str) -> int:
        return sum(line.startswith(name) for line in self.lines)

    async def until(self, name: str, count: int = 1) -> None:
        """Wait until the log holds `count` entries of this name."""
        reached = asyncio.Event()
        self._waiting.append((name, count, reached))
        if self.count(name) < count:
            await reached.wait()


@dataclass(kw_only=True)
class Rig:
    """One platform; bots come and go."""

    discord: DiscordServer
    clock: ManualClock
    desk: Desk = field(default_factory=Desk)
    log: RecordingLog = field(default_factory=RecordingLog)
    menu: Menu = field(default_factory=Menu)

    def context(
        self, settings: DiscordSettings = SETTINGS, positions: Mapping[str, str] | None = None
    ) -> ChannelContext:
        positions = self.desk.positions if positions is None else positions
        context = discord_context(
            self.discord, self.clock, settings, positions=positions, log=self.log
        )
        return replace(context, menu=self.menu)

    @asynccontextmanager
    async def bot(
        self, settings: DiscordSettings = SETTINGS, *, admit: Admit | None = None
    ) -> AsyncGenerator[Channel]:
        channel = DiscordChannel(self.context(settings))
        async with receiving(channel, admit or self.desk.admit):
            yield channel

    @asynccontextmanager
    async def closing(self, channel: Channel) -> AsyncGenerator[None]:
        """Close a channel at the end; its waits pass meanwhile."""

        async def pass_time() -> None:
            for tries in itertools.count(1):
                await self.log.until("gateway_lost", tries)
                await self.clock.advance(60)

        async with asyncio.TaskGroup() as group:
            task = group.create_task(pass_time())
            try:
                yield
            finally:
                task.cancel()
                await channel.aclose()

    def bodies(self) -> list[object]:
        return [envelope.body for envelope in self.desk.stored]


@asynccontextmanager
async def rigged() -> AsyncGenerator[Rig]:
    clock = ManualClock()
    async with DiscordServer(clock=clock) as discord:
        yield Rig(discord=discord, clock=clock)


@asynccontextmanager
async def rig_for_ann() -> AsyncGenerator[tuple[Rig, Person, int]]:
    """A platform with Ann and a channel of a server."""
    async with rigged() as rig:
        yield rig, rig.discord.person("ann"), rig.discord.channel("general")


@asynccontextmanager
async def bot_for_ann(
    settings: DiscordSettings = SETTINGS, *, admit: Admit | None = None
) -> AsyncGenerator[tuple[Rig, Person, int, Channel]]:
    """A running bot on a platform with Ann and a channel of a server."""
    async with rig_for_ann() as (rig, ann, general), rig.bot(settings, admit=admit) as channel:
        yield rig, ann, general, channel
