"""Everything that a path may try, and what is protected from every path."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from tests.fakes.plain_tool import tool_context
from tests.unit.tools.file_calls import call, resources, tool
from zeroclaw.errors import ResourcesUnresolved, ToolFailed
from zeroclaw.host.quotas import MAX_DEPTH
from zeroclaw.tools.files import workspace as opening


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


@pytest.mark.parametrize("deep", [1, MAX_DEPTH])
async def test_a_path_has_its_name_as_deep_as_a_workspace_may_be(
    workspace: Path, deep: int
) -> None:
    """A deeper one is refused, as the event loop looks at each of its names."""
    path = "/".join("d" * deep)
    await asyncio.to_thread((workspace / path).mkdir, parents=True)
    named = f"file:{workspace}/{path}"
    assert await resources(workspace, path, "list_files") == (named, f"{named}/**")
    with pytest.raises(ResourcesUnresolved, match="more than 64 directories"):
        await resources(workspace, "d/" * MAX_DEPTH + "d", "list_files")


@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file", "search_files"])
@pytest.mark.parametrize("swapped", ["d", "d/a"])
async def test_a_link_swapped_in_after_the_decision_is_not_followed(
    workspace: Path, name: str, swapped: str
) -> None:
    """The call touches the file of the decision, or none."""
    file_tool = tool(name)
    await call(workspace, "write_file", path="d/a", content="hunter2")
    arguments = file_tool.check(
        {"path": "d/a"}
        | {"write_file": {"content": "x"}, "search_files": {"pattern": "hunter"}}.get(name, {})
        | ({"old_text": "hunter2", "new_text": "x"} if name == "edit_file" else {})
    )
    context = tool_context(workspace)
    assert await file_tool.resources(arguments, context) == (f"file:{workspace}/d/a",)
    await asyncio.to_thread((workspace / swapped).rename, workspace / "away")
    target = workspace.parent / "outside" / ("secret" if swapped == "d/a" else "")
    await asyncio.to_thread((workspace / swapped).symlink_to, target)
    await asyncio.to_thread((workspace.parent / "outside" / "secret").rename, target.parent / "a")
    with pytest.raises(ToolFailed, match="is a symbolic link"):
        await file_tool.run(arguments, context)
    with pytest.raises(ResourcesUnresolved):
        await file_tool.resources(arguments, context)


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
    """A refusal of the operating system is one line."""
    for name in ("read_file", "list_files"):
        with pytest.raises(ToolFailed, match="file name too long"):
            await call(workspace, name, path="x" * 300)
    with pytest.raises(ToolFailed, match="file name too long"):
        await call(workspace, "write_file", path="x" * 300 + "/a", content="")
    with pytest.raises(ResourcesUnresolved, match="file name too long"):
        await resources(workspace, "x" * 300)


async def test_a_workspace_that_is_gone_is_reported(workspace: Path) -> None:
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
    skipped = "[skipped 1 path: protected, not allowed by the policy, or unreadable]"
    assert await call(workspace, "list_files", depth=3) == f"a (7 bytes)\n{skipped}"
    found = await call(workspace, "search_files", pattern="hunter")
    assert found == f"a:1: hunter3\n{skipped}"


@pytest.mark.parametrize("path", [".env/a", ".env"])
async def test_protected_places_are_not_changed(workspace: Path, path: str) -> None:
    """Neither written nor edited, whether they exist or not."""
    for name, arguments in (
        ("write_file", {"content": "x"}),
        ("edit_file", {"old_text": "x", "new_text": "y"}),
    ):
        with pytest.raises(ToolFailed, match="is protected and can't be changed"):
            await call(workspace, name, path=path, **arguments)
    assert await asyncio.to_thread(os.listdir, workspace) == []


# --- opening beneath a workspace: the moments that a tool test can't stand between ----------------


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "a").write_text("old", encoding="utf-8")
    return tmp_path


def test_a_file_that_changed_meanwhile_is_not_replaced(directory: Path) -> None:
    """An edit is based on what was read; when that is gone, nothing is written or left."""
    with opening.opened_directory(directory, ()) as fd:
        before = opening.stat_at(fd, ("a",))
        (directory / "a").write_text("newer", encoding="utf-8")
        with pytest.raises(ToolFailed, match="`a` was changed meanwhile"):
            opening.replace_at(fd, ("a",), b"mine", replaces=before)
        with pytest.raises(ToolFailed, match="`a` was changed meanwhile"):
            opening.replace_at(fd, ("a",), b"mine", replaces=None)
    assert [(place.name, place.read_text()) for place in directory.iterdir()] == [("a", "newer")]


def test_a_file_that_the_disk_has_not_confirmed_is_reported_as_written(directory: Path) -> None:
    """P10: the new text stands, and the model should not take it that the old one does."""
    fd = os.open(directory, os.O_PATH)  # good for names, but not for fsync(2)
    try:
        with pytest.raises(ToolFailed, match="`a` is written, but a power cut may undo that: bad"):
            opening.replace_at(fd, ("a",), b"mine", replaces=opening.stat_at(fd, ("a",)))
    finally:
        os.close(fd)
    assert (directory / "a").read_bytes() == b"mine"


def test_a_file_that_may_not_be_opened_is_refused_in_words(directory: Path) -> None:
    """What the operating system says when the file turns into a link after it was looked at."""
    error = OSError(40, "Too many levels of symbolic links")
    assert str(opening.failure(error, ("a",), "open")) == (
        "`a` is a symbolic link, and links are not followed"
    )
    assert str(opening.failure(PermissionError(13, "Permission denied"), ("a",), "open")) == (
        "can't open `a`: permission denied"
    )
    assert directory.exists()


def test_no_descriptor_stays_open(directory: Path) -> None:
    """Neither after a success nor after a refusal on the way."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    (directory / "d" / "e").mkdir(parents=True)
    (directory / "d" / "link").symlink_to("e")
    with opening.opened_directory(directory, ("d", "e")):
        pass
    for parts in (("d", "link", "x"), ("d", "no"), ("a", "x"), ("d", "e"), ("d", "link")):
        with pytest.raises(ToolFailed), opening.opened_file(directory, parts):
            pass
    with opening.opened_file(directory, ("a",)) as file:
        assert file.read() == b"old"
    assert len(list(Path("/proc/self/fd").iterdir())) == before
