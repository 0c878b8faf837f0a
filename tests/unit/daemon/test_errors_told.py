"""The running daemon tells its last errors over the control socket."""

from tests.fakes.house import World


async def test_a_daemon_tells_its_last_errors_and_why_it_has_no_shell(world: World) -> None:
    """Where logging was not set up, as in this test, there are none."""
    async with world.running() as house:
        told = await house.ask("errors")
        assert set(told) == {"errors", "model", "sandbox", "secrets", "watched"}
        assert told["errors"] == []
