"""An adapter that is open before our own Bot API server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from channels.telegram.emulator import Emulator
from channels.telegram.opening import open_channel
from tests.contract.telegram_harness import SETTINGS, telegram_context
from tests.fakes.manual_clock import ManualClock
from zeroclaw import Address, Channel, Outgoing


@dataclass(frozen=True, kw_only=True)
class Stage:
    telegram: Emulator
    clock: ManualClock
    channel: Channel

    def place(self, chat: int) -> Address:
        account = str(self.telegram.account.me.id)
        return Address(channel="telegram", account=account, chat=str(chat), direct=chat > 0)

    def outgoing(self, text: str) -> Outgoing:
        return Outgoing(rendered=self.channel.render(text), key="k")


@asynccontextmanager
async def stage(**settings: object) -> AsyncGenerator[Stage]:
    clock = ManualClock()
    async with Emulator(clock=clock) as telegram:
        context = telegram_context(telegram, clock, SETTINGS.model_copy(update=settings))
        channel = open_channel(context)
        try:
            yield Stage(telegram=telegram, clock=clock, channel=channel)
        finally:
            await channel.aclose()
