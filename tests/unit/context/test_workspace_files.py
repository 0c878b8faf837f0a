"""The files that say who the bot is: the operator's as rules, a workspace's own as data. S3-06."""

import os
from pathlib import Path

import pytest

from tests.fakes.context_requests import HERE, context_request
from zeroclaw.context.workspace_files import FILES, MOST_BYTES, WorkspaceFiles
from zeroclaw.context_provider import ContextText
from zeroclaw.envelope import ConversationId

NAMES = [name for name, _, _ in FILES]


async def unchanged(_conversation: ConversationId, _workspace: Path) -> bool:
    return False


def files_in(place: Path, directory: Path | None = None) -> WorkspaceFiles:
    return WorkspaceFiles(
        directory=directory, workspaces=place, most_tokens=100, is_untrusted=unchanged
    )


def furnish(directory: Path, *names: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_text(f"what {name} says\n", encoding="utf-8")


async def read(files: WorkspaceFiles) -> tuple[ContextText, ...]:
    return await files.texts(context_request())


async def test_they_come_in_one_order_and_some_are_rules(tmp_path: Path) -> None:
    """Who it is, how it talks, whom it talks to, what it knows, how it works."""
    furnish(tmp_path, *reversed(NAMES))
    found = await read(files_in(tmp_path / "none", tmp_path))
    assert [one.name for one in found] == [
        "IDENTITY.md",
        "SOUL.md",
        "USER.md",
        "MEMORY.md",
        "AGENTS.md",
    ]
    assert [one.is_data for one in found] == [False, False, True, True, False]
    assert found[0].title == "IDENTITY.md, who you are"
    assert found[0].text == "what IDENTITY.md says\n"


async def test_what_is_missing_is_skipped(tmp_path: Path) -> None:
    assert await read(files_in(tmp_path)) == ()
    assert await read(files_in(tmp_path, tmp_path / "gone")) == ()
    furnish(tmp_path, "MEMORY.md", "OTHER.md")
    assert [one.name for one in await read(files_in(tmp_path, tmp_path))] == ["MEMORY.md"]


async def test_a_workspace_gives_no_rules(tmp_path: Path) -> None:
    """A model that reads a page can write there; another conversation's are not read."""
    furnish(tmp_path / HERE, "IDENTITY.md", "AGENTS.md")
    furnish(tmp_path / "02D", "SOUL.md")
    found = await read(files_in(tmp_path))
    assert [(one.name, one.is_data, one.untrusted) for one in found] == [
        ("workspace/IDENTITY.md", True, False),
        ("workspace/AGENTS.md", True, False),
    ]
    assert found[0].title == "IDENTITY.md in the workspace of this conversation"


async def test_a_workspace_that_untrusted_text_has_changed_is_untrusted(tmp_path: Path) -> None:
    """It is asked for by its real path, as the gate notes it."""
    real, asked = tmp_path / "real", list[Path]()
    furnish(real / HERE, "MEMORY.md")
    (tmp_path / "link").symlink_to(real)

    async def is_untrusted(_: ConversationId, workspace: Path) -> bool:
        asked.append(workspace)
        return True

    files = WorkspaceFiles(
        directory=None, workspaces=tmp_path / "link", most_tokens=100, is_untrusted=is_untrusted
    )
    assert [one.untrusted for one in await read(files)] == [True]
    assert asked == [real / HERE]


@pytest.mark.parametrize("kind", ["link", "directory", "pipe"])
async def test_what_is_no_plain_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    """A command in the sandbox can make a link to what it can't read itself."""
    workspace, name = tmp_path / HERE, "MEMORY.md"
    furnish(workspace, "USER.md")
    furnish(tmp_path, "outside")
    match kind:
        case "link":
            (workspace / name).symlink_to(tmp_path / "outside")
        case "directory":
            (workspace / name).mkdir()
        case _:
            os.mkfifo(workspace / name)
    found = await read(files_in(tmp_path))
    assert [one.name for one in found] == ["workspace/USER.md"]


async def test_a_huge_file_is_read_in_part_and_bad_bytes_are_seen(tmp_path: Path) -> None:
    furnish(tmp_path)
    (tmp_path / "USER.md").write_bytes(b"\xff" + b"x" * (MOST_BYTES + 9))
    (found,) = await read(files_in(tmp_path / "none", tmp_path))
    assert found.text == "\ufffd" + "x" * (MOST_BYTES - 1)


async def test_a_link_that_leads_nowhere_is_skipped(tmp_path: Path) -> None:
    """What is behind a link is never read, so it doesn't matter whether anything is."""
    furnish(tmp_path, "USER.md")
    (tmp_path / "MEMORY.md").symlink_to(tmp_path / "gone")
    assert [one.name for one in await read(files_in(tmp_path / "none", tmp_path))] == ["USER.md"]
