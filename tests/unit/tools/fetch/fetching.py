"""Fetching in tests: the tool over a server of the test's own, which the settings open."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fakes.tool_calls import tool_context
from tests.unit.tools.fetch.pages import Names, Pages
from zeroclaw.config.model import FetchSettings
from zeroclaw.host.aiohttp_client import AiohttpClient
from zeroclaw.tool import Tool
from zeroclaw.tools.fetch import limits, tools

HERE = {"wiki.test": [("127.0.0.1",)], "other.test": [("127.0.0.1",)]}
OPEN = FetchSettings(max_bytes=1000, timeout_s=60.0, allow=("127.0.0.1",))


@asynccontextmanager
async def opened(
    server: Pages, settings: FetchSettings = OPEN, names: Names | None = None, authorities: str = ""
) -> AsyncGenerator[Tool, None]:
    """The tool, with the server's port allowed and its client closed afterwards."""
    settings = settings.model_copy(update={"ports": (80, 443, server.port)})
    trusted = ssl.create_default_context(cafile=authorities) if authorities else None
    http = AiohttpClient(limits(settings), trusted=trusted)
    [tool] = tools(settings, http=http, resolve=names or Names(answers=HERE))
    try:
        yield tool
    finally:
        await http.aclose()


async def fetch(tool: Tool, url: str, *, links: bool = False) -> str:
    """Check, name and run, as the gate does."""
    arguments = tool.check({"url": url, "links": links})
    context = tool_context(Path("/nowhere"))
    await tool.resources(arguments, context)
    return (await tool.run(arguments, context)).text
