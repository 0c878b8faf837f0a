"""`zeroclaw try --run` opens the page only once the channels are up."""

from collections.abc import Mapping
from pathlib import Path

from tests.contract.terminal_harness import control_socket
from zeroclaw.cli.emulator import until_connected


async def test_a_page_is_opened_once_each_channel_is_up_or_has_failed(tmp_path: Path) -> None:
    """A mail from before the first connection counts as read, and would never be answered."""
    statuses = [
        {"email": {"condition": "starting"}, "terminal": {"condition": "up"}},
        {"email": {"condition": "starting"}, "terminal": {"condition": "up"}},
        {"email": {"condition": "waiting"}, "terminal": {"condition": "up"}},
    ]

    async def status(_request: Mapping[str, object]) -> Mapping[str, object]:
        return {"channels": statuses.pop(0)}

    async with control_socket(tmp_path) as control:
        control.call("status", status)
        await until_connected(tmp_path)
    assert statuses == []
