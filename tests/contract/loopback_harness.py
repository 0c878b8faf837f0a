"""The loopback platform under the contract suite: journeys trust it, so it keeps the contract too."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from zeroclaw_test_platform import LoopbackSettings
from zeroclaw_test_platform.adapter import open_channel
from zeroclaw_test_platform.chats import Chat
from zeroclaw_test_platform.event import Event
from zeroclaw_test_platform.platform import Platform

from tests.contract.channel_suite import Adapter, Standing, nothing_to_open, noting, receiving
from tests.fakes.bare_context import bare_context
from tests.fakes.manual_clock import ManualClock
from zeroclaw import (
    Address,
    Admit,
    ApprovalId,
    Channel,
    ChannelContext,
    Choice,
    MessageRef,
    replace,
)

PERSON = "ann"


def loopback_context(platform: Platform, name: str = "loopback") -> ChannelContext:
    return bare_context(name, platform.settings)


@dataclass(kw_only=True)
class LoopbackHarness:
    """One person's direct chat."""

    platform: Platform
    context: ChannelContext
    clock: ManualClock
    channel: Channel = field(init=False)
    person: str = PERSON
    newest: Event | None = None
    events: list[Event] = field(default_factory=list[Event])
    room: str = ""

    def make(self) -> Channel:
        self.channel = open_channel(self.context)
        return self.channel

    def door(self, admit: Admit) -> Admit:
        return admit

    def present(self) -> AbstractAsyncContextManager[None]:
        return nothing_to_open()

    def keep_limits(self) -> Callable[[], int]:
        return lambda: self.platform.backend.limits.exceeded

    async def turn_to(self, name: str) -> None:
        self.person = name

    async def gather(self) -> str:
        self.room = "#team"
        return self.room

    async def cut(self) -> None:
        self.platform.cut()

    @property
    def address(self) -> Address:
        return Address(channel="loopback", account="bot", chat=self.person, direct=True)

    @property
    def chat(self) -> Chat:
        return self.platform.chat(self.room or self.person)

    async def say(self, text: str) -> bool:
        return await self._wait_delivered(
            await self.platform.say(self.person, text, chat=self.room)
        )

    async def redeliver(self) -> bool:
        assert self.newest is not None
        return await self._wait_delivered(await self.platform.redeliver(self.newest))

    async def send_file(self, name: str, content: bytes, *, claimed_bytes: int) -> bool:
        files = {name: content}
        event = await self.platform.say(self.person, "", files=files, claimed_bytes=claimed_bytes)
        return await self._wait_delivered(event)

    async def press(
        self, ref: MessageRef, approval: ApprovalId, choice: Choice, reason: str = ""
    ) -> bool:
        messages = self.platform.chat(ref.address.chat).messages
        card = next(message for message in messages if message.id == ref.message)
        place = [call.approval for call in card.request.calls].index(approval)
        return await self._wait_delivered(
            await self.platform.press(self.person, card, choice, call=place, reason=reason)
        )

    def toasts(self) -> Sequence[str]:
        return [event.toast for event in self.events if event.toast]

    async def messages(self) -> tuple[Standing, ...]:
        return tuple(
            Standing(
                text=message.text,
                buttons=message.buttons,
                file=None
                if message.file is None
                else (message.file.name, len(message.file.content)),
                receipts=message.receipts,
            )
            for message in self.chat.from_bot
            if not message.thread
        )

    async def sees_typing(self) -> bool:
        return self.chat.typings > 0

    async def tools_seen(self) -> tuple[str, ...]:
        return ()

    async def sees_preview(self) -> str:
        return ""

    async def _wait_delivered(self, event: Event) -> bool:
        self.newest = event
        self.events.append(event)
        refused = event.refused
        await self.platform.until(lambda: event.confirmed or event.refused > refused)
        return event.confirmed


@dataclass(kw_only=True)
class LoopbackPlace:
    """One person's direct chat, and a bot that comes and goes."""

    platform: Platform
    facts: list[str] = field(default_factory=list[str])
    secrets: Sequence[str] = ()

    @asynccontextmanager
    async def life(self, admit: Admit, positions: Mapping[str, str]) -> AsyncGenerator[Channel]:
        context = replace(loopback_context(self.platform), positions=positions)
        channel = open_channel(replace(context, log=noting(self.facts)))
        async with receiving(channel, admit):
            yield channel

    async def write(self, text: str) -> None:
        await self.platform.say(PERSON, text)


def loopback(name: str, **settings: object) -> Adapter:
    @asynccontextmanager
    async def placed(directory: Path) -> AsyncGenerator[LoopbackPlace]:
        async with Platform(**settings) as platform:
            yield LoopbackPlace(platform=platform)

    @asynccontextmanager
    async def open_platform(directory: Path) -> AsyncGenerator[LoopbackHarness]:
        async with Platform(**settings) as platform:
            context = loopback_context(platform)
            clock = cast("ManualClock", context.clock)
            yield LoopbackHarness(platform=platform, context=context, clock=clock)

    capabilities = LoopbackSettings.model_validate({"port": 1, **settings}).capabilities()
    return Adapter(
        name=name, capabilities=capabilities, platform=open_platform, thread="t1", placed=placed
    )


BARE = {
    "max_length": 500,
    "can_edit": False,
    "can_delete": False,
    "has_buttons": False,
    "has_threads": False,
    "idempotent_send": False,
    "has_typing": False,
    "max_file_bytes": 0,
}
