"""The people's side of the loopback platform, made cheap enough to load the daemon.

It speaks the test platform's protocol (`zeroclaw_test_platform.wire`), carries every call out at
once, and remembers of each message only when it was answered.
"""

import asyncio
import base64
import time
from dataclasses import dataclass, field
from typing import Self

from zeroclaw_test_platform.wire import LONGEST_LINE, Json, line, read, text_of


@dataclass(eq=False, kw_only=True)
class SentMessage:
    """A message of a person; seconds of one monotonic clock, 0 for not yet."""

    at: float
    admitted: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    first_text_at: float = 0.0
    final_at: float = 0.0


class Front:
    """The platform on a loopback port.

    Attributes:
        calls: How often the bot called, typing aside.
    """

    def __init__(self) -> None:
        """Begin with no chat."""
        self.port = 0
        self.calls = 0
        self._server: asyncio.Server | None = None
        self._events: asyncio.StreamWriter | None = None
        self._connected = asyncio.Event()
        self._by_event: dict[str, SentMessage] = {}
        self._by_chat: dict[str, SentMessage] = {}
        self._files: dict[str, str] = {}
        self._made = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", 0, limit=LONGEST_LINE, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def connected(self) -> None:
        """Wait until a bot takes events."""
        await self._connected.wait()

    def say(self, chat: str, text: str, *, file: tuple[str, bytes] | None = None) -> SentMessage:
        """Write in a person's direct chat, with a file; the next final there answers it."""
        assert self._events is not None
        self._made += 1
        message = SentMessage(at=time.perf_counter())
        self._by_event[f"e{self._made}"] = message
        self._by_chat[chat] = message
        event = {
            "id": f"e{self._made}",
            "kind": "said",
            "who": chat,
            "verified": True,
            "chat": chat,
            "direct": True,
            "thread": "",
            "message": f"p{self._made}",
            "text": text,
            "files": [] if file is None else [self._store_file(*file)],
        }
        self._events.write(line(event))
        return message

    def _store_file(self, name: str, content: bytes) -> Json:
        self._files[name] = base64.b64encode(content).decode()
        return {
            "reference": name,
            "name": name,
            "media_type": "application/pdf",
            "size": len(content),
        }

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await read(reader)
            if request is None:
                return
            if "open" in request:
                await self._confirmations(reader, writer)
                return
            writer.write(line(self._carry_out(request)))
            await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()

    async def _confirmations(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._events = writer
        writer.write(line({"ready": True}))
        self._connected.set()
        while (answer := await read(reader)) is not None:
            if "confirm" in answer:  # else the daemon is stopping and takes no more
                self._by_event.pop(text_of(answer, "confirm")).admitted.set()
        self._connected.clear()

    def _carry_out(self, request: Json) -> Json:
        if request.get("call") == "typing":
            return {}
        if request.get("call") == "fetch":
            return {"base64": self._files[text_of(request, "reference")]}
        now = time.perf_counter()
        self.calls += 1
        message = self._by_chat[text_of(request, "chat")]
        message.first_text_at = message.first_text_at or now
        if request.get("draft") is not True:
            message.final_at = now
            message.answered.set()
        return {"message": text_of(request, "message") or f"m{self.calls}"}
