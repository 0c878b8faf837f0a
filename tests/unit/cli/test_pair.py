"""`zeroclaw pair`: what it asks the daemon for, and the list where none runs."""

import asyncio
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
from zeroclaw.inbound.identity import Known, known_put
from zeroclaw.inbound.pairing import Stranger, to_put
from zeroclaw.store import Commit, DurablePoint, Put
from zeroclaw.stores.sqlite import open_store


async def run(place: Path, *arguments: str) -> tuple[int, str, str]:
    def invoke() -> tuple[int, str, str]:
        done = CliRunner().invoke(root, ["pair", *arguments, "--data-dir", str(place)])
        return done.exit_code, done.stdout, done.stderr

    return await asyncio.to_thread(invoke)


@pytest.mark.parametrize("what", ["approve", "deny", "revoke"])
async def test_what_was_done_is_told(tmp_path: Path, what: str) -> None:
    """The daemon does it; its sentence is printed."""
    reply: Mapping[str, object] = {"text": "done: it", "changed": True}
    async with daemon(tmp_path, "pair", reply) as asked:
        assert await run(tmp_path, what, "chat:7") == (0, "done: it\n", "")
        assert asked == [{"call": "pair", "words": f"{what} chat:7"}]


async def test_what_changed_nothing_fails(tmp_path: Path) -> None:
    """One line on stderr, exit code 1 (P10)."""
    reply: Mapping[str, object] = {"text": "nobody has the code `ABCD2345`", "changed": False}
    async with daemon(tmp_path, "pair", reply):
        told = await run(tmp_path, "approve", "ABCD2345")
        assert told == (1, "", "zeroclaw: nobody has the code `ABCD2345`\n")


async def test_without_a_daemon_nothing_is_changed(tmp_path: Path) -> None:
    """Exit code 3; it keeps in mind who is who (P10)."""
    code, _, told = await run(tmp_path, "revoke", "ann")
    assert (code, "zeroclaw run" in told) == (3, True)


async def test_the_list_is_the_daemons(tmp_path: Path) -> None:
    """While one runs."""
    async with daemon(tmp_path, "pair", {"text": "- somebody", "changed": False}) as asked:
        assert await run(tmp_path, "list") == (0, "- somebody\n", "")
        assert asked == [{"call": "pair", "words": "list"}]


async def test_the_list_is_read_from_the_store_where_no_daemon_runs(tmp_path: Path) -> None:
    """Who waits, and what was decided."""
    now = SystemClock().now()
    home = Address(channel="chat", account="bot", chat="7", direct=True)
    stranger = Stranger(
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
    known = Known(
        id="chat:8",
        display="Trudy",
        state="admitted",
        by="Ada",
        at=datetime(2026, 1, 1, 12, tzinfo=UTC),
    )
    await stored(tmp_path, to_put(stranger, expect=0), known_put(known, expect=0))
    code, out, _ = await run(tmp_path, "list")
    first, second = out.splitlines()
    assert (code, first.startswith('- `chat:7` ("Mallory") wants to talk')) == (0, True)
    assert second == '- `chat:8` ("Trudy"): admitted by Ada, 2026-01-01 12:00 UTC'


async def stored(place: Path, *puts: Put) -> None:
    store = await open_store(place, clock=ManualClock())
    try:
        await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=puts))
    finally:
        await store.aclose()
