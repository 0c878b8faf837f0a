"""A floor: the least that a bot of the same libraries and promises has to do.

The same SDK, one durable commit before a message is confirmed and one after it is answered; no
policy, no history, no draft, no redaction. Beside it the daemon's figures are ratios, which a loaded
machine leaves as they are.
"""

import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypedDict

CONNECTIONS = 64


class _Delta(TypedDict, total=False):
    content: str


class _Choice(TypedDict):
    delta: _Delta


class _Chunk(TypedDict):
    choices: list[_Choice]


Ask = Callable[[Mapping[str, object]], AsyncIterator[str]]
"""Sends the body of a request to the model, and yields the lines of the answer."""


class Floor:
    """Answers messages with what the model says."""

    def __init__(self, ask: Ask, path: str) -> None:
        """Open the database."""
        self._ask = ask
        self._store = sqlite3.connect(path)
        self._store.execute("PRAGMA journal_mode = WAL")
        self._store.execute("PRAGMA synchronous = FULL")
        self._store.execute("CREATE TABLE IF NOT EXISTS said (id PRIMARY KEY, text, answer)")
        self._store.commit()

    def take(self, message: object, text: str) -> None:
        """Commit a message; then it may be confirmed."""
        self._commit("INSERT INTO said (id, text) VALUES (?, ?)", message, text)

    async def answer(
        self, message: object, text: str, send: Callable[[str], Awaitable[object]]
    ) -> None:
        """Ask the model, send what it says, and commit that it was sent."""
        body = {"stream": True, "messages": [{"role": "user", "content": text}]}
        answer = ""
        async for line in self._ask(body):
            if line.startswith("data: {"):
                chunk: _Chunk = json.loads(line.removeprefix("data: "))
                answer += chunk["choices"][0]["delta"].get("content", "")
        await send(answer)
        self._commit("UPDATE said SET answer = ? WHERE id = ?", answer, message)

    def _commit(self, statement: str, *values: object) -> None:
        self._store.execute(statement, values)
        self._store.commit()
