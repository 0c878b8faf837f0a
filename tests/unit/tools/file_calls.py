"""Calls of the file tools with small caps, as the gate makes them."""

from collections.abc import Callable
from pathlib import Path

from tests.fakes.plain_tool import tool_context
from zeroclaw.config import model
from zeroclaw.tool import Tool
from zeroclaw.tools.files import FilesSettings, tools
from zeroclaw.value import replace

SETTINGS = FilesSettings(
    limits=model.FilesSettings.model_construct(max_read_bytes=1000, max_write_bytes=1000),
    max_entries=5,
    max_search_bytes=5000,
    max_searched_file_bytes=2000,
)


def tool(name: str, settings: FilesSettings = SETTINGS) -> Tool:
    [found] = [tool for tool in tools(settings) if tool.spec.name == name]
    return found


async def call(workspace: Path, name: str, **arguments: object) -> str:
    """Check and run, as the gate does."""
    return await call_with(SETTINGS, workspace, name, **arguments)


async def call_with(
    settings: FilesSettings, workspace: Path, name: str, **arguments: object
) -> str:
    """The same, with other settings."""
    file_tool = tool(name, replace(settings, hidden=(workspace / ".env",)))
    return (await file_tool.run(file_tool.check(arguments), tool_context(workspace))).text


async def permitted_call(
    workspace: Path, permits: Callable[[str], bool], name: str, **arguments: object
) -> str:
    """The same, of what the policy narrowed."""
    file_tool, context = tool(name), tool_context(workspace, permits=permits)
    return (await file_tool.run(file_tool.check(arguments), context)).text


async def resources(workspace: Path, path: str, name: str = "read_file") -> tuple[str, ...]:
    file_tool = tool(name)
    return await file_tool.resources(file_tool.check({"path": path}), tool_context(workspace))
