"""The tools that read and change the files of a workspace, and send them to the chat.

The resource of a call is `file:<real path>`. A call that lists or searches a directory also names
all paths below it, and skips those that it may not touch. A path through a symbolic link has no
such name and is refused; if a link appears between the decision and the run, the run refuses it.
"""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from zeroclaw.errors import ResourcesUnresolved, ToolFailed
from zeroclaw.host.executors import run_inline
from zeroclaw.host.masks import hidden_in
from zeroclaw.text import catalogue
from zeroclaw.text.language import Grouped, Localized
from zeroclaw.tool import Effect, Tool, ToolContext, ToolOutput, ToolSpec, below
from zeroclaw.tools import ModelSchema, ModelTool, quoted
from zeroclaw.tools.files.content import (
    EditArguments,
    PathArguments,
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
from zeroclaw.tools.files.workspace import FilesSettings, RunContext, parts_of, resolve

__all__ = ["NAMES", "FilesSettings", "tools"]

NAMES = frozenset(
    {"read_file", "list_files", "search_files", "write_file", "edit_file", "send_file"}
)
"""Names of the tools; none of them leaves the workspace of its conversation."""

_TIMEOUT_S = 30.0
_Arguments = TypeVar("_Arguments", bound=PathArguments)


def tools(settings: FilesSettings) -> tuple[Tool, ...]:
    """Return the six tools."""
    tool = partial(_file_tool, settings)
    return (
        tool(
            "read_file",
            "Read lines of a text file",
            ReadArguments,
            lambda arguments: catalogue.WOULD_READ.about(path=quoted(arguments.path)),
            handler=read_file,
        ),
        tool(
            "list_files",
            "List a directory",
            ListArguments,
            lambda arguments: catalogue.WOULD_LIST.about(path=quoted(arguments.path)),
            handler=list_files,
            walks=True,
        ),
        tool(
            "search_files",
            "Find lines in the text files",
            SearchArguments,
            lambda arguments: catalogue.WOULD_SEARCH.about(
                path=quoted(arguments.path), pattern=quoted(arguments.pattern)
            ),
            handler=search_files,
            walks=True,
        ),
        tool(
            "write_file",
            "Make or replace a file",
            WriteArguments,
            _write_line,
            handler=write_file,
            effects=("write",),
        ),
        tool(
            "edit_file",
            "Replace a text in a file",
            EditArguments,
            _edit_line,
            handler=edit_file,
            effects=("read", "write"),
        ),
        # "read" is its only effect: only the readers of the answer see the file.
        tool("send_file", "Send this chat a file", SendArguments, send_line, handler=send_file),
    )


def _file_tool(
    settings: FilesSettings,
    name: str,
    description: str,
    model: type[_Arguments],
    summary: Callable[[_Arguments], Localized],
    *,
    handler: Callable[[_Arguments, RunContext], ToolOutput],
    effects: tuple[Effect, ...] = ("read",),
    walks: bool = False,
) -> Tool:
    """Return a tool whose work blocks and runs in a thread, inside the workspace."""

    def resources(arguments: _Arguments, context: ToolContext) -> tuple[str, ...]:
        try:
            return run_inline(partial(_resources, context.workspace, arguments.path, walks=walks))
        except ToolFailed as error:
            raise ResourcesUnresolved(str(error)) from error

    async def run(arguments: _Arguments, context: ToolContext) -> ToolOutput:
        # Once the call is cancelled, the thread makes no further change.
        stopped = threading.Event()
        try:
            return await settings.share.run(
                context.conversation,
                lambda: handler(arguments, _run_context(settings, context, stopped)),
            )
        finally:
            stopped.set()

    spec = ToolSpec(
        name=name,
        description=f"{description} of the workspace.",
        parameters=ModelSchema(model),
        effects=frozenset(effects),
        # Writing the same content twice is harmless, and no file is sent before the result is
        # recorded. A repeated edit would not find its text.
        idempotent=name != "edit_file",
        risk="medium" if "write" in effects else "low",
        timeout_s=_TIMEOUT_S,
        # The model may rely on the order of the writes in a batch, and of the files it sends.
        execution="sequential" if name == "send_file" or "write" in effects else "parallel",
    )
    return ModelTool(spec=spec, model=model, summary=summary, find_resources=resources, handler=run)


def _run_context(
    settings: FilesSettings, context: ToolContext, stopped: threading.Event
) -> RunContext:
    real = context.workspace.resolve()
    return RunContext(
        workspace=real,
        hidden=hidden_in(real, settings.hidden),
        settings=settings,
        stopped=stopped,
        permits=context.permits,
        max_file_bytes=context.max_file_bytes,
    )


def _write_line(arguments: WriteArguments) -> Localized:
    count = len(arguments.content)
    return catalogue.WOULD_WRITE.about(
        count=count, number=Grouped(number=count), path=quoted(arguments.path)
    )


def _edit_line(arguments: EditArguments) -> Localized:
    old = quoted(arguments.old_text, limit_chars=60)
    new = quoted(arguments.new_text, limit_chars=60)
    return catalogue.WOULD_EDIT.about(path=quoted(arguments.path), old=old, new=new)


def _resources(workspace: Path, path: str, *, walks: bool) -> tuple[str, ...]:
    real = workspace.resolve()
    place = resolve(real, parts_of(path, real))
    name = f"file:{place}"
    return (name, below(name)) if walks and not place.is_file() else (name,)
