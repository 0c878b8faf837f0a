"""The floor: the least that a Telegram bot of the same libraries and promises has to do.

The same SDK and HTTP client, one durable commit before a message is confirmed and one after it is
answered; no policy, no history, no draft, no redaction. Beside it the daemon's figures are ratios,
which a loaded machine leaves as they are.

Run as `python -m tests.bench.floor BOT_API TOKEN MODEL DATABASE`.
"""

import asyncio
import json
import sqlite3
import sys
from typing import TypedDict

import httpx
from telegram import Bot, Update
from telegram.request import HTTPXRequest

CONNECTIONS = 64
POLL_S = 25


class _Delta(TypedDict, total=False):
    content: str


class _Choice(TypedDict):
    delta: _Delta


class _Chunk(TypedDict):
    choices: list[_Choice]


class Floor:
    """Answers every message with what the model says."""

    def __init__(self, bot: Bot, model: str, client: httpx.AsyncClient, path: str) -> None:
        """Open the database."""
        self._bot = bot
        self._model = model
        self._client = client
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
        async with self._client.stream(
            "POST", f"{self._model}/chat/completions", json=body
        ) as came:
            async for line in came.aiter_lines():
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


async def _main(url: str, token: str, model: str, path: str) -> None:
    bot = Bot(
        token,
        base_url=f"{url}/bot",
        request=HTTPXRequest(connection_pool_size=CONNECTIONS),
        get_updates_request=HTTPXRequest(),
    )
    limits = httpx.Limits(max_connections=CONNECTIONS)
    async with bot, httpx.AsyncClient(limits=limits, timeout=60) as client:
        print("ready", flush=True)
        await Floor(bot, model, client, path).run()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:5]))
