"""`zeroclaw try --run` opens the page only once the channels are up."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from tests.fakes.house_parts import Facts
from zeroclaw.cli.emulator import until_connected
from zeroclaw.host.control import Control


async def test_a_page_is_opened_once_each_channel_is_up_or_has_failed(tmp_path: Path) -> None:
    """A mail from before the first connection counts as read, and would never be answered."""
    statuses = [
        {"email": {"condition": "starting"}, "terminal": {"condition": "up"}},
        {"email": {"condition": "starting"}, "terminal": {"condition": "up"}},
        {"email": {"condition": "waiting"}, "terminal": {"condition": "up"}},
    ]

    async def status(_request: Mapping[str, object]) -> Mapping[str, object]:
        return {"channels": statuses.pop(0)}

    control, ready = Control(tmp_path, log=Facts()), asyncio.Event()
    control.call("status", status)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(control.serve(ready.set))
        await ready.wait()
        await until_connected(tmp_path)
        serving.cancel()
    assert statuses == []
