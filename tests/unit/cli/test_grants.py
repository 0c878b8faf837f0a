"""`zeroclaw grants`: what it asks the daemon for, and what it prints."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner

from tests.unit.cli.test_switch_and_receipts import daemon
from zeroclaw.cli import root


async def run(place: Path, *arguments: str) -> tuple[int, str, str]:
    def invoke() -> tuple[int, str, str]:
        done = CliRunner().invoke(root, ["grants", *arguments, "--data-dir", str(place)])
        return done.exit_code, done.stdout, done.stderr

    return await asyncio.to_thread(invoke)


async def test_the_list_is_the_daemons(tmp_path: Path) -> None:
    """For people, and for machines."""
    reply: Mapping[str, object] = {"text": "- `7`: it", "changed": False, "grants": [{"id": "7"}]}
    async with daemon(tmp_path, "grants", reply) as asked:
        assert await run(tmp_path, "list") == (0, "- `7`: it\n", "")
        code, out, _ = await run(tmp_path, "list", "--json")
        assert (code, json.loads(out)) == (0, [{"id": "7"}])
        assert asked == [{"call": "grants", "words": "list"}] * 2


async def test_what_was_revoked_is_told(tmp_path: Path) -> None:
    """Several in one call; the daemon's sentences are printed."""
    reply: Mapping[str, object] = {"text": "`A`: revoked\n`B`: revoked", "changed": True}
    async with daemon(tmp_path, "grants", reply) as asked:
        assert await run(tmp_path, "revoke", "A", "B") == (0, "`A`: revoked\n`B`: revoked\n", "")
        assert asked == [{"call": "grants", "words": "revoke A B"}]


async def test_what_changed_nothing_fails(tmp_path: Path) -> None:
    """On stderr, exit code 1 (P10)."""
    reply: Mapping[str, object] = {"text": "`A` is no grant that holds", "changed": False}
    async with daemon(tmp_path, "grants", reply):
        told = await run(tmp_path, "revoke", "A")
        assert told == (1, "", "zeroclaw: `A` is no grant that holds\n")


async def test_without_a_daemon_nothing_is_done(tmp_path: Path) -> None:
    """Exit code 3, and what to do (P10)."""
    for arguments in (("list",), ("revoke", "A")):
        code, _, told = await run(tmp_path, *arguments)
        assert (code, "zeroclaw run" in told) == (3, True)
