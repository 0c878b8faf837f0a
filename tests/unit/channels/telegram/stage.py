"""An adapter that is open before our own Bot API server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from channels.telegram import TelegramSettings
from channels.telegram.adapter import TelegramChannel
from channels.telegram.emulator import Actor, Emulator
from channels.telegram.emulator.chats import Chat, Message
from tests.contract.telegram_harness import SETTINGS, telegram_context
from tests.fakes.manual_clock import ManualClock
from zeroclaw import Address, Channel, Outgoing


@dataclass(frozen=True, kw_only=True)
class Stage:
    telegram: Emulator
    clock: ManualClock
    channel: Channel
    settings: TelegramSettings
    ann: Actor

    @property
    def to_ann(self) -> Address:
        """The address of Ann's private chat."""
        return self.address(self.ann.id)

    def restarted(self) -> "Stage":
        """The same account in another process, with empty memory; the caller closes its channel."""
        context = telegram_context(self.telegram, self.clock, self.settings)
        return replace(self, channel=TelegramChannel(context))

    def address(self, chat: int, thread: str | None = None) -> Address:
        return Address(
            channel="telegram",
            account=str(self.telegram.account.bot.id),
            chat=str(chat),
            thread=thread,
            direct=chat > 0,
        )

    def message_in_a_topic(self) -> tuple[Chat, Message, Address]:
        """A forum, Ann's message in its one topic, and the topic's address."""
        forum = self.telegram.supergroup("Forum", self.ann, is_forum=True)
        topic = self.telegram.topic(forum, "One")
        self.ann.says("hello", chat=forum, thread=topic.id)
        return forum, forum.messages[-1], self.address(forum.id, str(topic.id))

    def outgoing(self, text: str) -> Outgoing:
        return Outgoing(rendered=self.channel.render(text), key="k")


@asynccontextmanager
async def stage(**settings: object) -> AsyncGenerator[Stage]:
    clock = ManualClock()
    async with Emulator(clock=clock) as telegram:
        configured = SETTINGS.model_copy(update=settings)
        context = telegram_context(telegram, clock, configured)
        channel, ann = TelegramChannel(context), telegram.person("Ann")
        try:
            yield Stage(
                telegram=telegram, clock=clock, channel=channel, settings=configured, ann=ann
            )
        finally:
            await channel.aclose()
