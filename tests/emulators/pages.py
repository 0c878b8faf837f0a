"""An HTTP server of prepared pages, with ranges, redirects and connections that are cut.

async with Pages() as server:
    server.pages["/m.gguf"] = Page(body=b"…", cut_after=10)
    … f"{server.url}/m.gguf" …
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.fakes.tcp_server import CuttingServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer of the server.

    Attributes:
        ranges: Obey `Range: bytes=N-`.
        cut_after: Cut the connection after this many bytes of the body.
        cut_when: Cut only after this is set; at once if None.
        hangs: Never answer.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    ranges: bool = True
    cut_after: int | None = None
    cut_when: asyncio.Event | None = None
    hangs: bool = False


@dataclass(eq=False, kw_only=True)
class Pages(CuttingServer):
    """The server, on a loopback port.

    Attributes:
        pages: By path; others are 404.
        requests: The path and headers of every request.
    """

    pages: dict[str, Page] = field(default_factory=dict[str, Page])
    requests: list[tuple[str, Mapping[str, str]]] = field(
        default_factory=list[tuple[str, Mapping[str, str]]]
    )

    @property
    def url(self) -> str:
        """`http://127.0.0.1:port`."""
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head.rstrip().split("\r\n")
        pairs = (header.partition(":") for header in rest)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        path = line.split(" ")[1]
        self.requests.append((path, headers))
        page = self.pages.get(path, Page(status=404))
        if page.hangs:
            await reader.read()
        writer.write(answer(page, headers.get("range", "")))
        await writer.drain()
        if page.cut_when is not None:
            await page.cut_when.wait()
        if writer.can_write_eof():
            writer.write_eof()


def answer(page: Page, range_: str) -> bytes:
    """Return the bytes of an answer, or of the requested range of it."""
    body, status = page.body, page.status
    headers = {"Content-Length": str(len(body)), "Connection": "close", **page.headers}
    start = int(range_.removeprefix("bytes=").removesuffix("-")) if range_ else 0
    if range_ and page.ranges and page.status == 200:
        status = 206 if start < len(body) else 416
        headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        body = body[start:]
        headers["Content-Length"] = str(len(body))
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body[: page.cut_after]
