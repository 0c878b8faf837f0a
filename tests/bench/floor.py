"""The floor: the least that a Telegram bot of the same libraries and promises has to do.

The same SDK, one durable commit before a message is confirmed and one after it is answered; no
policy, no history, no draft, no redaction. Beside it the daemon's figures are ratios, which a loaded
machine leaves as they are. There are two, because more than half of what a bot costs is its HTTP
client: `httpx`, as python-telegram-bot comes, and `aiohttp`, as the daemon speaks.

Run as `python -m tests.bench.floor CLIENT BOT_API TOKEN MODEL DATABASE`.
"""

import asyncio
import json
import sqlite3
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypedDict

from telegram import Bot, Update
from telegram.request import BaseRequest, RequestData

CONNECTIONS = 64
POLL_S = 25


class _Delta(TypedDict, total=False):
    content: str


class _Choice(TypedDict):
    delta: _Delta


class _Chunk(TypedDict):
    choices: list[_Choice]


Ask = Callable[[Mapping[str, object]], AsyncIterator[str]]
"""Sends the body of a request to the model, and yields the lines of the answer."""


class Floor:
    """Answers every message with what the model says."""

    def __init__(self, bot: Bot, ask: Ask, path: str) -> None:
        """Open the database."""
        self._bot = bot
        self._ask = ask
        self._store = sqlite3.connect(path)
        self._store.execute("PRAGMA journal_mode = WAL")
        self._store.execute("PRAGMA synchronous = FULL")
        self._store.execute(
            "CREATE TABLE IF NOT EXISTS said (id INTEGER PRIMARY KEY, text, answer)"
        )
        self._store.commit()

    async def run(self) -> None:
        """Poll for ever."""
        offset: int | None = None
        async with asyncio.TaskGroup() as group:
            while True:
                updates = await self._bot.get_updates(offset=offset, timeout=POLL_S)
                for one in updates:
                    self._commit(
                        "INSERT INTO said (id, text) VALUES (?, ?)", one.update_id, _text(one)
                    )
                    group.create_task(self._answer(one))
                    offset = one.update_id + 1

    async def _answer(self, update: Update) -> None:
        body = {"stream": True, "messages": [{"role": "user", "content": _text(update)}]}
        text = ""
        async for line in self._ask(body):
            if line.startswith("data: {"):
                chunk: _Chunk = json.loads(line.removeprefix("data: "))
                text += chunk["choices"][0]["delta"].get("content", "")
        assert update.effective_chat is not None
        await self._bot.send_message(update.effective_chat.id, text)
        self._commit("UPDATE said SET answer = ? WHERE id = ?", text, update.update_id)

    def _commit(self, statement: str, *values: object) -> None:
        self._store.execute(statement, values)
        self._store.commit()


def _text(update: Update) -> str:
    return (update.message and update.message.text) or ""


@asynccontextmanager
async def _on_httpx(url: str, token: str, model: str) -> AsyncGenerator[tuple[Bot, Ask]]:
    import httpx
    from telegram.request import HTTPXRequest

    async def ask(body: Mapping[str, object]) -> AsyncGenerator[str]:
        async with client.stream("POST", f"{model}/chat/completions", json=body) as came:
            async for line in came.aiter_lines():
                yield line

    limits = httpx.Limits(max_connections=CONNECTIONS)
    sending = HTTPXRequest(connection_pool_size=CONNECTIONS)
    bot = Bot(token, base_url=f"{url}/bot", request=sending, get_updates_request=HTTPXRequest())
    async with bot, httpx.AsyncClient(limits=limits, timeout=60) as client:
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
            async with session.request(method, url, data=data) as came:
                return came.status, await came.read()

    async def ask(body: Mapping[str, object]) -> AsyncGenerator[str]:
        async with session.post(f"{model}/chat/completions", json=body) as came:
            async for line in came.content:
                yield line.decode().rstrip("\n")

    connector = aiohttp.TCPConnector(limit=CONNECTIONS + 1)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        request = Request()
        bot = Bot(token, base_url=f"{url}/bot", request=request, get_updates_request=request)
        async with bot:
            yield bot, ask


Open = Callable[[str, str, str], AbstractAsyncContextManager[tuple[Bot, Ask]]]
CLIENTS: Mapping[str, Open] = {"httpx": _on_httpx, "aiohttp": _on_aiohttp}


async def _main(client: str, url: str, token: str, model: str, path: str) -> None:
    async with CLIENTS[client](url, token, model) as (bot, ask):
        print("ready", flush=True)
        await Floor(bot, ask, path).run()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:6]))
