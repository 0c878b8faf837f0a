"""The commands of the terminal reach the running daemon, and say what is wrong when there is none."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.journeys.backstage import KNOWN_SECRET
from tests.journeys.daemon_process import PROGRAM
from tests.journeys.test_receipts import FORGED, true_receipt
from tests.journeys.world import World, world

pytestmark = pytest.mark.slow


async def zeroclaw(here: World, *arguments: str, given: str = "") -> tuple[int, str, str]:
    """Run a command with the daemon's configuration; return exit code, output and errors."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=here.daemon.environment | {"ZEROCLAW_CONFIG": str(here.config)},
    )
    out, err = await process.communicate(given.encode())
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


BY_CGROUP = "each command is bounded by a cgroup of its own"
SECRETS = ("JOURNEY_MODEL_KEY", "JOURNEY_SIGNING_SECRET")


async def without_secrets(here: World, *arguments: str) -> tuple[int, str, str]:
    """Run a command in a shell that lacks what only the daemon's environment holds."""
    mine = here.daemon.environment
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, *arguments, "--config", str(here.config)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: value for name, value in mine.items() if name not in SECRETS},
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_commands_do_what_they_can_without_the_daemons_secrets(tmp_path: Path) -> None:
    """A service has them in an environment file; whoever looks after it has not (P8, P10)."""
    async with world(tmp_path) as here:
        await here.say("ann", f"the words are {KNOWN_SECRET}")
        await here.until(lambda: here.chat("ann").answers)
        code, out, err = await without_secrets(here, "export", "ann")
        assert (code, err, "the words are" in out, KNOWN_SECRET in out) == (0, "", True, False)
        code, out, err = await without_secrets(here, "doctor")
        assert (code, err) == (0, "")
        assert "provider.api_key is not known in this shell; the running daemon has it" in out
        code, out, err = await without_secrets(here, "check-config")
        assert (code, err) == (0, "")
        assert "provider.api_key: not known in this shell; the running daemon has it" in out
        for words in (
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
            code, _, err = await without_secrets(here, *words)
            assert (words, code, err) == (words, 0, "")
    code, out, err = await without_secrets(here, "doctor")
    assert (code, "fail  secrets        provider.api_key: environment variable" in out) == (1, True)
    code, out, err = await without_secrets(here, "export", "ann")
    assert (code, "the words are" in out) == (0, True)
    assert err.startswith("zeroclaw: provider.api_key: environment variable `JOURNEY_MODEL_KEY`")
    assert (await without_secrets(here, "check-config"))[0] == 2


async def test_status_of_a_running_daemon(tmp_path: Path) -> None:
    """For people, and for machines."""
    async with world(tmp_path) as here:
        code, out, _ = await zeroclaw(here, "status")
        assert (code, "loopback" in out) == (0, True)
        code, out, _ = await zeroclaw(here, "status", "--json")
        assert (code, isinstance(json.loads(out), dict)) == (0, True)


async def test_status_without_a_daemon(tmp_path: Path) -> None:
    """One line, exit code 3 (P10)."""
    async with world(tmp_path, start=False) as here:
        code, out, err = await zeroclaw(here, "status")
        assert (code, out, len(err.splitlines())) == (3, "", 1)
        assert "zeroclaw run" in err


def bound_found_by(here: World) -> str:
    """What bounds a command's memory, as the daemon found it on this machine at its start."""
    (line,) = [one for one in here.daemon.stderr.splitlines() if " commands_bounded " in one]
    return BY_CGROUP if "by=cgroups" in line else line.partition("why=")[2].strip("\"'")


async def test_doctor_says_why_it_is_silent(tmp_path: Path) -> None:
    """The daemon's own word on its channels and its errors, and the model's server is asked."""
    async with world(tmp_path) as here:
        await here.say("ann", "hi")
        await here.until(lambda: here.chat("ann").answers)
        asked = len(here.model.requests)
        code, out, _ = await zeroclaw(here, "doctor", "--json")
        lines = {one["check"]: one for one in json.loads(out)["checks"]}
        assert (code, lines["daemon"]["verdict"]) == (0, "ok"), out
        assert lines["channels"]["text"].startswith("`loopback` up for ")
        assert lines["provider"]["text"].endswith("it answers")
        bound = bound_found_by(here)
        assert (bound != "", lines["sandbox"]["text"].endswith(bound)) == (True, True), out
        assert len(here.model.requests) == asked
        assert (await zeroclaw(here, "halt"))[0] == 0
        _, out, _ = await zeroclaw(here, "doctor")
        assert "warn  halt" in out


async def test_halt_from_the_terminal_stops_everything(tmp_path: Path) -> None:
    """The same switch as in the chat."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("Once upon ", gate)
        await here.say("ann", "a story")
        await gate.reached()
        assert (await zeroclaw(here, "halt"))[0] == 0
        await here.until(lambda: any("halted" in text for text in here.chat("ann").answers))
        here.model.say("Here I am.", key="hello?")
        await here.platform.confirmed(await here.say("ann", "hello?"))
        assert (await zeroclaw(here, "resume"))[0] == 0
        await here.until(lambda: here.chat("ann").answers[-1] == "Here I am.")


async def test_receipts_are_told_apart_in_the_terminal(tmp_path: Path) -> None:
    """A true one is proven, a false one is called so, and the exit code says which. S2-18."""
    async with world(tmp_path) as here:
        receipt = await true_receipt(here)
        code, out, _ = await zeroclaw(here, "receipts", "verify", "-", given=receipt)
        assert (code, "peek" in out) == (0, True)
        code, out, err = await zeroclaw(here, "receipts", "verify", "-", given=FORGED)
        assert code == 1
        assert "false" in (out + err).lower()


async def test_policy_is_explained(tmp_path: Path) -> None:
    """May Ann use this tool, and why."""
    async with world(tmp_path, start=False) as here:
        code, out, _ = await zeroclaw(here, "policy", "show")
        assert (code, "supervised.reads" in out) == (0, True)


async def test_a_configuration_is_checked_without_a_daemon(tmp_path: Path) -> None:
    async with world(tmp_path, start=False) as here:
        assert (await zeroclaw(here, "check-config"))[0] == 0
        here.config.write_text("colour = 'red'\n", encoding="utf-8")
        code, _, err = await zeroclaw(here, "check-config")
        assert (code, "colour" in err) == (2, True)
