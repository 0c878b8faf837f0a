"""An adapter that is open before our own Bot API server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from channels.telegram import TelegramSettings
from channels.telegram.adapter import TelegramChannel
from channels.telegram.emulator import Emulator
from tests.contract.telegram_harness import SETTINGS, telegram_context
from tests.fakes.manual_clock import ManualClock
from zeroclaw import Address, Channel, Outgoing


@dataclass(frozen=True, kw_only=True)
class Stage:
    telegram: Emulator
    clock: ManualClock
    channel: Channel
    settings: TelegramSettings

    def restarted(self) -> "Stage":
        """The same account in another process, which knows nothing yet; its channel is to be closed."""
        context = telegram_context(self.telegram, self.clock, self.settings)
        return replace(self, channel=TelegramChannel(context))

    def place(self, chat: int) -> Address:
        account = str(self.telegram.account.me.id)
        return Address(channel="telegram", account=account, chat=str(chat), direct=chat > 0)

    def outgoing(self, text: str) -> Outgoing:
        return Outgoing(rendered=self.channel.render(text), key="k")


@asynccontextmanager
async def stage(**settings: object) -> AsyncGenerator[Stage]:
    clock = ManualClock()
    async with Emulator(clock=clock) as telegram:
        wanted = SETTINGS.model_copy(update=settings)
        context = telegram_context(telegram, clock, wanted)
        channel = TelegramChannel(context)
        try:
            yield Stage(telegram=telegram, clock=clock, channel=channel, settings=wanted)
        finally:
            await channel.aclose()
