"""Where the machine gives no way on, the daemon ends with one line that says what to do (P10)."""

import socket
import sqlite3
from pathlib import Path

import pytest

from tests.journeys.world import World, world

pytestmark = pytest.mark.slow


def last_words(here: World) -> list[str]:
    """The lines of standard error that are meant for a person."""
    return [line for line in here.daemon.stderr.splitlines() if line.startswith("zeroclaw: ")]


async def ends_with_one_line(here: World, *parts: str, exit_code: int = 1) -> None:
    """See the daemon end, and one line that holds all parts and no traceback."""
    await here.daemon.start()
    assert await here.daemon.ended() == exit_code, here.daemon.stderr
    (line,) = last_words(here)
    assert [part for part in parts if part not in line] == []
    assert "Traceback" not in here.daemon.stderr


async def test_a_port_in_use(tmp_path: Path) -> None:
    """The line names the address and the key to change."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with world(
            tmp_path, start=False, listener={"port": port}, channels={"web": {"enabled": True}}
        ) as here:
            await ends_with_one_line(here, str(port), "port")


async def test_a_second_daemon_on_the_same_data(tmp_path: Path) -> None:
    """The first goes on; the second says whose lock it is."""
    async with world(tmp_path) as here:
        second = await here.another()
        assert await second.ended() == 1
        assert "zeroclaw: " in second.stderr
        assert "Traceback" not in second.stderr
        here.model.say("Still here.")
        await here.say("ann", "hi")
        await here.answered("ann", "Still here.")


async def test_a_corrupt_database(tmp_path: Path) -> None:
    """It is left as it is for whoever wants to save it."""
    async with world(tmp_path) as here:
        await here.daemon.terminate()
        (database,) = here.data.glob("*.db")
        database.write_bytes(b"this is no database, whatever its name says" * 100)
        before = database.read_bytes()
        await ends_with_one_line(here, str(database))
        assert database.read_bytes() == before


async def test_a_database_that_somebody_else_locked(tmp_path: Path) -> None:
    """Another program holds the file: the line says so, and nothing is damaged."""
    async with world(tmp_path) as here:
        here.model.say("Hello.")
        await here.say("ann", "hi")
        await here.answered("ann", "Hello.")
        await here.daemon.terminate()
        (database,) = here.data.glob("*.db")
        holder = sqlite3.connect(database, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        await ends_with_one_line(here, "locked")
        holder.close()
        here.model.say("Again.", key="again")
        await here.daemon.start()
        await here.say("ann", "again")
        await here.answered("ann", "Hello.", "Again.")


async def test_a_database_of_a_newer_version(tmp_path: Path) -> None:
    """It is refused, not migrated back."""
    async with world(tmp_path) as here:
        await here.daemon.terminate()
        (database,) = here.data.glob("*.db")
        with sqlite3.connect(database) as connection:
            connection.execute("PRAGMA user_version = 9999")
        connection.close()
        await ends_with_one_line(here, "newer")


async def test_a_configuration_with_faults_tells_all_of_them(tmp_path: Path) -> None:
    """Each with its key path, all at once, and exit code 2."""
    async with world(
        tmp_path,
        start=False,
        provider={"stall_s": -1, "colour": "red"},
        channels={"ghost": {"kind": "ghost"}},
        runtime={"max_iterations": "many"},
    ) as here:
        await here.daemon.start()
        assert await here.daemon.ended() == 2, here.daemon.stderr
        told = "\n".join(last_words(here))
        paths = ("provider.stall_s", "provider.colour", "runtime.max_iterations")
        assert [path for path in paths if path not in told] == []
        assert "Traceback" not in here.daemon.stderr


async def test_a_secret_that_can_not_be_found(tmp_path: Path) -> None:
    """The line names the key and the variable."""
    provider = {"api_key": {"env": "NOBODY_SET_THIS"}}
    async with world(tmp_path, start=False, provider=provider) as here:
        await ends_with_one_line(here, "NOBODY_SET_THIS", "provider.api_key", exit_code=2)


async def test_a_channel_that_is_away_holds_up_no_other(tmp_path: Path) -> None:
    """One platform can't be reached; on the other people are answered, and `/status` tells (P9)."""
    other = {"kind": "loopback", "port": 9, "allowed_users": ["*"]}
    async with world(tmp_path, channels={"other": other}) as here:
        here.model.say("Hello.")
        await here.say("ann", "hi")
        await here.answered("ann", "Hello.")
        await here.say("olga", "/status")
        await here.until(lambda: here.chat("olga").answers)
        assert "other" in here.chat("olga").answers[0]


async def test_a_channel_that_was_cut_comes_back(tmp_path: Path) -> None:
    """What happened meanwhile is delivered and answered."""
    async with world(tmp_path) as here:
        await here.platform.down()
        await here.say("ann", "hi")
        here.model.say("Hello.")
        await here.platform.up()
        await here.answered("ann", "Hello.")
