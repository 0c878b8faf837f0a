"""The file tools: what they do, and everything a path may try."""

import asyncio
import os
import resource
import signal
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.tool_calls import tool_context
from zeroclaw.errors import ResourcesUnresolved, ToolFailed
from zeroclaw.host.protected import Protected
from zeroclaw.redact import MARKER
from zeroclaw.tool import Tool
from zeroclaw.tools.files import FilesSettings, tools
from zeroclaw.tools.files.place import Place

SETTINGS = FilesSettings(
    max_read_bytes=1000,
    max_write_bytes=1000,
    max_entries=5,
    max_search_bytes=5000,
    max_searched_file_bytes=2000,
    protected=Protected(read_only=("kept",), masked=(".env",)),
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with something outside it worth stealing."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("hunter2", encoding="utf-8")
    place = tmp_path / "workspace"
    place.mkdir()
    return place


def tool(name: str) -> Tool:
    [found] = [one for one in tools(SETTINGS) if one.spec.name == name]
    return found


async def call(workspace: Path, name: str, **arguments: object) -> str:
    """Check and run, as the gate does."""
    one = tool(name)
    return (await one.run(one.check(arguments), tool_context(workspace))).text


async def resources(workspace: Path, path: str) -> tuple[str, ...]:
    one = tool("read_file")
    return await one.resources(one.check({"path": path}), tool_context(workspace))


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


async def test_an_answer_is_bounded_whatever_the_file(workspace: Path) -> None:
    """A line larger than an answer is cut, and the cut is told."""
    (workspace / "a").write_text("x" * 5000 + "\nend", encoding="utf-8")
    assert await call(workspace, "read_file", path="a") == (
        "x" * 1000
        + "\n[cut within line 1, at the most that one answer holds]"
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
        "a caf\ufffd in a latin-1 text\n[1 places were not UTF-8]"
    )


# --- paths that try ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["read_file", "list_files", "write_file", "edit_file"])
@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("../outside/secret", "goes up with `..`"),
        ("d/../../outside/secret", "goes up with `..`"),
        ("/workspace/../outside", "goes up with `..`"),
        ("/etc/passwd", "`/etc/passwd` is outside the workspace"),
        ("/workspacex/a", "is outside the workspace"),
        ("link/secret", "`link` is a symbolic link"),
        ("link", "`link` is a symbolic link"),
        ("inner", "`inner` is a symbolic link"),
        ("dangling", "`dangling` is a symbolic link"),
    ],
)
async def test_no_path_leaves_the_workspace(
    workspace: Path, name: str, path: str, complaint: str
) -> None:
    """Not upwards, not absolutely, not by a link, not even by one that stays inside (S2-08)."""
    (workspace / "d").mkdir()
    (workspace / "link").symlink_to(workspace.parent / "outside")
    (workspace / "inner").symlink_to("d")
    (workspace / "dangling").symlink_to("nothing")
    arguments: dict[str, dict[str, object]] = {
        "write_file": {"content": "x"},
        "edit_file": {"old_text": "hunter2", "new_text": "x"},
    }
    with pytest.raises(ToolFailed, match=complaint):
        await call(workspace, name, path=path, **arguments.get(name, {}))
    with pytest.raises(ResourcesUnresolved, match=complaint):
        await resources(workspace, path)
    secret = await asyncio.to_thread((workspace.parent / "outside" / "secret").read_text)
    assert secret == "hunter2"


@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file", "search_files"])
@pytest.mark.parametrize("swapped", ["d", "d/a"])
async def test_a_link_swapped_in_after_the_decision_is_not_followed(
    workspace: Path, name: str, swapped: str
) -> None:
    """What was decided about is what is touched, or nothing is."""
    one = tool(name)
    await call(workspace, "write_file", path="d/a", content="hunter2")
    arguments = one.check(
        {"path": "d/a"}
        | {"write_file": {"content": "x"}, "search_files": {"pattern": "hunter"}}.get(name, {})
        | ({"old_text": "hunter2", "new_text": "x"} if name == "edit_file" else {})
    )
    context = tool_context(workspace)
    assert await one.resources(arguments, context) == (f"file:{workspace}/d/a",)
    await asyncio.to_thread((workspace / swapped).rename, workspace / "away")
    target = workspace.parent / "outside" / ("secret" if swapped == "d/a" else "")
    await asyncio.to_thread((workspace / swapped).symlink_to, target)
    await asyncio.to_thread((workspace.parent / "outside" / "secret").rename, target.parent / "a")
    with pytest.raises(ToolFailed, match="is a symbolic link"):
        await one.run(arguments, context)
    with pytest.raises(ResourcesUnresolved):
        await one.resources(arguments, context)


@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file"])
@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("pipe", "`pipe` is a pipe, socket or device"),
        ("socket", "`socket` is a pipe, socket or device"),
        ("d", "`d` is a directory"),
        (".", "the workspace is a directory"),
        ("a/b", "`a` is not a directory"),
    ],
)
async def test_only_files_are_opened(workspace: Path, name: str, path: str, complaint: str) -> None:
    """A pipe without a writer would hold the tool for ever; it is refused at once."""
    os.mkfifo(workspace / "pipe")
    (workspace / "d").mkdir()
    (workspace / "a").touch()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(workspace / "socket"))
        arguments: dict[str, dict[str, object]] = {
            "write_file": {"content": "x"},
            "edit_file": {"old_text": "x", "new_text": "y"},
        }
        with pytest.raises(ToolFailed, match=complaint):
            await call(workspace, name, path=path, **arguments.get(name, {}))


@pytest.mark.parametrize("name", ["read_file", "edit_file"])
@pytest.mark.parametrize("path", ["no", "no/deeper"])
async def test_a_missing_file_is_named(workspace: Path, name: str, path: str) -> None:
    """The model reads which name is missing."""
    arguments = {"old_text": "x", "new_text": "y"} if name == "edit_file" else {}
    with pytest.raises(ToolFailed, match="`no` does not exist"):
        await call(workspace, name, path=path, **arguments)


async def test_a_name_that_is_too_long_is_refused_in_words(workspace: Path) -> None:
    """What the operating system refuses is one line."""
    for name in ("read_file", "list_files"):
        with pytest.raises(ToolFailed, match="file name too long"):
            await call(workspace, name, path="x" * 300)
    with pytest.raises(ToolFailed, match="file name too long"):
        await call(workspace, "write_file", path="x" * 300 + "/a", content="")
    with pytest.raises(ResourcesUnresolved, match="file name too long"):
        await resources(workspace, "x" * 300)


async def test_a_workspace_that_is_gone_is_told(workspace: Path) -> None:
    """Nothing is raised that the model can't read."""
    with pytest.raises(ToolFailed, match=r"can't enter `\.`: no such file or directory"):
        await call(workspace / "gone", "read_file", path="a")


async def test_a_hard_link_is_a_file_like_any_other(workspace: Path) -> None:
    """It can be read, but a write makes a new file and leaves the other name alone."""
    other = workspace.parent / "outside" / "secret"
    await asyncio.to_thread((workspace / "a").hardlink_to, other)
    assert await call(workspace, "read_file", path="a") == "hunter2"
    await call(workspace, "write_file", path="a", content="mine")
    assert await asyncio.to_thread(other.read_text) == "hunter2"


# --- protected places ----------------------------------------------------------------------------


async def test_masked_places_are_neither_read_nor_listed_nor_found(workspace: Path) -> None:
    """A masked place does not exist for the model."""
    (workspace / ".env").mkdir()
    (workspace / ".env" / "key").write_text("hunter2", encoding="utf-8")
    (workspace / "a").write_text("hunter3", encoding="utf-8")
    for name in ("read_file", "list_files"):
        with pytest.raises(ToolFailed, match="is protected and can't be read"):
            await call(workspace, name, path=".env/key")
    assert await call(workspace, "list_files", depth=3) == "a (7 bytes)"
    assert await call(workspace, "search_files", pattern="hunter") == "a:1: hunter3"


@pytest.mark.parametrize("path", ["kept/a", "kept", ".env"])
async def test_protected_places_are_not_changed(workspace: Path, path: str) -> None:
    """Neither written nor edited, whether they exist or not."""
    for name, arguments in (
        ("write_file", {"content": "x"}),
        ("edit_file", {"old_text": "x", "new_text": "y"}),
    ):
        with pytest.raises(ToolFailed, match="is protected and can't be changed"):
            await call(workspace, name, path=path, **arguments)
    assert await asyncio.to_thread(os.listdir, workspace) == []


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
async def test_what_was_redacted_is_never_written(workspace: Path, name: str) -> None:
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


# --- listing and searching -----------------------------------------------------------------------


async def test_a_list_says_what_everything_is(workspace: Path) -> None:
    """Directories, files with sizes, links that lead nowhere here, and the rest."""
    (workspace / "d").mkdir()
    (workspace / "d" / "deep").touch()
    (workspace / "a").write_bytes(b"x" * 1234)
    (workspace / "link").symlink_to("/etc")
    os.mkfifo(workspace / "pipe")
    top = "a (1,234 bytes)\nd/\nlink (symbolic link, not followed)\npipe (pipe, socket or device)"
    assert await call(workspace, "list_files") == top
    assert await call(workspace, "list_files", depth=2) == f"{top}\nd/deep (0 bytes)"
    assert await call(workspace, "list_files", path="d") == "deep (0 bytes)"


async def test_a_list_is_bounded_and_an_empty_one_says_so(workspace: Path) -> None:
    """A model knows whether it has seen everything."""
    assert await call(workspace, "list_files") == "[`.` is empty]"
    await asyncio.to_thread(make_many, workspace, 6)
    lines = (await call(workspace, "list_files")).split("\n")
    assert (len(lines), lines[-1]) == (6, "[there is more; these are the first 5]")


async def test_names_that_are_no_text_are_listed(workspace: Path) -> None:
    """Newlines, escapes and bytes that are not UTF-8 can't break the list."""
    for name in (b"a\nb", b"c\x1b[31md", b"e\xff"):
        os.close(os.open(os.fsencode(workspace) + b"/" + name, os.O_CREAT))
    listed = (await call(workspace, "list_files")).split("\n")
    assert listed == ["a b (0 bytes)", "cd (0 bytes)", "e? (0 bytes)"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "def "}, "a.py:2: def f():\nd/b.py:1: def g():"),
        ({"pattern": "DEF "}, "[nothing found]"),
        ({"pattern": "DEF ", "ignore_case": True}, "a.py:2: def f():\nd/b.py:1: def g():"),
        (
            {"pattern": r"^def \w\(.*:(.\[31m)?$", "regex": True},
            "a.py:2: def f():\nd/b.py:1: def g():",
        ),
        ({"pattern": "def", "names": "b*"}, "d/b.py:1: def g():"),
        ({"pattern": "def", "path": "d"}, "d/b.py:1: def g():"),
        ({"pattern": "def", "path": "a.py"}, "a.py:2: def f():"),
        (
            {"pattern": "def", "max_results": 1},
            "a.py:2: def f():\n[the search stopped when it had found 1 lines: narrow it down]",
        ),
    ],
)
async def test_a_search_finds_lines(
    workspace: Path, arguments: dict[str, object], found: str
) -> None:
    """By text or expression, below a path, by name, and no more than asked for."""
    (workspace / "d").mkdir()
    (workspace / "a.py").write_text("import os\r\ndef f():\x1b[31m\r\n", encoding="utf-8")
    (workspace / "d" / "b.py").write_text("def g():\n", encoding="utf-8")
    (workspace / "data").write_bytes(b"def \0")
    assert await call(workspace, "search_files", **arguments) == found


async def test_a_search_says_what_it_passed_over(workspace: Path) -> None:
    """Large files are counted, and the bytes of all files together are bounded."""
    (workspace / "a").write_text("x" * 400 + "\n", encoding="utf-8")
    (workspace / "b").write_bytes(b"x" * 2001)
    (workspace / "c").write_bytes(b"y" * 1999)
    (workspace / "d").write_bytes(b"y" * 1999)
    (workspace / "e").write_bytes(b"x" * 1999)
    assert await call(workspace, "search_files", pattern="x") == "\n".join(
        [
            f"a:1: {'x' * 300}…",
            "[passed over 1 files larger than 2,000 bytes]",
            "[the search stopped when it had read as much as one search may: narrow it down]",
        ]
    )


async def test_a_pattern_that_cannot_be_used_is_told(workspace: Path) -> None:
    """The model reads what is wrong with it."""
    with pytest.raises(ToolFailed, match=r"the pattern `\(a` can't be used: a `\(` without"):
        await call(workspace, "search_files", pattern="(a", regex=True)


async def test_a_search_does_not_follow_links(workspace: Path) -> None:
    """Neither a linked file nor a linked directory is read."""
    (workspace / "link").symlink_to(workspace.parent / "outside")
    (workspace / "file").symlink_to(workspace.parent / "outside" / "secret")
    assert await call(workspace, "search_files", pattern="hunter") == "[nothing found]"


# --- stopping ------------------------------------------------------------------------------------


def test_a_stopped_run_changes_nothing_more(workspace: Path) -> None:
    """The thread of a cancelled call ends at its next step."""
    stopped = threading.Event()
    place = Place(workspace=workspace, rules=(), settings=SETTINGS, stopped=stopped)
    place.go_on()
    stopped.set()
    with pytest.raises(ToolFailed):
        place.go_on()


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


def make_many(workspace: Path, number: int) -> None:
    for name in range(number):
        (workspace / f"{name}").touch()
