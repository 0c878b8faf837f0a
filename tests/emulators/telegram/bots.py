"""A real bot of python-telegram-bot, talking to the emulator over real sockets."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from telegram import Bot
from telegram.request import HTTPXRequest

from channels.telegram.emulator import Emulator, Limits
from tests.fakes.manual_clock import ManualClock


@asynccontextmanager
async def bot_of(telegram: Emulator) -> AsyncGenerator[Bot]:
    """Open a bot that has the emulator's token and addresses."""
    bot = Bot(
        telegram.token,
        base_url=telegram.base_url,
        base_file_url=telegram.base_file_url,
        request=HTTPXRequest(read_timeout=20),
        get_updates_request=HTTPXRequest(read_timeout=20),
    )
    async with bot:
        yield bot


@asynccontextmanager
async def telegram_and_bot(
    *, limits: Limits | None = None, clock: ManualClock | None = None, privacy: bool = False
) -> AsyncGenerator[tuple[Emulator, Bot]]:
    """Open both; the clock stands still unless the test moves it."""
    emulator = Emulator(clock=clock or ManualClock(), limits=limits, privacy=privacy)
    async with emulator as telegram, bot_of(telegram) as bot:
        yield telegram, bot
