"""Discord under the contract suite: the library's gateway against simcord behind our own front."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from simcord.backend.models import Message

from channels.discord import DiscordSettings, cards
from channels.discord.adapter import DiscordChannel
from channels.discord.emulator.server import DiscordServer, Fault, Person, UserAction
from tests.contract.channel_suite import (
    Adapter,
    Harness,
    Losable,
    Standing,
    asking_why,
    nothing_to_open,
    noting,
    receiving,
)
from tests.fakes.bare_context import bare_context, no_log
from tests.fakes.manual_clock import ManualClock
from zeroclaw import (
    Address,
    Admission,
    Admit,
    ApprovalId,
    Channel,
    ChannelContext,
    Choice,
    Envelope,
    Log,
    MessageRef,
    SecretReference,
    ZeroclawError,
    replace,
)

SETTINGS = DiscordSettings(token=SecretReference(env="TOKEN"), api_base_url="http://127.0.0.1:1")
AGAIN_S = 1.0
_ESCAPE = re.compile(r"\\([\\*_~`|>#\[\]()<@-])")


def discord_context(
    discord: DiscordServer,
    clock: ManualClock,
    settings: DiscordSettings = SETTINGS,
    *,
    positions: Mapping[str, str] | None = None,
    log: Log = no_log,
) -> ChannelContext:
    return bare_context(
        "discord",
        settings.model_copy(update={"api_base_url": discord.url}),
        secrets={"token": discord.token},
        clock=clock,
        log=log,
        positions=positions,
    )


class Delivered:
    """Signals when ingress is done with an event, the only thing that Discord's sender can wait for."""

    def __init__(self, admit: Admit) -> None:
        self._admit = admit
        self._changed = asyncio.Condition()
        self._done: list[tuple[str, bool]] = []

    async def __call__(self, envelope: Envelope) -> Admission:
        try:
            admission = await self._admit(envelope)
        except ZeroclawError:
            await self._note(envelope, is_stored=False)
            raise
        await self._note(envelope, is_stored=True)
        return admission

    async def _note(self, envelope: Envelope, *, is_stored: bool) -> None:
        async with self._changed:
            self._done.append((envelope.dedup[0], is_stored))
            self._changed.notify_all()

    def count(self) -> int:
        return len(self._done)

    async def next(self, key: str, *, after: int) -> bool:
        """Whether the next event with a key was stored."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: any(event_key == key for event_key, _ in self._done[after:])
            )
        return next(stored for event_key, stored in self._done[after:] if event_key == key)


@dataclass(kw_only=True)
class DiscordHarness:
    """One person's direct chat."""

    discord: DiscordServer
    ann: Person
    context: ChannelContext
    clock: ManualClock
    channel: Channel = field(init=False)
    delivered: Delivered = field(init=False)
    newest: Message | UserAction | None = None
    people: dict[str, Person] = field(default_factory=dict[str, Person])
    room: int = 0

    def make(self) -> Channel:
        self.channel = DiscordChannel(self.context)
        return self.channel

    def door(self, admit: Admit) -> Admit:
        self.delivered = Delivered(admit)
        return asking_why(self.delivered)

    def present(self) -> AbstractAsyncContextManager[None]:
        return nothing_to_open()

    def keep_limits(self) -> Callable[[], int]:
        self.discord.is_paced = True
        return lambda: self.discord.buckets.refused

    async def turn_to(self, name: str) -> None:
        self.people.setdefault("ann", self.ann)
        if name not in self.people:
            self.people[name] = self.discord.person(name)
        self.ann = self.people[name]

    async def gather(self) -> str:
        self.room = self.discord.channel("team")
        return str(self.room)

    async def cut(self) -> None:
        await self.discord.drop()

    @property
    def address(self) -> Address:
        account = str(self.discord.bot)
        return Address(channel="discord", account=account, chat=f"@{self.person}", direct=True)

    @property
    def person(self) -> str:
        return str(self.ann.id)

    async def say(self, text: str) -> bool:
        to = f"<@{self.discord.bot}> " if self.room else ""
        return await self._deliver(self.ann.says(self.place, f"{to}{text}"))

    @property
    def place(self) -> int:
        return self.room or self.ann.direct

    async def send_file(self, name: str, content: bytes, *, claimed_bytes: int) -> bool:
        sent = self.ann.sends(self.ann.direct, name, content, claimed_bytes=claimed_bytes)
        return await self._deliver(sent)

    async def redeliver(self) -> bool:
        assert self.newest is not None
        before = self.delivered.count()
        if isinstance(self.newest, UserAction):
            self.newest.again()
            return await self.delivered.next(f"interaction/{self.newest.id}", after=before)
        if self.clock.sleeping():
            await self.clock.advance(AGAIN_S)
        else:
            self.discord.dispatch_message(self.newest)
        return await self.delivered.next(_key(self.newest), after=before)

    async def press(
        self, ref: MessageRef, approval: ApprovalId, choice: Choice, reason: str = ""
    ) -> bool:
        pressed: Choice = "deny_with_reason" if reason else choice
        carried = cards.data(approval, pressed)
        everyone = {f"@{person.id}": person for person in (self.ann, *self.people.values())}
        place = self.room or everyone[ref.address.chat].direct
        press = self.ann.presses(self.place, int(ref.message), carried, message_channel=place)
        await press.answered()
        if reason:
            press = self.ann.submits(press, reason)
            await press.answered()
        self.newest = press
        return True

    def toasts(self) -> Sequence[str]:
        answers = [
            answer
            for interaction in self.discord.actions.values()
            for answer in interaction.answers
        ]
        delivered = [cast("Mapping[str, object]", answer.get("data") or {}) for answer in answers]
        return [str(data["content"]) for data in delivered if data.get("content")]

    async def messages(self) -> tuple[Standing, ...]:
        return tuple(standing(message) for message in self.discord.from_bot(self.place))

    async def sees_typing(self) -> bool:
        return str(self.ann.direct) in self.discord.typing

    async def tools_seen(self) -> tuple[str, ...]:
        return ()

    async def sees_preview(self) -> str:
        return ""

    async def _deliver(self, message: Message) -> bool:
        self.newest = message
        return await self.delivered.next(_key(message), after=0)


def _key(message: Message) -> str:
    return f"message/{message.channel_id}/{message.id}"


def standing(message: Message) -> Standing:
    buttons = [button for row in message.components for button in row["components"]]
    pressable = (cards.read(str(button["custom_id"])) for button in buttons)
    files = [
        (str(attachment["filename"]), int(attachment["size"])) for attachment in message.attachments
    ]
    return Standing(
        text=_ESCAPE.sub(r"\1", message.content),
        file=files[0] if files else None,
        buttons=frozenset(approval for approval, _ in filter(None, pressable)),
        receipts=tuple(
            str(button["label"])
            for button in buttons
            if cards.read_receipt(str(button["custom_id"]))
        ),
    )


@asynccontextmanager
async def discord_platform(directory: Path) -> AsyncGenerator[DiscordHarness]:
    clock = ManualClock()
    async with DiscordServer(clock=clock) as discord:
        ann = discord.person("ann")
        context = discord_context(discord, clock)
        yield DiscordHarness(discord=discord, ann=ann, context=context, clock=clock)


class DiscordPlace:
    """One person's direct chat, and a bot that comes and goes."""

    def __init__(self, discord: DiscordServer, clock: ManualClock) -> None:
        self.ann = discord.person("ann")
        self.facts: list[str] = []
        self.secrets = (discord.token,)
        self._context = discord_context(discord, clock, log=noting(self.facts))

    @asynccontextmanager
    async def life(self, admit: Admit, positions: Mapping[str, str]) -> AsyncGenerator[Channel]:
        channel = DiscordChannel(replace(self._context, positions=positions))
        async with receiving(channel, admit):
            yield channel

    async def write(self, text: str) -> None:
        self.ann.says(self.ann.direct, text)


@asynccontextmanager
async def discord_placed(directory: Path) -> AsyncGenerator[DiscordPlace]:
    clock = ManualClock()
    async with DiscordServer(clock=clock) as discord:
        yield DiscordPlace(discord, clock)


def lose(harness: Harness, _kind: Losable) -> None:
    assert isinstance(harness, DiscordHarness)
    harness.discord.will(Fault(method="POST", path=r"/messages$", carried_out=True))


DISCORD = Adapter(
    name="discord",
    capabilities=SETTINGS.capabilities(),
    platform=discord_platform,
    loses=lose,
    placed=discord_placed,
)
