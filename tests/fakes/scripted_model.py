"""A model that says what a test wants, and waits where a test holds it."""

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
    """An answer of these deltas."""
    usage = UsageReported(usage=Usage(input_tokens=10, output_tokens=2))
    return (*(TextDelta(text=text) for text in texts), usage, Finished(reason="stop"))


def asks_for(*calls: tuple[str, str], saying: str = "") -> Answer:
    """An answer that calls tools, each by name and JSON text; all with the same id."""
    said = (TextDelta(text=saying),) if saying else ()
    made = (
        ToolCallReady(call=ToolCall(id="call_0", name=name, arguments=arguments))
        for name, arguments in calls
    )
    return (*said, *made, Finished(reason="tool_calls"))


# Calls of the house's tools, see `plain_tool`.
LOOK = asks_for(("look", "{}"))
POKE = asks_for(("poke", '{"a": 1}'))
TWO_POKES = asks_for(("poke", '{"a": 1}'), ("poke", '{"a": 2}'))


class ScriptedModel:
    """Plays the next answer for each request, `ok` when there is none.

    An exception among the events is raised there; an `asyncio.Event` is waited for.

    Attributes:
        requests: Everything that was asked.
        closed: How many streams ended, in whatever way.
    """

    def __init__(self) -> None:
        self._answers: deque[Answer] = deque()
        self.facts = ProviderFacts(model="scripted")
        self.requests: list[ModelRequest] = []
        self.closed = 0

    def will(self, *answers: Answer) -> None:
        self._answers.extend(answers)

    def otherwise(self, *answers: Answer) -> None:
        """Forget what was to be said, and say this."""
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
        """The newest request's messages, each as `role: content`, without the system's."""
        return [
            f"{type(message).__name__.removesuffix('Message').lower()}: {message.content}"
            for message in self.requests[-1].messages[1:]
        ]

    async def aclose(self) -> None:
        await asyncio.sleep(0)
