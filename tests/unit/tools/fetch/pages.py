"""Fetching in tests: the tool over a small web server on loopback, and a scripted resolver."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Self

from tests.fakes.plain_tool import tool_context
from zeroclaw.config.model import FetchSettings
from zeroclaw.host.aiohttp_client import AiohttpClient
from zeroclaw.host.resolver import NameUnknown
from zeroclaw.tool import Tool
from zeroclaw.tools.fetch import limits, tools


def answer(
    body: bytes | str = b"",
    content_type: str = "text/plain",
    *,
    status: str = "200 OK",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """A whole answer."""
    data = body.encode() if isinstance(body, str) else body
    named = {"Content-Type": content_type, "Content-Length": str(len(data)), **(headers or {})}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named.items() if value)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def redirect(location: str, status: str = "302 Found") -> bytes:
    return answer(status=status, headers={"Location": location})


def without_end(start: bytes, chunk: bytes = b"") -> Iterator[bytes]:
    """A chunk again and again until the client hangs up; nothing more after the start without one."""
    return chain([start], repeat(chunk)) if chunk else iter([start, b""])


@dataclass(kw_only=True)
class Pages:
    """Answers each path with what was put there, and keeps the heads of all requests.

    An empty chunk waits until the client is gone; a path with nothing is closed without an answer.
    """

    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    pages: dict[str, bytes | Iterator[bytes]] = field(
        default_factory=dict[str, "bytes | Iterator[bytes]"]
    )
    heads: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    async def __aenter__(self) -> Self:
        if self.tls is not None:
            self.tls.sni_callback = lambda _socket, name, _context: self.names.append(name or "")
        self._server = await asyncio.start_server(self._serve, self.host, 0, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            self.requested.set()
            page = self.pages.get(head.split(" ")[1], iter(()))
            for chunk in iter([page]) if isinstance(page, bytes) else page:
                if not chunk:
                    await reader.read()
                writer.write(chunk)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()
            self.closed.set()


@dataclass(kw_only=True)
class Names:
    """A resolver: each name's answers one after the other, the last of them for ever."""

    answers: Mapping[str, list[tuple[str, ...]]]
    requested: list[str] = field(default_factory=list[str])

    async def __call__(self, name: str) -> tuple[str, ...]:
        self.requested.append(name)
        if name not in self.answers:
            raise NameUnknown("name or service not known")
        known = self.answers[name]
        return known.pop(0) if len(known) > 1 else known[0]


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
