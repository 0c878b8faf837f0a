"""Calls of the note tools, by several people in several places, over one store."""

from datetime import timedelta
from pathlib import Path

from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_tool import tool_context
from zeroclaw.config.model import NotesSettings
from zeroclaw.context.notes import Notes
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.redact import Redactor
from zeroclaw.tool import Arguments, Tool, ToolContext, ToolOutput
from zeroclaw.tools.notes import tools
from zeroclaw.value import replace

SECRET = "correct horse battery 7431"


def person(name: str, channel: str = "chat") -> Principal:
    return Principal(
        id=f"person:{name}", roles=frozenset(), channel=channel, sender=name, display=name.title()
    )


def direct(name: str, channel: str = "chat") -> ToolContext:
    """Somebody's own chat."""
    address = Address(channel=channel, account="bot", chat=name, direct=True)
    return _at(address, person(name, channel))


def room(chat: str, name: str = "ada", thread: str | None = None) -> ToolContext:
    """A chat that others read, too."""
    return _at(Address(channel="chat", account="bot", chat=chat, thread=thread), person(name))


def _at(address: Address, principal: Principal) -> ToolContext:
    return replace(
        tool_context(Path("/w")),
        conversation=ConversationId(f"01{address.chat.upper()}"),
        principal=principal,
        address=address,
    )


class Pad:
    """The three tools over one store; each call is a minute after the one before."""

    def __init__(self, *, most: int = 200, chars: int = 2_000) -> None:
        self.store = MemoryStore()
        self.clock = ManualClock()
        settings = NotesSettings(max_notes=most, max_note_chars=chars)
        made = tools(settings, Notes(self.store), Redactor((SECRET,)).redact)
        self.tools: dict[str, Tool] = {tool.spec.name: tool for tool in made}

    async def call(self, name: str, context: ToolContext, arguments: Arguments) -> ToolOutput:
        tool = self.tools[name]
        await self.clock.advance(timedelta(minutes=1).total_seconds())
        return await tool.run(tool.check(arguments), replace(context, clock=self.clock))

    async def remember(self, context: ToolContext, text: str) -> str:
        return (await self.call("remember", context, {"text": text})).text

    async def recall(self, context: ToolContext, words: str = "") -> str:
        return (await self.call("recall", context, {"words": words})).text

    async def forget(self, context: ToolContext, number: int) -> str:
        return (await self.call("forget_note", context, {"number": number})).text
