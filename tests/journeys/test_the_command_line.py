"""The commands of the terminal reach the running daemon, and report it clearly if there is none."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.faults.fork_client import PRODUCT, fork
from tests.journeys.daemon_process import PROGRAM
from tests.journeys.harness import KNOWN_SECRET
from tests.journeys.test_receipts import FORGED, true_receipt
from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow


async def zeroclaw(world: World, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
    """Run a command with the daemon's configuration; return exit code, output and errors."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=world.daemon.environment | {"ZEROCLAW_CONFIG": str(world.config)},
    )
    output, errors = await process.communicate(stdin.encode())
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


BY_CGROUP = "each command is bounded by a cgroup of its own"
SECRETS = ("JOURNEY_MODEL_KEY", "JOURNEY_SIGNING_SECRET")


async def without_secrets(world: World, *arguments: str) -> tuple[int, str, str]:
    """Run a command in a shell that lacks what only the daemon's environment holds.

    Forked, for there are many, and each would load the program; the other tests execute it.
    """
    environment = world.daemon.environment
    log = world.directory / "command.log"
    log.unlink(missing_ok=True)
    process = await fork(
        (*PRODUCT, *arguments, "--config", str(world.config)),
        environment={name: value for name, value in environment.items() if name not in SECRETS},
        directory=world.directory,
        log=log,
    )
    output = b"".join([line async for line in process.lines()])
    return await process.wait(), output.decode(), log.read_text(encoding="utf-8")


async def test_commands_do_what_they_can_without_the_daemons_secrets(tmp_path: Path) -> None:
    """A service has them in an environment file; its administrator's shell does not (P8, P10)."""
    async with open_world(tmp_path) as world:
        await world.say("ann", f"the words are {KNOWN_SECRET}")
        await world.until(lambda: world.chat("ann").answers)
        code, output, errors = await without_secrets(world, "export", "ann")
        assert (code, errors, "the words are" in output, KNOWN_SECRET in output) == (
            0,
            "",
            True,
            False,
        )
        code, output, errors = await without_secrets(world, "doctor")
        assert (code, errors) == (0, "")
        assert "provider.api_key is not known in this shell; the running daemon has it" in output
        code, output, errors = await without_secrets(world, "check-config")
        assert (code, errors) == (0, "")
        assert "provider.api_key: not known in this shell; the running daemon has it" in output
        for arguments in (
            ("status",),
            ("grants", "list"),
            ("pair", "list"),
            ("policy", "show"),
            ("policy", "explain", "--tool", "shell"),
            ("models", "list"),
            ("config", "get", "provider.model"),
            ("reload",),
            ("backup", str(tmp_path / "copy")),
            ("halt",),
            ("resume",),
        ):
            code, _, errors = await without_secrets(world, *arguments)
            assert (arguments, code, errors) == (arguments, 0, "")
    code, output, errors = await without_secrets(world, "doctor")
    assert (code, "fail  secrets        provider.api_key: environment variable" in output) == (
        1,
        True,
    )
    code, output, errors = await without_secrets(world, "export", "ann")
    assert (code, "the words are" in output) == (0, True)
    assert errors.startswith("zeroclaw: provider.api_key: environment variable `JOURNEY_MODEL_KEY`")
    assert (await without_secrets(world, "check-config"))[0] == 2


async def test_status_of_a_running_daemon(tmp_path: Path) -> None:
    """For people, and for machines."""
    async with open_world(tmp_path) as world:
        code, output, _ = await zeroclaw(world, "status")
        assert (code, "loopback" in output) == (0, True)
        code, output, _ = await zeroclaw(world, "status", "--json")
        assert (code, isinstance(json.loads(output), dict)) == (0, True)


async def test_status_without_a_daemon(tmp_path: Path) -> None:
    """One line, exit code 3 (P10)."""
    async with open_world(tmp_path, start=False) as world:
        code, output, errors = await zeroclaw(world, "status")
        assert (code, output, len(errors.splitlines())) == (3, "", 1)
        assert "zeroclaw run" in errors


def bound_found_by(world: World) -> str:
    """What bounds a command's memory, as the daemon found it on this machine at its start."""
    (line,) = [row for row in world.daemon.stderr.splitlines() if " command_limits " in row]
    return BY_CGROUP if "by=cgroups" in line else line.partition("reason=")[2].strip("\"'")


async def test_doctor_says_why_it_is_silent(tmp_path: Path) -> None:
    """The daemon's own word on its channels and its errors, and the model's server is asked."""
    async with open_world(tmp_path) as world:
        await world.say("ann", "hi")
        await world.until(lambda: world.chat("ann").answers)
        request_count = len(world.model.requests)
        code, output, _ = await zeroclaw(world, "doctor", "--json")
        lines = {check["check"]: check for check in json.loads(output)["checks"]}
        assert (code, lines["daemon"]["verdict"]) == (0, "ok"), output
        assert lines["channels"]["text"].startswith("`loopback` up for ")
        assert lines["provider"]["text"].endswith("it answers")
        bound = bound_found_by(world)
        assert (bound != "", lines["sandbox"]["text"].endswith(bound)) == (True, True), output
        assert len(world.model.requests) == request_count
        assert (await zeroclaw(world, "halt"))[0] == 0
        _, output, _ = await zeroclaw(world, "doctor")
        assert "warn  halt" in output


async def test_halt_from_the_terminal_stops_everything(tmp_path: Path) -> None:
    """The same switch as in the chat."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("Once upon ", gate)
        await world.say("ann", "a story")
        await gate.reached()
        assert (await zeroclaw(world, "halt"))[0] == 0
        await world.until(lambda: any("halted" in text for text in world.chat("ann").answers))
        world.model.say("Here I am.", key="hello?")
        await world.platform.confirmed(await world.say("ann", "hello?"))
        assert (await zeroclaw(world, "resume"))[0] == 0
        await world.until(lambda: world.chat("ann").answers[-1] == "Here I am.")


async def test_receipts_are_marked_in_the_terminal(tmp_path: Path) -> None:
    """A true one is proven, a false one is called so, and the exit code says which. S2-18."""
    async with open_world(tmp_path) as world:
        receipt = await true_receipt(world)
        code, output, _ = await zeroclaw(world, "receipts", "verify", "-", stdin=receipt)
        assert (code, "peek" in output) == (0, True)
        code, output, errors = await zeroclaw(world, "receipts", "verify", "-", stdin=FORGED)
        assert code == 1
        assert "false" in (output + errors).lower()


async def test_policy_is_explained(tmp_path: Path) -> None:
    """May Ann use this tool, and why."""
    async with open_world(tmp_path, start=False) as world:
        code, output, _ = await zeroclaw(world, "policy", "show")
        assert (code, "supervised.reads" in output) == (0, True)


async def test_a_configuration_is_checked_without_a_daemon(tmp_path: Path) -> None:
    async with open_world(tmp_path, start=False) as world:
        assert (await zeroclaw(world, "check-config"))[0] == 0
        world.config.write_text("colour = 'red'\n", encoding="utf-8")
        code, _, errors = await zeroclaw(world, "check-config")
        assert (code, "colour" in errors) == (2, True)
