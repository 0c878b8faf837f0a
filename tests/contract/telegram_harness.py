"""Telegram under the contract suite: the adapter against our own Bot API server."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from channels._remote.cards import button_data, parse_button_data
from channels.telegram import TelegramSettings
from channels.telegram.adapter import TelegramChannel
from channels.telegram.emulator import Actor, Chat, Emulator, Limits, Lose, Message, UserAction
from channels.telegram.render import KINDS
from channels.telegram.styled import Entity, Styled, to_body
from tests.contract.channel_suite import (
    Adapter,
    Harness,
    Losable,
    Standing,
    asking_why,
    first,
    nothing_to_open,
    noting,
    receiving,
    telling,
)
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
    SecretReference,
    replace,
)

SETTINGS = TelegramSettings(token=SecretReference(env="TOKEN"), api_base_url="http://127.0.0.1:1")
AGAIN_S = 1.0


def telegram_context(
    telegram: Emulator, clock: ManualClock, settings: TelegramSettings = SETTINGS
) -> ChannelContext:
    return bare_context(
        "telegram",
        settings.model_copy(update={"api_base_url": telegram.url}),
        secrets={"token": telegram.token},
        clock=clock,
    )


@dataclass(kw_only=True)
class TelegramHarness:
    """One person's private chat."""

    telegram: Emulator
    ann: Actor
    context: ChannelContext
    clock: ManualClock
    channel: Channel = field(init=False)
    refused: asyncio.Event = field(default_factory=asyncio.Event)
    newest: UserAction | None = None
    people: dict[str, Actor] = field(default_factory=dict[str, Actor])
    room: Chat | None = None

    def make(self) -> Channel:
        self.channel = TelegramChannel(self.context)
        return self.channel

    def door(self, admit: Admit) -> Admit:
        return telling(asking_why(admit), self.refused)

    def present(self) -> AbstractAsyncContextManager[None]:
        return nothing_to_open()

    def keep_limits(self) -> Callable[[], int]:
        self.telegram.account.buckets.limits = Limits()
        return lambda: self.telegram.exceeded

    async def turn_to(self, name: str) -> None:
        self.people.setdefault("ann", self.ann)
        if name not in self.people:
            self.people[name] = self.telegram.person(name)
        self.ann = self.people[name]

    async def gather(self) -> str:
        self.room = self.telegram.supergroup("team", *self.people.values())
        return str(self.room.id)

    async def cut(self) -> None:
        self.telegram.cut()

    @property
    def address(self) -> Address:
        account = str(self.telegram.account.bot.id)
        return Address(channel="telegram", account=account, chat=self.person, direct=True)

    @property
    def person(self) -> str:
        return str(self.ann.id)

    async def say(self, text: str) -> bool:
        to = f"@{self.telegram.account.bot.username} " if self.room else ""
        return await self._wait_delivered(self.ann.says(f"{to}{text}", chat=self.room))

    async def redeliver(self) -> bool:
        assert self.newest is not None
        if self.newest.update.confirmed:
            self.telegram.redeliver(self.newest)
        else:
            await self.clock.advance(AGAIN_S)
        return await self._wait_delivered(self.newest)

    async def send_file(self, name: str, content: bytes, *, claimed_bytes: int) -> bool:
        sent = self.ann.sends("document", content, name=name, claimed_bytes=claimed_bytes)
        return await self._wait_delivered(sent)

    async def press(
        self, ref: MessageRef, approval: ApprovalId, choice: Choice, reason: str = ""
    ) -> bool:
        chat = self.telegram.account.chats[int(ref.address.chat)]
        card = self.telegram.message(chat, int(ref.message))
        pressed: Choice = "deny_with_reason" if reason else choice
        is_delivered = await self._wait_delivered(
            self.ann.presses(card, data=button_data(approval, pressed))
        )
        if not reason:
            return is_delivered
        questions = await self.telegram.until(lambda: self._questions(card))
        return await self._wait_delivered(self.ann.says(reason, reply_to=questions[-1]))

    def toasts(self) -> Sequence[str]:
        pressed = self.telegram.account.presses.values()
        return [
            press.toast.text for press in pressed if press.toast is not None and press.toast.text
        ]

    def _questions(self, card: Message) -> Sequence[Message]:
        return [message for message in self.ann.chat.from_bot if message.reply_to is card]

    async def messages(self) -> tuple[Standing, ...]:
        chat = self.room or self.ann.chat
        return tuple(standing(message) for message in chat.from_bot if not message.thread)

    async def sees_typing(self) -> bool:
        return bool(self.ann.chat.actions)

    async def tools_seen(self) -> tuple[str, ...]:
        return ()

    async def sees_preview(self) -> str:
        return self.ann.chat.draft(self.clock.monotonic()) or ""

    async def _wait_delivered(self, action: UserAction) -> bool:
        """Wait until the bot has confirmed an update, or could not store it."""
        self.newest = action
        self.refused.clear()
        await first(self.telegram.confirmed(action), self.refused.wait())
        return action.update.confirmed


def standing(message: Message) -> Standing:
    formatted = message.versions[-1].formatted
    entities = tuple(
        cast(
            "Entity",
            {
                "type": entity.type,
                "offset": entity.offset,
                "length": entity.length,
                **dict(entity.extra),
            },
        )
        for entity in formatted.entities
        if entity.type in KINDS  # Telegram itself adds others, such as addresses
    )
    document = cast("dict[str, object]", message.media.get("document", {}))
    pressable = (parse_button_data(button.data) for button in message.buttons)
    return Standing(
        text=to_body(Styled(text=formatted.text, entities=entities)),
        file=None
        if not document
        else (str(document["file_name"]), int(str(document["file_size"]))),
        buttons=frozenset(approval for approval, _ in filter(None, pressable)),
        receipts=tuple(button.text for button in message.buttons if not button.data),
    )


@asynccontextmanager
async def telegram_platform(directory: Path) -> AsyncGenerator[TelegramHarness]:
    async with telegram_with(telegram_context) as harness:
        yield harness


@asynccontextmanager
async def telegram_with(
    context_of: Callable[[Emulator, ManualClock], ChannelContext],
) -> AsyncGenerator[TelegramHarness]:
    clock = ManualClock()
    async with Emulator(clock=clock) as telegram:
        ann = telegram.person("Ann")
        telegram.topic(ann.chat, "aside")
        yield TelegramHarness(
            telegram=telegram, ann=ann, context=context_of(telegram, clock), clock=clock
        )


class TelegramPlace:
    """One person's private chat, and a bot that comes and goes."""

    def __init__(self, telegram: Emulator, clock: ManualClock) -> None:
        self.ann = telegram.person("Ann")
        self.facts: list[str] = []
        self.secrets = (telegram.token,)
        self._context = telegram_context(telegram, clock)

    @asynccontextmanager
    async def life(self, admit: Admit, positions: Mapping[str, str]) -> AsyncGenerator[Channel]:
        log = noting(self.facts)
        channel = TelegramChannel(replace(self._context, positions=positions, log=log))
        async with receiving(channel, admit):
            yield channel

    async def write(self, text: str) -> None:
        self.ann.says(text)


@asynccontextmanager
async def telegram_placed(directory: Path) -> AsyncGenerator[TelegramPlace]:
    clock = ManualClock()
    async with Emulator(clock=clock) as telegram:
        yield TelegramPlace(telegram, clock)


def lose(harness: Harness, _kind: Losable) -> None:
    assert isinstance(harness, TelegramHarness)
    harness.telegram.will("sendMessage", Lose(carried_out=True))


TELEGRAM = Adapter(
    name="telegram",
    capabilities=SETTINGS.capabilities(),
    platform=telegram_platform,
    thread="1",
    loses=lose,
    placed=telegram_placed,
)
