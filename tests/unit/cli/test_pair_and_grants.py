"""`zeroclaw pair` and `zeroclaw grants`: their calls to the daemon, and their output."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fakes.manual_clock import ManualClock
from tests.unit.cli.test_switch_and_receipts import daemon
from zeroclaw.cli import root
from zeroclaw.envelope import Address, ApprovalId
from zeroclaw.host.clock import SystemClock
from zeroclaw.inbound.identity import Person, person_put
from zeroclaw.inbound.pairing import PairingRequest, to_put
from zeroclaw.store import Commit, DurablePoint, Put
from zeroclaw.stores.sqlite import open_store


async def run(place: Path, *arguments: str) -> tuple[int, str, str]:
    def invoke() -> tuple[int, str, str]:
        done = CliRunner().invoke(root, [*arguments, "--data-dir", str(place)])
        return done.exit_code, done.stdout, done.stderr

    return await asyncio.to_thread(invoke)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("pair", ("approve", "chat:7")),
        ("pair", ("deny", "chat:7")),
        ("pair", ("revoke", "chat:7")),
        ("grants", ("revoke", "A", "B")),
    ],
)
async def test_the_daemons_result_is_printed(
    tmp_path: Path, command: str, words: tuple[str, ...]
) -> None:
    """The daemon's sentences are printed. A command that changes nothing fails on stderr (P10)."""
    async with daemon(tmp_path, command, {"text": "done: it\nand that", "changed": True}) as calls:
        assert await run(tmp_path, command, *words) == (0, "done: it\nand that\n", "")
        assert calls == [{"call": command, "words": " ".join(words)}]
    async with daemon(tmp_path, command, {"text": "no such thing", "changed": False}):
        assert await run(tmp_path, command, *words) == (1, "", "zeroclaw: no such thing\n")


async def test_a_command_in_the_daemons_answer_is_one_of_the_shell(tmp_path: Path) -> None:
    """The daemon names the command of a chat, for the chats (P10)."""
    reply = {"text": "`x` does not wait; `/pair list` shows who does", "changed": False}
    async with daemon(tmp_path, "pair", reply):
        code, _, message = await run(tmp_path, "pair", "approve", "x")
    hint = f"zeroclaw pair list --data-dir {tmp_path}` shows who does\n"
    assert (code, message.endswith(hint)) == (1, True)


@pytest.mark.parametrize("words", ["pair revoke ann", "grants list", "grants revoke A"])
async def test_without_a_daemon_nothing_is_changed(tmp_path: Path, words: str) -> None:
    """The exit code is 3: only the daemon knows people and grants (P10)."""
    code, _, message = await run(tmp_path, *words.split())
    assert (code, "zeroclaw run" in message) == (3, True)


async def test_the_lists_come_from_the_daemon(tmp_path: Path) -> None:
    """While one runs; grants as text, and as JSON."""
    async with daemon(tmp_path, "pair", {"text": "- somebody", "changed": False}) as calls:
        assert await run(tmp_path, "pair", "list") == (0, "- somebody\n", "")
        assert calls == [{"call": "pair", "words": "list"}]
    reply: Mapping[str, object] = {"text": "- `7`: it", "changed": False, "grants": [{"id": "7"}]}
    async with daemon(tmp_path, "grants", reply) as calls:
        assert await run(tmp_path, "grants", "list") == (0, "- `7`: it\n", "")
        code, out, _ = await run(tmp_path, "grants", "list", "--json")
        assert (code, json.loads(out)) == (0, [{"id": "7"}])
        assert calls == [{"call": "grants", "words": "list"}] * 2


async def test_without_a_daemon_the_list_is_read_from_the_store(tmp_path: Path) -> None:
    """Pairing requests, and decisions."""
    now = SystemClock().now()
    home = Address(channel="chat", account="bot", chat="7", direct=True)
    stranger = PairingRequest(
        id=ApprovalId("token"),
        channel="chat",
        sender="7",
        display="Mallory",
        address=home,
        salt="s",
        code_hash="h",
        asked_at=now,
        deadline_at=now + timedelta(days=1),
    )
    known = Person(
        id="chat:8",
        display="Trudy",
        state="admitted",
        by="Ada",
        at=datetime(2026, 1, 1, 12, tzinfo=UTC),
    )
    await stored(tmp_path, to_put(stranger), person_put(known))
    code, out, _ = await run(tmp_path, "pair", "list")
    first, second = out.splitlines()
    assert (code, first.startswith('- `chat:7` ("Mallory") wants to talk')) == (0, True)
    assert second == '- `chat:8` ("Trudy"): admitted by Ada, 2026-01-01 12:00 UTC'


async def stored(place: Path, *puts: Put) -> None:
    store = await open_store(place, clock=ManualClock())
    try:
        await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=puts))
    finally:
        await store.aclose()
