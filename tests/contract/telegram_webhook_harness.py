"""Telegram under the contract suite, when it calls us: over the real public listener."""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

from channels.telegram.emulator import Emulator
from tests.contract.telegram_harness import (
    SETTINGS,
    TELEGRAM,
    TelegramHarness,
    telegram_context,
    telegram_with,
)
from tests.fakes.bare_context import NoMount, no_log
from tests.fakes.manual_clock import ManualClock
from zeroclaw import ChannelContext, Hook, replace
from zeroclaw.config.model import PublicSettings
from zeroclaw.host.public_listener import PublicListener

PATH = "/telegram"


class OnPublic(NoMount):
    """The mount of a daemon that has only a public listener."""

    def __init__(self, listener: PublicListener) -> None:
        self._listener = listener

    def public(self, path: str, hook: Hook) -> AbstractContextManager[None]:
        return self._listener.mount(path, hook)


@asynccontextmanager
async def public_listener() -> AsyncGenerator[PublicListener]:
    listener = await asyncio.to_thread(PublicListener, PublicSettings(port=0), log=no_log)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(listener.serve())
        try:
            yield listener
        finally:
            serving.cancel()


def called_context(
    listener: PublicListener, telegram: Emulator, clock: ManualClock
) -> ChannelContext:
    url = f"http://127.0.0.1:{listener.port}{PATH}"
    called = SETTINGS.model_copy(update={"receive": "webhook", "webhook_url": url})
    return replace(telegram_context(telegram, clock, called), mount=OnPublic(listener))


@asynccontextmanager
async def telegram_called(directory: Path) -> AsyncGenerator[TelegramHarness]:
    async with (
        public_listener() as listener,
        telegram_with(lambda telegram, clock: called_context(listener, telegram, clock)) as harness,
    ):
        yield harness


TELEGRAM_BY_WEBHOOK = dataclasses.replace(
    TELEGRAM, name="telegram, by webhook", platform=telegram_called, placed=None
)
