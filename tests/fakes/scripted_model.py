"""A model that gives scripted answers, and waits for gates of the test."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

from zeroclaw.message import ToolCall, Usage
from zeroclaw.provider import (
    Finished,
    ModelRequest,
    ProviderFacts,
    StreamEvent,
    TextDelta,
    ToolCallReady,
    UsageReported,
)

Play = StreamEvent | Exception | asyncio.Event
Answer = tuple[Play, ...]


def says(*texts: str) -> Answer:
    """Return an answer with these deltas."""
    usage = UsageReported(usage=Usage(input_tokens=10, output_tokens=2))
    return (*(TextDelta(text=text) for text in texts), usage, Finished(reason="stop"))


def asks_for(*calls: tuple[str, str], saying: str = "") -> Answer:
    """Return an answer that calls tools, by name and JSON text; all with the same id."""
    deltas = (TextDelta(text=saying),) if saying else ()
    ready = (
        ToolCallReady(call=ToolCall(id="call_0", name=name, arguments=arguments))
        for name, arguments in calls
    )
    return (*deltas, *ready, Finished(reason="tool_calls"))


# Calls of the house's tools, see `plain_tool`.
LOOK = asks_for(("look", "{}"))
POKE = asks_for(("poke", '{"a": 1}'))
TWO_POKES = asks_for(("poke", '{"a": 1}'), ("poke", '{"a": 2}'))


class ScriptedModel:
    """Gives the next answer to each request, `ok` if there is none.

    It raises an exception among the events, and waits for an `asyncio.Event`.

    Attributes:
        requests: Every request.
        closed: The number of streams that have ended.
    """

    def __init__(self) -> None:
        self._answers: deque[Answer] = deque()
        self.facts = ProviderFacts(model="scripted")
        self.requests: list[ModelRequest] = []
        self.closed = 0

    def will(self, *answers: Answer) -> None:
        self._answers.extend(answers)

    def otherwise(self, *answers: Answer) -> None:
        """Replace the scripted answers."""
        self._answers = deque(answers)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(request)
        answer = self._answers.popleft() if self._answers else says("ok")
        try:
            for event in answer:
                match event:
                    case Exception():
                        raise event
                    case asyncio.Event():
                        await event.wait()
                    case _:
                        yield event
        finally:
            self.closed += 1

    def asked(self) -> list[str]:
        """Return the newest request's messages as `role: content`, without the system message."""
        return [
            f"{type(message).__name__.removesuffix('Message').lower()}: {message.content}"
            for message in self.requests[-1].messages[1:]
        ]

    async def aclose(self) -> None:
        await asyncio.sleep(0)
