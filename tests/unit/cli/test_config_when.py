"""When a change of the configuration holds, said where it is made."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from zeroclaw.cli.config import when_it_holds
from zeroclaw.host.control import Control

ROUNDS = 20
"""Of the loop; more than one connection takes from its accepting to its end."""


@asynccontextmanager
async def listening(directory: Path) -> AsyncGenerator[None]:
    """A daemon's socket, and nothing behind it."""
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        control = Control(directory, log=lambda _event, **_fields: None)
        serving = group.create_task(control.serve(ready.set))
        await ready.wait()
        yield
        for _ in range(ROUNDS):  # whoever has connected is accepted, heard and let go
            await asyncio.sleep(0)
        serving.cancel()


BEFORE = 'autonomy = "supervised"\n'


@pytest.mark.parametrize(
    ("after", "runs", "stopped"),
    [
        ('autonomy = "full"\n', "`zeroclaw reload` puts it in force", "when zeroclaw is started"),
        ("[provider]\nattempts = 2\n", "when that is started again", "when zeroclaw is started"),
        ("", "nothing changes", "nothing changes"),
        ("autonomy = 3\n", "has no fault", "has no fault"),
    ],
)
async def test_it_is_said_whether_a_reload_is_enough(
    tmp_path: Path, after: str, runs: str, stopped: str
) -> None:
    """By what differs, and by whether a daemon runs at all."""
    assert stopped in await asyncio.to_thread(when_it_holds, BEFORE, after, tmp_path)
    async with listening(tmp_path):
        assert runs in await asyncio.to_thread(when_it_holds, BEFORE, after, tmp_path)
