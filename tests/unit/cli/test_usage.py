"""`zeroclaw usage`: its call to the daemon, and its output."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fakes.manual_clock import ManualClock
from tests.unit.cli.test_switch_and_receipts import daemon
from zeroclaw.cli import root
from zeroclaw.stores.sqlite import open_store

USED = [
    {"day": "2026-01-01", "person": "ann", "model": "m", "turns": 2, "input_tokens": 1200}
    | {"output_tokens": 30, "cached_tokens": 200, "micros": 1_500_000},
    {"day": "2026-01-02", "person": "bob", "model": "m", "turns": 1, "input_tokens": 50}
    | {"unpriced_tokens": 50},
]


async def run(place: Path, *arguments: str) -> tuple[int, str]:
    def invoke() -> tuple[int, str]:
        done = CliRunner().invoke(root, ["usage", *arguments, "--data-dir", str(place)])
        return done.exit_code, done.stdout

    return await asyncio.to_thread(invoke)


@pytest.mark.parametrize(
    ("by", "first", "last"), [("day", "2026-01-01", "2026-01-02"), ("person", "ann", "bob")]
)
async def test_usage_is_summed_by_the_given_option(
    tmp_path: Path, by: str, first: str, last: str
) -> None:
    """One line each, and one for the total."""
    reply: Mapping[str, object] = {"used": USED}
    async with daemon(tmp_path, "usage", reply) as calls:
        code, out = await run(tmp_path, "--by", by, "--days", "7")
        assert calls == [{"call": "usage", "days": 7}]
    lines = [line.split() for line in out.splitlines()]
    assert (code, lines[0][:2]) == (0, [by, "turns"])
    assert lines[1] == [first, "2", "1,200", "200", "30", "1.5000"]
    assert lines[2] == [last, "1", "50", "0", "0", "0.0000"]
    assert lines[3] == ["all", "3", "1,250", "200", "30", "1.5000"]
    assert "no price is known for 50 tokens" in out
    assert "list prices" in out


async def test_a_models_usage_is_one_line(tmp_path: Path) -> None:
    """The sum of all people."""
    async with daemon(tmp_path, "usage", {"used": USED}):
        _, out = await run(tmp_path, "--by", "model")
    assert [line.split()[:2] for line in out.splitlines()[1:3]] == [["m", "3"], ["all", "3"]]


async def test_json_has_all_rows(tmp_path: Path) -> None:
    """By day, person and model."""
    async with daemon(tmp_path, "usage", {"used": USED}):
        _, out = await run(tmp_path, "--json")
    assert [row["person"] for row in json.loads(out)] == ["ann", "bob"]


async def test_it_works_without_a_daemon(tmp_path: Path) -> None:
    """It reads the store if there is one; a mistyped directory gets none, and reading makes no
    file."""
    assert await run(tmp_path / "mistyped") == (1, "")
    assert await asyncio.to_thread(os.listdir, tmp_path) == []
    await (await open_store(tmp_path, clock=ManualClock())).aclose()
    assert await run(tmp_path) == (0, "no model was used\n")
