"""A floor: the least that a bot of the same libraries and promises has to do.

The same SDK, one durable commit before a message is confirmed and one after it is answered, and the
tool that the model calls; no policy, no approval, no receipt, no history, no draft, no redaction. Beside it the daemon's figures are ratios, which a loaded
machine leaves as they are.
"""

import json
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypedDict

CONNECTIONS = 64


class _Function(TypedDict):
    name: str
    arguments: str


class _Call(TypedDict):
    id: str
    function: _Function


class _Delta(TypedDict, total=False):
    content: str
    tool_calls: list[_Call]


class _Choice(TypedDict):
    delta: _Delta


class _Chunk(TypedDict):
    choices: list[_Choice]


Ask = Callable[[Mapping[str, object]], AsyncIterator[str]]
"""Sends the body of a request to the model, and yields the lines of the answer."""


class _Arguments(TypedDict):
    path: str


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "list_files",
            "description": "List a directory.",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
                "additionalProperties": False,
            },
        },
    }
]


class Floor:
    """Answers messages with what the model says, and runs what it calls."""

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
        """Ask the model until it calls no tool, send its answer, and commit that it was sent."""
        messages: list[object] = [{"role": "user", "content": text}]
        answer, calls = await self._call_model(messages)
        while calls:
            messages.append({"role": "assistant", "content": answer, "tool_calls": calls})
            messages += [
                {"role": "tool", "tool_call_id": call["id"], "content": _listed(call["function"])}
                for call in calls
            ]
            answer, calls = await self._call_model(messages)
        await send(answer)
        self._commit("UPDATE said SET answer = ? WHERE id = ?", answer, message)

    async def _call_model(self, messages: list[object]) -> tuple[str, list[_Call]]:
        answer, calls = "", list[_Call]()
        async for line in self._ask({"stream": True, "messages": messages, "tools": TOOLS}):
            if line.startswith("data: {"):
                chunk: _Chunk = json.loads(line.removeprefix("data: "))
                delta = chunk["choices"][0]["delta"]
                answer += delta.get("content", "")
                calls += delta.get("tool_calls", [])
        return answer, calls

    def _commit(self, statement: str, *values: object) -> None:
        self._store.execute(statement, values)
        self._store.commit()


def _listed(function: _Function) -> str:
    arguments: _Arguments = json.loads(function["arguments"])
    with os.scandir(arguments["path"]) as found:
        return "\n".join(sorted(path.name for path in found)[:20])
