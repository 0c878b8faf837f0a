"""The web page as the world of crash runs: its script's behaviour without a browser.

Its one person keeps messages until the daemon acknowledges them, and posts them again after a kill, with
the same ids; each connection begins anew, as after a reload.
"""

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import httpx

from tests.fakes.web_page import Stream
from tests.faults.on_terminal import RETRY_S, OnLine, OnLost, on_local
from tests.faults.platform_world import OpenWorld
from zeroclaw.cli.chat.connection import Line
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.control import DaemonUnreachable, request

_PATIENCE = httpx.Timeout(30, pool=None)


class Page:
    """A `Client`: logs in with each daemon, follows its stream, posts unacknowledged messages."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._numbers = itertools.count()
        self._files: dict[str, bytes] = {}
        self._has_pending = asyncio.Event()
        self.pending: dict[str, Line] = {}

    def say(self, text: str, files: Mapping[str, bytes] | None = None) -> str:
        claimed: list[Line] = []
        for name, content in (files or {}).items():
            key = f"uploaded-{next(self._numbers)}"
            self._files[key] = content
            claimed.append({"id": key, "name": name, "type": "", "size": len(content)})
        return self._keep({"text": text, "files": claimed})

    def press(self, approval: str, choice: str, card: str) -> str:
        return self._keep({"approval": approval, "choice": choice, "card": card})

    def retry(self, key: str, line: Line) -> None:
        self.pending[key] = line
        self._has_pending.set()

    def _keep(self, line: Line) -> str:
        key = f"made-by-page-{next(self._numbers)}"
        self.retry(key, {"id": key, **line})
        return key

    async def run(self, on_line: OnLine, on_lost: OnLost) -> None:
        """Stay connected, also to later daemons, until cancelled."""
        while True:
            with suppress(DaemonUnreachable):
                status = await request(self._data, {"call": "status"})
                try:
                    await self._talk(str(status["login_url"]), on_line)
                except* (httpx.HTTPError, StopAsyncIteration):
                    on_lost()
            await SystemClock().sleep(RETRY_S)

    async def _talk(self, login: str, on_line: OnLine) -> None:
        async with (
            httpx.AsyncClient(
                base_url=login.partition("?")[0],
                headers={"sec-fetch-site": "same-origin"},
                timeout=_PATIENCE,
                trust_env=False,
            ) as client,
            asyncio.TaskGroup() as group,
        ):
            (await client.get(login)).raise_for_status()
            async with client.stream("GET", "events") as answer:
                answer.raise_for_status()
                posting = group.create_task(self._post_all(client, on_line))
                try:
                    await self._hear_all(Stream(chunks=answer.aiter_bytes()), on_line)
                finally:
                    posting.cancel()

    async def _hear_all(self, stream: Stream, on_line: OnLine) -> None:
        while True:
            name, data = await stream.hear()
            on_line({"type": name, **data})
            for item in cast("list[Line]", data.get("items", ())):
                on_line({"type": "item", **item})
            if name == "snapshot":
                on_line({"type": "live"})

    async def _post_all(self, client: httpx.AsyncClient, on_line: OnLine) -> None:
        """Post pending messages, in order and one at a time, until each is acknowledged or refused."""
        while True:
            for key, line in tuple(self.pending.items()):
                for file in cast("list[Line]", line.get("files", ())):
                    name = str(file["id"])
                    await client.post(f"files/{name}", content=self._files[name])
                answer = await client.post("answers" if "choice" in line else "messages", json=line)
                if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
                    await SystemClock().sleep(RETRY_S)
                    break
                self.pending.pop(key)
                on_line({"type": "received"})
            self._has_pending.clear()
            if not self.pending:
                await self._has_pending.wait()


def on_web(*, channel: Mapping[str, object]) -> OpenWorld:
    """Return the opener of the page, with these keys of its configuration."""
    return on_local("web", Page, channel)
