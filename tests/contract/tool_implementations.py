"""Every tool of the house, with a call that it can do; a new tool adds its line here."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fakes.manual_clock import ManualClock
from tests.fakes.memory_store import MemoryStore
from zeroclaw.config.model import (
    AttachmentToolSettings,
    FetchSettings,
    NotesSettings,
    ShellSettings,
)
from zeroclaw.context.notes import Notes
from zeroclaw.envelope import ConversationId
from zeroclaw.host.http import HttpAnswer, HttpRequest
from zeroclaw.host.sandbox import Broken, Limits, System, detect
from zeroclaw.tool import Tool
from zeroclaw.tools import attachments, fetch, files, loading, notes, results, shell
from zeroclaw.tools.loading.skill import Skill
from zeroclaw.value import Value

NO_SYSTEM = System(bwrap="/missing/bwrap", prlimit="/missing/prlimit", links=(), directories=())


class Implementation(Value):
    """One tool under test.

    Attributes:
        make: Creates it.
        good: Arguments of a call that succeeds in the workspace that `furnish` prepares.
        slow: Arguments of a call that lasts until it is stopped, None if every call is short.
        needs: Programs that it requires.
    """

    make: Callable[[], Tool]
    good: Mapping[str, object]
    slow: Mapping[str, object] | None = None
    needs: tuple[str, ...] = ()


def furnish(workspace: Path) -> None:
    """Prepare a workspace for the good calls."""
    (workspace / "notes").write_text("milk\nbread\n", encoding="utf-8")


def _file_tool(name: str) -> Callable[[], Tool]:
    return lambda: next(
        tool for tool in files.tools(files.FilesSettings()) if tool.spec.name == name
    )


def _boxed_shell() -> Tool:
    found = detect()
    system = NO_SYSTEM if isinstance(found, Broken) else found
    [tool] = shell.tools(ShellSettings(), system, Limits())
    return tool


def _bare_shell() -> Tool:
    settings = ShellSettings(without_sandbox="ask")
    [tool] = shell.tools(settings, Broken(reason="none"), Limits())
    return tool


class _OneNote(Notes):
    """Every owner has a note, until it is forgotten."""

    async def forget(self, owner: str, number: int) -> notes.Note | None:
        await self.add(owner, NOTE, max_notes=1)
        return await super().forget(owner, number)


NOTE = notes.Note(
    number=0, text="milk", by="Ada", at=ManualClock().now(), conversation=ConversationId("01C")
)


def _note_tool(name: str) -> Callable[[], Tool]:
    def make() -> Tool:
        tools = notes.tools(NotesSettings(), _OneNote(MemoryStore()), str)
        return next(tool for tool in tools if tool.spec.name == name)

    return make


class _OneFile:
    """Every conversation has the same file."""

    async def find(self, conversation: ConversationId, number: int) -> attachments.File | None:
        await asyncio.sleep(0)
        return attachments.File(name="list.txt", size_bytes=5)

    async def content(self, conversation: ConversationId, number: int) -> bytes | None:
        await asyncio.sleep(0)
        return b"milk\n"


def _read_attachment() -> Tool:
    [tool] = attachments.tools(
        AttachmentToolSettings(), _OneFile(), Broken(reason="text needs none"), lambda: 20_000
    )
    return tool


async def _the_same_result(_: ConversationId, _name: str) -> results.WholeResult:
    """Every conversation has the same one."""
    await asyncio.sleep(0)
    return results.WholeResult(text="milk\nbread\n", trusted=True)


def _reader() -> Tool:
    [tool] = results.tools(_the_same_result)
    return tool


class OnePage:
    """A client that answers everything with one text; `tests/unit/tools/fetch` has the sockets."""

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncGenerator[HttpAnswer, None]:
        yield HttpAnswer(status=200, headers={"content-type": "text/plain"}, chunks=_milk())

    async def aclose(self) -> None:
        """Nothing is open."""


async def _milk() -> AsyncGenerator[bytes, None]:
    yield b"milk"


async def _public(name: str) -> tuple[str, ...]:
    return ("8.8.8.8",)


def _fetch() -> Tool:
    [tool] = fetch.tools(FetchSettings(), http=OnePage(), resolve=_public)
    return tool


def _loader(name: str) -> Callable[[], Tool]:
    skill = Skill(name="tides", description="When to sail.", text="", folder=Path("/skills/tides"))
    tools = loading.tools(lambda _who, _where: ("files",), lambda _who, _where: {"tides": skill})
    return lambda: next(tool for tool in tools if tool.spec.name == name)


IMPLEMENTATIONS: Mapping[str, Implementation] = {
    "load_tools": Implementation(make=_loader("load_tools"), good={"groups": ["files"]}),
    "load_skills": Implementation(make=_loader("load_skills"), good={"name": "tides"}),
    "read_attachment": Implementation(make=_read_attachment, good={"id": 1}),
    "fetch": Implementation(make=_fetch, good={"url": "https://example.org/"}),
    "read_file": Implementation(make=_file_tool("read_file"), good={"path": "notes"}),
    "list_files": Implementation(make=_file_tool("list_files"), good={}),
    "search_files": Implementation(make=_file_tool("search_files"), good={"pattern": "milk"}),
    "write_file": Implementation(
        make=_file_tool("write_file"), good={"path": "notes", "content": "eggs\n"}
    ),
    "edit_file": Implementation(
        make=_file_tool("edit_file"), good={"path": "notes", "old_text": "milk", "new_text": "eggs"}
    ),
    "remember": Implementation(make=_note_tool("remember"), good={"text": "buy milk"}),
    "recall": Implementation(make=_note_tool("recall"), good={"words": "milk"}),
    "forget_note": Implementation(make=_note_tool("forget_note"), good={"number": 1}),
    "send_file": Implementation(make=_file_tool("send_file"), good={"path": "notes"}),
    "read_result": Implementation(make=_reader, good={"id": "0123456789abcdef", "word": "milk"}),
    "shell in a sandbox": Implementation(
        make=_boxed_shell,
        good={"command": "cat notes"},
        slow={"command": "echo up > pipe; sleep 600"},
        needs=("bwrap",),
    ),
    "shell without one": Implementation(
        make=_bare_shell,
        good={"command": "cat notes"},
        slow={"command": "echo up > pipe; sleep 600"},
    ),
}
