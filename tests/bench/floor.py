"""Telegram's floors; what a floor is, `tests.bench.floor_parts` tells.

There are two, because more than half of what a bot costs is its HTTP client: `httpx`, as
python-telegram-bot comes, and `aiohttp`, as the daemon speaks.

Run as `python -m tests.bench.floor CLIENT BOT_API TOKEN MODEL DATABASE`.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from telegram import Bot, Update
from telegram.request import BaseRequest, RequestData

from tests.bench.floor_model import by_aiohttp, by_httpx
from tests.bench.floor_parts import CONNECTIONS, Ask, Floor

POLL_S = 25


class _TelegramFloor:
    """Polls, and answers every message."""

    def __init__(self, bot: Bot, floor: Floor) -> None:
        self._bot = bot
        self._floor = floor

    async def run(self) -> None:
        """Poll for ever."""
        offset: int | None = None
        async with asyncio.TaskGroup() as group:
            while True:
                updates = await self._bot.get_updates(offset=offset, timeout=POLL_S)
                for update in updates:
                    self._floor.take(update.update_id, _text(update))
                    group.create_task(self._answer(update))
                    offset = update.update_id + 1

    async def _answer(self, update: Update) -> None:
        assert update.effective_chat is not None
        chat = update.effective_chat.id
        await self._floor.answer(
            update.update_id, _text(update), lambda text: self._bot.send_message(chat, text)
        )


def _text(update: Update) -> str:
    return (update.message and update.message.text) or ""


@asynccontextmanager
async def _on_httpx(url: str, token: str, model: str) -> AsyncGenerator[tuple[Bot, Ask]]:
    from telegram.request import HTTPXRequest

    sending = HTTPXRequest(connection_pool_size=CONNECTIONS)
    bot = Bot(token, base_url=f"{url}/bot", request=sending, get_updates_request=HTTPXRequest())
    async with bot, by_httpx(model) as ask:
        yield bot, ask


@asynccontextmanager
async def _on_aiohttp(url: str, token: str, model: str) -> AsyncGenerator[tuple[Bot, Ask]]:
    import aiohttp

    class Request(BaseRequest):
        @property
        def read_timeout(self) -> float | None:
            return 5.0

        async def initialize(self) -> None:
            pass

        async def shutdown(self) -> None:
            pass

        async def do_request(
            self,
            url: str,
            method: str,
            request_data: RequestData | None = None,
            *_timeouts: object,
            **_more: object,
        ) -> tuple[int, bytes]:
            data = None if request_data is None else request_data.json_parameters
            async with session.request(method, url, data=data) as response:
                return response.status, await response.read()

    async with aiohttp.ClientSession() as session, by_aiohttp(model) as ask:
        request = Request()
        bot = Bot(token, base_url=f"{url}/bot", request=request, get_updates_request=request)
        async with bot:
            yield bot, ask


Open = Callable[[str, str, str], AbstractAsyncContextManager[tuple[Bot, Ask]]]
CLIENTS: Mapping[str, Open] = {"httpx": _on_httpx, "aiohttp": _on_aiohttp}


async def _main(client: str, url: str, token: str, model: str, path: str) -> None:
    async with CLIENTS[client](url, token, model) as (bot, ask):
        print("ready", flush=True)
        await _TelegramFloor(bot, Floor(ask, path)).run()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:6]))
