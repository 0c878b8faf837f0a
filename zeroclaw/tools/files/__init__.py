"""The tools that read and change the files of a workspace, and hand one to the people of a chat.

Every call names its files as `file:<real path>`; one that lists or searches a directory names all
below it as well, and skips what the call may not touch there. A path with a symbolic link in it has no such
name and is refused; one that gets a link between the decision and the run is refused by the run.
"""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic

from zeroclaw.errors import ResourcesUnresolved, ToolFailed
from zeroclaw.host.protected import rules
from zeroclaw.text import catalogue
from zeroclaw.text.language import Grouped, Localized
from zeroclaw.tool import Arguments, Effect, Risk, Tool, ToolContext, ToolOutput, ToolSpec, below
from zeroclaw.tools import Model, dump, parse, quoted, schema
from zeroclaw.tools.files.content import (
    EditArguments,
    ReadArguments,
    SendArguments,
    WriteArguments,
    edit_file,
    read_file,
    send_file,
    send_line,
    write_file,
)
from zeroclaw.tools.files.tree import ListArguments, SearchArguments, list_files, search_files
from zeroclaw.tools.files.workspace import FilesSettings, Place, parts_of, resolve
from zeroclaw.value import Value

__all__ = ["FilesSettings", "tools"]

_TIMEOUT_S = 30.0


class FileTool(Value, Generic[Model]):
    """One tool on files, made of a model, a line and a function that blocks.

    Attributes:
        spec: What it declares.
        model: Its arguments.
        path: The path among them.
        line: What a call would do, for people.
        work: Does it, in a thread.
        settings: What it may cost.
        walks: It reads what is below a directory, too.
    """

    spec: ToolSpec
    model: type[Model]
    path: Callable[[Model], str]
    line: Callable[[Model], Localized]
    work: Callable[[Model, Place], ToolOutput]
    settings: FilesSettings
    walks: bool = False

    def check(self, arguments: Arguments) -> Arguments:
        """Validate against the model."""
        return dump(parse(self.model, arguments))

    def describe(self, arguments: Arguments) -> Localized:
        """Return what the call would do."""
        return self.line(parse(self.model, arguments))

    async def resources(self, arguments: Arguments, context: ToolContext) -> tuple[str, ...]:
        """Return the one file that the call is about, or the directory and all below it."""
        path = self.path(parse(self.model, arguments))
        try:
            return await asyncio.to_thread(_named, context.workspace, path, walks=self.walks)
        except ToolFailed as error:
            raise ResourcesUnresolved(str(error)) from error

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Do it in a thread; a cancelled call changes nothing that it has not changed yet."""
        parsed = parse(self.model, arguments)
        stopped = threading.Event()
        try:
            return await self.settings.share.run(
                context.conversation, lambda: self._run(parsed, context, stopped)
            )
        finally:
            stopped.set()

    def _run(self, parsed: Model, context: ToolContext, stopped: threading.Event) -> ToolOutput:
        real = context.workspace.resolve()
        place = Place(
            workspace=real,
            rules=rules(self.settings.protected, real),
            settings=self.settings,
            stopped=stopped,
            permits=context.permits,
            max_file_bytes=context.max_file_bytes,
        )
        return self.work(parsed, place)


def tools(settings: FilesSettings) -> tuple[Tool, ...]:
    """Return the six tools."""
    return (
        FileTool(
            spec=_spec(
                "read_file",
                "Read a text file of the workspace, from a line on.",
                ReadArguments,
                effects={"read"},
            ),
            model=ReadArguments,
            path=lambda asked: asked.path,
            line=lambda asked: catalogue.WOULD_READ.about(path=quoted(asked.path)),
            work=read_file,
            settings=settings,
        ),
        FileTool(
            spec=_spec(
                "list_files",
                "List the names in a directory of the workspace.",
                ListArguments,
                effects={"read"},
            ),
            model=ListArguments,
            path=lambda asked: asked.path,
            line=lambda asked: catalogue.WOULD_LIST.about(path=quoted(asked.path)),
            work=list_files,
            settings=settings,
            walks=True,
        ),
        FileTool(
            spec=_spec(
                "search_files",
                "Find the lines of the workspace's text files that hold a text or an expression.",
                SearchArguments,
                effects={"read"},
            ),
            model=SearchArguments,
            path=lambda asked: asked.path,
            line=lambda asked: catalogue.WOULD_SEARCH.about(
                path=quoted(asked.path), pattern=quoted(asked.pattern)
            ),
            work=search_files,
            settings=settings,
            walks=True,
        ),
        FileTool(
            spec=_spec(
                "write_file",
                "Make a file in the workspace, or replace all of its content.",
                WriteArguments,
                effects={"write"},
                idempotent=True,  # the same content twice is the same content
                risk="medium",
            ),
            model=WriteArguments,
            path=lambda asked: asked.path,
            line=_write_line,
            work=write_file,
            settings=settings,
        ),
        FileTool(
            spec=_spec(
                "edit_file",
                "Replace a text in a file of the workspace; it must stand there exactly once.",
                EditArguments,
                effects={"read", "write"},
                idempotent=False,
                risk="medium",
            ),
            model=EditArguments,
            path=lambda asked: asked.path,
            line=_edit_line,
            work=edit_file,
            settings=settings,
        ),
        FileTool(
            spec=_spec(
                "send_file",
                "Send a file of the workspace to the people of this chat, as it is now.",
                SendArguments,
                # It shows a file to those who read the answer; nothing else learns of it.
                effects={"read"},
                # Nothing is sent before its result is recorded, so a run in vain sends nothing.
                idempotent=True,
                in_order=True,
            ),
            model=SendArguments,
            path=lambda asked: asked.path,
            line=send_line,
            work=send_file,
            settings=settings,
        ),
    )


def _spec(
    name: str,
    description: str,
    model: type[Model],
    *,
    effects: set[Effect],
    idempotent: bool = True,
    risk: Risk = "low",
    in_order: bool = False,
) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=f"{description} Symbolic links are not followed.",
        parameters=schema(model),
        effects=frozenset(effects),
        idempotent=idempotent,
        cancellable=True,
        risk=risk,
        timeout_s=_TIMEOUT_S,
        # Writes of one batch mean their order, and so do files that people get.
        execution="sequential" if in_order or "write" in effects else "parallel",
    )


def _write_line(asked: WriteArguments) -> Localized:
    count = len(asked.content)
    return catalogue.WOULD_WRITE.about(
        count=count, number=Grouped(number=count), path=quoted(asked.path)
    )


def _edit_line(asked: EditArguments) -> Localized:
    old = quoted(asked.old_text, limit_chars=60)
    new = quoted(asked.new_text, limit_chars=60)
    return catalogue.WOULD_EDIT.about(path=quoted(asked.path), old=old, new=new)


def _named(workspace: Path, path: str, *, walks: bool) -> tuple[str, ...]:
    real = workspace.resolve()
    place = resolve(real, parts_of(path, real))
    name = f"file:{place}"
    return (name, below(name)) if walks and not place.is_file() else (name,)
