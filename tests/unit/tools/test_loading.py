"""`load_tools`, `load_skills`, and the folder that skills are read from."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fakes.manual_clock import ManualClock
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.errors import ToolArgumentsInvalid, ToolFailed
from zeroclaw.tool import Tool, ToolContext, line_of
from zeroclaw.tools import loading
from zeroclaw.tools.loading.skill import Skill

TEXT = "---\nname: tides\ndescription: When to sail.\n---\nAdd an hour.\n"
ANN = Principal(id="person:ann", roles=frozenset(), channel="web", sender="7")
HERE = Address(channel="web", account="local", chat="7", direct=True)


async def unused(spawned: object) -> None:
    raise AssertionError


def lay(root: Path, name: str = "tides", text: str = TEXT) -> Path:
    folder = root / name
    folder.mkdir()
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


def skills_in(root: Path) -> Mapping[str, Skill]:
    found, faults = loading.read_skills(root, lambda text: text.replace("secret", "[redacted]"))
    assert faults == ()
    return {one.name: one for one in found}


def faults_in(root: Path) -> tuple[str, ...]:
    found, faults = loading.read_skills(root, str)
    assert found == ()
    return faults


def tools(skills: Mapping[str, Skill] | None = None) -> tuple[Tool, Tool]:
    groups, one = loading.tools(
        lambda _who, _where: ("files", "notes"), lambda _who, _where: skills or {}
    )
    return groups, one


def context(root: Path) -> ToolContext:
    return ToolContext(
        conversation=ConversationId("c"),
        principal=ANN,
        address=HERE,
        workspace=root,
        clock=ManualClock(),
        spawned=unused,
    )


async def called(tool: Tool, root: Path, **arguments: object) -> str:
    """Return what a call says, whose arguments stay as they are checked."""
    checked = tool.check(arguments)
    assert tool.check(checked) == checked
    return (await tool.run(checked, context(root))).text


async def test_groups_are_loaded_by_name(tmp_path: Path) -> None:
    """All that are asked for, or none."""
    load_tools, _ = tools()
    assert "among yours from now on" in await called(
        load_tools, tmp_path, groups=["files", "notes"]
    )
    told = await called(load_tools, tmp_path, groups=["files", "b", "a"])
    assert told == "there is no group `a`, `b`"
    with pytest.raises(ToolArgumentsInvalid):
        load_tools.check({"groups": []})
    line = line_of(load_tools, {"groups": ["files"]}, "de")
    assert line == "die Werkzeuge von `files` laden"
    assert await load_tools.resources({"groups": ["files"]}, context(tmp_path)) == ("tools:files",)


async def test_a_skill_is_loaded_and_its_files_are_read(tmp_path: Path) -> None:
    """By names that its folder holds; its resource is its own."""
    folder = lay(tmp_path)
    (folder / "scripts").mkdir()
    (folder / "scripts" / "sail.py").write_text("print()", encoding="utf-8")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("hidden", encoding="utf-8")
    (folder / ".env").write_text("hidden", encoding="utf-8")
    (tmp_path / "outside").write_text("outside", encoding="utf-8")
    (folder / "link").symlink_to(tmp_path / "outside")
    _, load_skills = tools(await asyncio.to_thread(skills_in, tmp_path))
    told = await called(load_skills, tmp_path, name="tides")
    assert told.endswith("`file`:\n- `scripts/sail.py`")
    assert await called(load_skills, tmp_path, name="tides", file="scripts/sail.py") == "print()"
    assert await called(load_skills, tmp_path, name="ports") == "there is no skill `ports`"
    for name in ("../outside", "link", ".env", "SKILL.md"):
        with pytest.raises(ToolFailed, match="has no file"):
            await called(load_skills, tmp_path, name="tides", file=name)
    asked = load_skills.check({"name": "tides", "file": "a"})
    assert await load_skills.resources(asked, context(tmp_path)) == ("skill:tides",)
    assert line_of(load_skills, asked, "en") == "read `a` of the skill `tides`"
    assert line_of(load_skills, {"name": "tides"}, "en") == "load the skill `tides`"


async def test_a_file_is_looked_at_again_when_it_is_read(tmp_path: Path) -> None:
    """One that became a link, or too large, or went, is not read."""
    folder = lay(tmp_path)
    for name in ("large", "link", "gone"):
        (folder / name).write_text("x", encoding="utf-8")
    _, load_skills = tools(await asyncio.to_thread(skills_in, tmp_path))
    (folder / "large").write_bytes(b"x" * (loading.MOST_FILE_BYTES + 1))
    (folder / "link").unlink()
    (folder / "link").symlink_to("/etc/hostname")
    (folder / "gone").unlink()
    for name, why in (("large", "larger"), ("link", "leads out"), ("gone", "no such file")):
        with pytest.raises(ToolFailed, match=why):
            await called(load_skills, tmp_path, name="tides", file=name)


def test_what_a_skill_says_is_without_secrets_and_without_what_is_not_seen(tmp_path: Path) -> None:
    """A folder that people pass around may hold words that nobody sees."""
    lay(tmp_path, text=TEXT.replace("hour", "hour\u200b of the secret"))
    (tmp_path / "notes.txt").write_text("no skill", encoding="utf-8")
    (tmp_path / ".hidden").mkdir()
    assert skills_in(tmp_path)["tides"].text == "Add an hour⟨U+200B⟩ of the [redacted]."


def test_each_broken_skill_is_named_with_its_fault(tmp_path: Path) -> None:
    """In the order of their names; none of them stops another."""
    (tmp_path / "a").mkdir()
    lay(tmp_path, "b", TEXT)
    (lay(tmp_path, "c") / "SKILL.md").write_bytes(b"---\xff")
    (lay(tmp_path, "d") / "SKILL.md").write_bytes(b"x" * (loading.MOST_TEXT_BYTES + 1))
    (lay(tmp_path, "e") / "SKILL.md").chmod(0o666)
    outside = tmp_path / "b" / "SKILL.md"
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "SKILL.md").symlink_to(outside)
    (tmp_path / "g").symlink_to(tmp_path / "b")
    (tmp_path / "h" / "SKILL.md").mkdir(parents=True)
    whys = (
        "can't be read: no such file or directory",
        "needs its folder's `name`",
        "is not UTF-8 text",
        "is larger than 65,536 bytes",
        "can be written by everybody on this machine",
        "leads out of its folder by a symbolic link",
        "leads out of its folder by a symbolic link",
        "is no file",
    )
    faults = faults_in(tmp_path)
    for name, why, fault in zip("abcdefgh", whys, faults, strict=True):
        assert fault.startswith(f"`{name}` is left out: its `SKILL.md` {why}")


def test_skills_and_their_files_are_bounded(tmp_path: Path) -> None:
    """What is beyond them is said of skills, and not listed of files."""
    folder = lay(tmp_path, "tides")
    for number in range(loading.MOST_FILES + 5):
        (folder / f"f{number:03}").write_text("", encoding="utf-8")
    assert len(skills_in(tmp_path)["tides"].files) == loading.MOST_FILES
    for number in range(loading.MOST_SKILLS):
        (tmp_path / f"a{number:03}").mkdir()
    faults = faults_in(tmp_path)
    assert len(faults) == loading.MOST_SKILLS + 1
    assert faults[-1] == "more than 100 skills: those behind them are left out"
