"""Where the machine gives no way on, the daemon ends with one line that says what to do (P10)."""

import socket
import sqlite3
from pathlib import Path

import pytest

from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow


def final_lines(world: World) -> list[str]:
    """The lines of standard error that are meant for a person."""
    return [line for line in world.daemon.stderr.splitlines() if line.startswith("zeroclaw: ")]


async def ends_with_one_line(world: World, *parts: str, exit_code: int = 1) -> None:
    """See the daemon end, and one line that holds all parts and no traceback."""
    await world.daemon.start()
    assert await world.daemon.wait() == exit_code, world.daemon.stderr
    (line,) = final_lines(world)
    assert [part for part in parts if part not in line] == []
    assert "Traceback" not in world.daemon.stderr


async def test_a_port_in_use(tmp_path: Path) -> None:
    """The line names the address and the key to change."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        async with open_world(
            tmp_path, start=False, listener={"port": port}, channels={"web": {"enabled": True}}
        ) as world:
            await ends_with_one_line(world, str(port), "port")


async def test_a_second_daemon_on_the_same_data(tmp_path: Path) -> None:
    """The first goes on; the second says whose lock it is."""
    async with open_world(tmp_path) as world:
        second = await world.second_daemon()
        assert await second.wait() == 1
        assert "zeroclaw: " in second.stderr
        assert "Traceback" not in second.stderr
        world.model.say("Still here.")
        await world.say("ann", "hi")
        await world.expect("ann", "Still here.")


async def test_a_corrupt_database(tmp_path: Path) -> None:
    """The file is left as it is, for its owner to rescue."""
    async with open_world(tmp_path) as world:
        await world.daemon.terminate()
        (database,) = world.data.glob("*.db")
        database.write_bytes(b"this is no database, whatever its name says" * 100)
        before = database.read_bytes()
        await ends_with_one_line(world, str(database))
        assert database.read_bytes() == before


async def test_a_database_that_another_program_locked(tmp_path: Path) -> None:
    """Another program holds the file: the line says so, and nothing is damaged."""
    async with open_world(tmp_path) as world:
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await world.expect("ann", "Hello.")
        await world.daemon.terminate()
        (database,) = world.data.glob("*.db")
        holder = sqlite3.connect(database, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        await ends_with_one_line(world, "locked")
        holder.close()
        world.model.say("Again.", key="again")
        await world.daemon.start()
        await world.say("ann", "again")
        await world.expect("ann", "Hello.", "Again.")


async def test_a_database_of_a_newer_version(tmp_path: Path) -> None:
    """It is refused, not migrated back."""
    async with open_world(tmp_path) as world:
        await world.daemon.terminate()
        (database,) = world.data.glob("*.db")
        with sqlite3.connect(database) as connection:
            connection.execute("PRAGMA user_version = 9999")
        connection.close()
        await ends_with_one_line(world, "newer")


async def test_a_configuration_with_faults_tells_all_of_them(tmp_path: Path) -> None:
    """Each with its key path, all at once, and exit code 2."""
    async with open_world(
        tmp_path,
        start=False,
        provider={"stall_s": -1, "colour": "red"},
        channels={"ghost": {"kind": "ghost"}},
        runtime={"max_iterations": "many"},
    ) as world:
        await world.daemon.start()
        assert await world.daemon.wait() == 2, world.daemon.stderr
        output = "\n".join(final_lines(world))
        paths = ("provider.stall_s", "provider.colour", "runtime.max_iterations")
        assert [path for path in paths if path not in output] == []
        assert "Traceback" not in world.daemon.stderr


async def test_a_secret_that_can_not_be_found(tmp_path: Path) -> None:
    """The line names the key and the variable."""
    provider = {"api_key": {"env": "NOBODY_SET_THIS"}}
    async with open_world(tmp_path, start=False, provider=provider) as world:
        await ends_with_one_line(world, "NOBODY_SET_THIS", "provider.api_key", exit_code=2)


async def test_a_channel_that_is_away_holds_up_no_other(tmp_path: Path) -> None:
    """One platform can't be reached; the other is answered, and `/status` reports the first (P9)."""
    unreachable = {"kind": "loopback", "port": 9, "allowed_users": ["*"]}
    async with open_world(tmp_path, channels={"other": unreachable}) as world:
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await world.expect("ann", "Hello.")
        await world.say("olga", "/status")
        await world.until(lambda: world.chat("olga").answers)
        assert "other" in world.chat("olga").answers[0]


async def test_a_channel_that_was_cut_comes_back(tmp_path: Path) -> None:
    """Events of meanwhile are delivered and answered."""
    async with open_world(tmp_path) as world:
        await world.platform.down()
        await world.say("ann", "hi")
        world.model.say("Hello.")
        await world.platform.up()
        await world.expect("ann", "Hello.")
