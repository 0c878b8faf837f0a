"""A kill at any instant, or a torn write-ahead log, leaves all of a commit or none of it."""

import hashlib
import random
import shutil
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.fakes.manual_clock import ManualClock
from tests.unit.stores.sqlite import committing_child
from tests.unit.stores.sqlite.committing_child import named
from tests.unit.stores.sqlite.groups import damage
from zeroclaw.errors import AlreadyClaimed
from zeroclaw.store import LogKind, Query, RowKind
from zeroclaw.stores.sqlite import open_store
from zeroclaw.stores.sqlite.files import FILE_NAME

KILLS = 12
TEARS = 40
SEED = 20261121
ROOT = Path(__file__).parents[4]


async def whole_commits(directory: Path) -> set[str]:
    """The names that were committed; fails where one was committed in part."""
    async with aclosing(await open_store(directory, clock=ManualClock())) as store:
        assert damage(directory) == "ok"
        names = {row.key for row in await store.select(Query(kind=RowKind.COUNTER, limit=100_000))}
        logged: list[str] = []
        for stream in await store.streams(LogKind.JOURNAL):
            entries = await store.read(LogKind.JOURNAL, stream)
            assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
            logged.extend(entry.body.decode() for entry in entries)
        assert sorted(logged) == sorted(names)
        for name in names:
            assert await store.blob(hashlib.sha256(name.encode()).hexdigest()) == name.encode()
        for name in sorted(names)[:20]:
            with pytest.raises(AlreadyClaimed):
                await store.commit(named(name, "again"))
    return names


def killed(directory: Path, start: str, returned: int) -> set[str]:
    """Commit in a process of its own, kill it after so many have returned; returns which."""
    command = [sys.executable, "-m", committing_child.__name__, str(directory), start]
    names: set[str] = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.endswith(b"\n"):  # the last one may be cut
                names.add(line.decode().strip())
            if len(names) == returned:
                child.kill()
    assert child.returncode == -9
    return names


@pytest.mark.slow
async def test_what_was_answered_survives_a_kill_and_nothing_is_half(tmp_path: Path) -> None:
    """Killed again and again at any instant, the store keeps every commit that returned (P1)."""
    seeded = random.Random(SEED)
    answered: set[str] = set()
    for start in range(KILLS):
        answered |= killed(tmp_path, str(start), seeded.randrange(1, 120))
        assert answered <= await whole_commits(tmp_path)


@pytest.mark.slow
async def test_a_torn_write_ahead_log_ends_at_a_commit(tmp_path: Path) -> None:
    """Wherever the power goes, what is there is a whole beginning of what was committed."""
    seeded = random.Random(SEED)
    names = [f"{number:02}" for number in range(30)]
    source = tmp_path / "source"
    found: list[int] = []
    async with aclosing(await open_store(source, clock=ManualClock())) as store:
        for name in names:
            await store.commit(named(name, "s"))
        database = (source / FILE_NAME).read_bytes()
        log = (source / f"{FILE_NAME}-wal").read_bytes()
    for tear in range(TEARS):
        torn = tmp_path / "torn"
        torn.mkdir()
        at = seeded.randrange(len(log) + 1)
        rest = bytes(len(log) - at) if tear % 2 else b""  # a hole, or the end of the file
        (torn / FILE_NAME).write_bytes(database)
        (torn / f"{FILE_NAME}-wal").write_bytes(log[:at] + rest)
        try:
            kept = await whole_commits(torn)
        finally:
            shutil.rmtree(torn)
        assert kept == set(names[: len(kept)])
        found.append(len(kept))

    assert len(set(found)) > 10  # the tears really fell between commits
