"""The file tools that read, write and edit."""

import asyncio
import os
import resource
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.tools.file_calls import SETTINGS, call, call_with, resources
from zeroclaw.config import model
from zeroclaw.errors import ToolFailed
from zeroclaw.host.quotas import Quota
from zeroclaw.redact import MARKER
from zeroclaw.tools.files import FilesSettings, content
from zeroclaw.tools.files.workspace import RunContext
from zeroclaw.value import replace

# --- reading -------------------------------------------------------------------------------------


async def test_a_file_is_read_as_it_is(workspace: Path) -> None:
    """The content comes without decoration, so that an edit can quote it."""
    (workspace / "a").write_bytes("één\r\n\ttwo\n".encode())
    assert await call(workspace, "read_file", path="a") == "één\r\n\ttwo\n"


@pytest.mark.parametrize("path", ["d/a", "./d//a", "/workspace/d/a", "d/./a"])
async def test_a_file_has_several_names(workspace: Path, path: str) -> None:
    """The name that a command in the sandbox sees works as well; all name one resource."""
    (workspace / "d").mkdir()
    (workspace / "d" / "a").write_text("x", encoding="utf-8")
    assert await call(workspace, "read_file", path=path) == "x"
    assert await resources(workspace, path) == (f"file:{workspace}/d/a",)


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({"first_line": 2, "max_lines": 1}, "two\n\n[there is more: go on with first_line=3]"),
        ({"first_line": 3}, "three"),
        ({"first_line": 4}, "[the file is empty from line 4 on]"),
    ],
)
async def test_a_long_file_is_read_in_pieces(
    workspace: Path, arguments: dict[str, object], answer: str
) -> None:
    """A note says how to get the next piece."""
    (workspace / "a").write_text("one\ntwo\nthree", encoding="utf-8")
    assert await call(workspace, "read_file", path="a", **arguments) == answer


@pytest.mark.parametrize("block_bytes", [1, 3, 4, 5])
async def test_lines_are_counted_across_blocks(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    """A file is skipped through in blocks: line by line, 64 MiB of line ends took 16 s."""
    monkeypatch.setattr(content, "_BLOCK_BYTES", block_bytes)
    lines = ["one", "", "", "four", "five"]
    (workspace / "a").write_text("\n".join(lines), encoding="utf-8")
    found = [
        await call(workspace, "read_file", path="a", first_line=number) for number in range(1, 6)
    ]
    assert found == ["\n".join(lines[start:]) for start in range(5)]
    nothing = await call(workspace, "read_file", path="a", first_line=6)
    assert nothing == "[the file is empty from line 6 on]"


async def test_an_answer_is_bounded_for_any_file(workspace: Path) -> None:
    """A line larger than an answer is cut, and the answer says so."""
    (workspace / "a").write_text("x" * 5000 + "\nend", encoding="utf-8")
    assert await call(workspace, "read_file", path="a") == (
        "x" * 1000
        + "\n[cut within line 1, where one answer is full]"
        + "\n[there is more: go on with first_line=2]"
    )
    assert await call(workspace, "read_file", path="a", first_line=2) == "end"


async def test_a_huge_file_is_read_at_its_beginning_and_not_searched_for_ever(
    workspace: Path,
) -> None:
    """A sparse gigabyte costs nothing; a line far into it is for the shell."""
    with (workspace / "a").open("wb") as file:
        file.write(b"first\n" + b"x" * 9000)
        file.truncate(1_000_000_000)
    assert (await call(workspace, "read_file", path="a", max_lines=1)).startswith("first\n")
    with pytest.raises(ToolFailed, match="line 3 is too far into the file"):
        await call(workspace, "read_file", path="a", first_line=3)


async def test_data_is_described_and_stray_bytes_are_marked(workspace: Path) -> None:
    """A model never gets a dump."""
    (workspace / "data").write_bytes(b"\x89PNG\0" * 100)
    (workspace / "latin").write_bytes(b"a caf\xe9 in a latin-1 text")
    assert await call(workspace, "read_file", path="data") == (
        "[500 bytes of data, not text: 89 50 4e 47 00 89 50 4e 47 00 89 50 4e 47 00 89 …]"
    )
    assert await call(workspace, "read_file", path="latin") == (
        "a caf\ufffd in a latin-1 text\n[not UTF-8 in 1 place]"
    )


# --- writing -------------------------------------------------------------------------------------


async def test_a_file_is_made_with_its_directories_and_replaced_whole(workspace: Path) -> None:
    """The answer says which of the two it was; permissions stay, and nothing else is left."""
    made = await call(workspace, "write_file", path="d/e/run", content="#!/bin/sh\n")
    await asyncio.to_thread((workspace / "d/e/run").chmod, 0o750)
    replaced = await call(workspace, "write_file", path="d/e/run", content="é")
    assert (made, replaced) == ("made `d/e/run`: 10 bytes", "replaced `d/e/run`: 2 bytes")
    mode = (await asyncio.to_thread((workspace / "d/e/run").stat)).st_mode
    assert mode & 0o777 == 0o750
    assert await asyncio.to_thread(os.listdir, workspace / "d/e") == ["run"]
    assert await call(workspace, "read_file", path="d/e/run") == "é"


@pytest.mark.parametrize("name", ["write_file", "edit_file"])
async def test_a_redacted_text_is_never_written(workspace: Path, name: str) -> None:
    """A model that copies a marker would destroy the secret in the file (design §6)."""
    await call(workspace, "write_file", path="a", content="key = hunter2")
    arguments = {
        "write_file": {"content": f"key = {MARKER}"},
        "edit_file": {"old_text": "hunter2", "new_text": MARKER},
    }
    with pytest.raises(ToolFailed, match="redaction marker"):
        await call(workspace, name, path="a", **arguments[name])
    assert await call(workspace, "read_file", path="a") == "key = hunter2"


async def test_a_file_that_would_be_too_large_is_not_written(workspace: Path) -> None:
    """The cap counts bytes, after an edit too."""
    with pytest.raises(ToolFailed, match="1,002 bytes, at most 1,000"):
        await call(workspace, "write_file", path="a", content="é" * 501)
    await call(workspace, "write_file", path="a", content="x" * 999 + "y")
    with pytest.raises(ToolFailed, match="1,001 bytes, at most 1,000"):
        await call(workspace, "edit_file", path="a", old_text="y", new_text="yy")
    (workspace / "large").write_bytes(b"x" * 1001)
    with pytest.raises(ToolFailed, match="is larger than 1,000 bytes"):
        await call(workspace, "edit_file", path="large", old_text="x", new_text="y")


def names_in(workspace: Path) -> list[str]:
    return sorted(path.name for path in workspace.iterdir())


def quota_of(max_bytes: int) -> FilesSettings:
    return replace(
        SETTINGS,
        limits=model.FilesSettings.model_construct(max_write_bytes=100_000),
        quota=Quota(max_bytes),
    )


async def test_what_tools_write_counts_against_the_quota_of_the_workspace(workspace: Path) -> None:
    """As what commands write: new files, longer ones, and files that an edit makes longer."""
    settings = quota_of(100_000)
    for name in ("a", "b"):
        await call_with(settings, workspace, "write_file", path=name, content=name * 40_000)
    with pytest.raises(ToolFailed, match="the workspace has no room for it: 18,080 of its 100,000"):
        await call_with(settings, workspace, "write_file", path="c", content="c" * 40_000)
    with pytest.raises(ToolFailed, match="the workspace has no room for it"):
        await call_with(settings, workspace, "write_file", path="b", content="c" * 80_000)
    await call_with(settings, workspace, "write_file", path="b", content=f"here{'c' * 39_990}")
    with pytest.raises(ToolFailed, match="the workspace has no room for it"):
        await call_with(
            settings, workspace, "edit_file", path="b", old_text="here", new_text="x" * 30_000
        )
    assert names_in(workspace) == ["a", "b"]
    assert (workspace / "b").read_text() == f"here{'c' * 39_990}"


async def test_what_no_tool_can_remove_does_not_count(workspace: Path) -> None:
    """A hidden place: it could fill a workspace, and the model would be told to remove something."""
    (workspace / ".env").write_bytes(b"x" * 200_000)
    await call_with(quota_of(100_000), workspace, "write_file", path="a", content="x")
    assert names_in(workspace) == [".env", "a"]


async def test_a_full_workspace_takes_what_makes_it_smaller(workspace: Path) -> None:
    """A shorter file in place of a longer one, unless the longer one stays by another name."""
    settings = quota_of(10_000)
    (workspace / "a").write_bytes(b"x" * 50_000)
    await call_with(settings, workspace, "edit_file", path="a", old_text="x" * 50_000, new_text="y")
    (workspace / "a").write_bytes(b"x" * 50_000)
    (workspace / "b").hardlink_to(workspace / "a")
    with pytest.raises(ToolFailed, match="holds more than its 10,000 bytes: remove something"):
        await call_with(settings, workspace, "write_file", path="a", content="x" * 40_000)
    (workspace / "b").unlink()
    await call_with(settings, workspace, "write_file", path="a", content="x" * 40_000)


async def test_directories_that_are_made_on_the_way_count_as_well(workspace: Path) -> None:
    """Each takes a block; and none lies too deep to be counted."""
    with pytest.raises(ToolFailed, match="no room for it"):
        await call_with(quota_of(10_000), workspace, "write_file", path="a/b/c", content="")
    with pytest.raises(ToolFailed, match="more than 64 directories"):
        await call(workspace, "write_file", path="a/" * 64 + "b", content="")
    assert names_in(workspace) == []


async def test_a_full_disk_leaves_the_old_file(workspace: Path) -> None:
    """A write that fails half-way changes nothing and leaves nothing behind."""
    await call(workspace, "write_file", path="a", content="old")
    with full_disk(), pytest.raises(ToolFailed, match="can't write `a`"):
        await call(workspace, "write_file", path="a", content="x" * 900)
    assert await asyncio.to_thread(os.listdir, workspace) == ["a"]
    assert await call(workspace, "read_file", path="a") == "old"


# --- editing -------------------------------------------------------------------------------------


async def test_an_edit_replaces_the_one_place(workspace: Path) -> None:
    """Everything around it stays, line ends included."""
    (workspace / "a").write_bytes(b"one\r\ntwo\r\nthree")
    edited = await call(workspace, "edit_file", path="a", old_text="two\r\n", new_text="2\r\n")
    assert edited == "edited `a` at line 2: 13 bytes"
    assert await asyncio.to_thread((workspace / "a").read_bytes) == b"one\r\n2\r\nthree"


@pytest.mark.parametrize(
    ("old", "complaint"),
    [
        ("four", "`four` is not in `a`"),
        ("a b", "`a b` is in `a` 2 times: give more of the text around it"),
        ("a  b", "`a  b` is not in `a`, but would be with other spaces or line ends"),
    ],
)
async def test_an_edit_that_fits_nowhere_or_twice_says_so(
    workspace: Path, old: str, complaint: str
) -> None:
    """The model learns how to repair its call, and the file stays."""
    (workspace / "a").write_text("a b\na b\n", encoding="utf-8")
    with pytest.raises(ToolFailed) as raised:
        await call(workspace, "edit_file", path="a", old_text=old, new_text="x")
    assert str(raised.value) == complaint
    assert await call(workspace, "read_file", path="a") == "a b\na b\n"


async def test_a_file_that_is_no_text_is_not_edited(workspace: Path) -> None:
    """Replacing in it would destroy what can't be shown."""
    (workspace / "a").write_bytes(b"abc\xff")
    with pytest.raises(ToolFailed, match="`a` is not UTF-8 text at byte 3"):
        await call(workspace, "edit_file", path="a", old_text="abc", new_text="x")


# --- stopping ------------------------------------------------------------------------------------


def test_a_stopped_run_changes_nothing_more(workspace: Path) -> None:
    """The thread of a cancelled call ends at its next step."""
    stopped = threading.Event()
    run = RunContext(
        workspace=workspace, hidden=(), settings=SETTINGS, stopped=stopped, permits=bool
    )
    run.raise_if_stopped()
    stopped.set()
    with pytest.raises(ToolFailed):
        run.raise_if_stopped()


@contextmanager
def full_disk() -> Generator[None]:
    """No file of this process may grow beyond 100 bytes, as if there were no room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
