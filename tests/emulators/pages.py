"""An HTTP server of prepared pages, with redirects and connections that are cut.

async with Pages() as server:
    server.pages["/page"] = Page(body=b"…", cut_after=10)
    … f"{server.url}/page" …
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is answered.

    Attributes:
        cut_after: The connection is cut after so many bytes of the body.
        hangs: Nothing is answered, ever.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut_after: int | None = None
    hangs: bool = False


@dataclass(eq=False, kw_only=True)
class Pages:
    """The server, on a loopback port.

    Attributes:
        pages: By path; others are 404.
        asked: Every request: its path and its headers.
    """

    pages: dict[str, Page] = field(default_factory=dict[str, Page])
    asked: list[tuple[str, Mapping[str, str]]] = field(
        default_factory=list[tuple[str, Mapping[str, str]]]
    )
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @property
    def url(self) -> str:
        """`http://127.0.0.1:port`."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *rest = head.rstrip().split("\r\n")
            pairs = (one.partition(":") for one in rest)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            path = line.split(" ")[1]
            self.asked.append((path, headers))
            page = self.pages.get(path, Page(status=404))
            if page.hangs:
                await reader.read()
            writer.write(answer(page))
            await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return  # a cancelled connection is how the server closes
        finally:
            writer.close()
            self._tasks.discard(task)


def answer(page: Page) -> bytes:
    """The bytes of an answer."""
    headers = {"Content-Length": str(len(page.body)), "Connection": "close", **page.headers}
    lines = [f"HTTP/1.1 {page.status} X", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + page.body[: page.cut_after]
