"""`load_tools`, `load_skills`, and the skills of a folder."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.manual_clock import ManualClock
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.errors import ToolArgumentsInvalid, ToolFailed
from zeroclaw.tool import Tool, ToolContext, line_of
from zeroclaw.tools import loading
from zeroclaw.tools.loading.skill import Skill, read_skill

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
    return {skill.name: skill for skill in found}


def faults_in(root: Path) -> tuple[str, ...]:
    found, faults = loading.read_skills(root, str)
    assert found == ()
    return faults


def tools(skills: Mapping[str, Skill] | None = None) -> tuple[Tool, Tool]:
    groups, skill_loader = loading.tools(
        lambda _who, _where: ("files", "notes"), lambda _who, _where: skills or {}
    )
    return groups, skill_loader


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
    """All requested ones, or none."""
    load_tools, _ = tools()
    assert "among yours from now on" in await called(
        load_tools, tmp_path, groups=["files", "notes"]
    )
    text = await called(load_tools, tmp_path, groups=["files", "b", "a"])
    assert text == "there is no group `a`, `b`"
    assert (await load_tools.run({"groups": ("a",)}, context(tmp_path))).is_error
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
    (folder / "scripts" / "tls.pem").write_text("hidden", encoding="utf-8")
    (folder / "keyrings").mkdir()
    (folder / "keyrings" / "key").write_text("hidden", encoding="utf-8")
    (tmp_path / "outside").write_text("outside", encoding="utf-8")
    (folder / "link").symlink_to(tmp_path / "outside")
    _, load_skills = tools(await asyncio.to_thread(skills_in, tmp_path))
    text = await called(load_skills, tmp_path, name="tides")
    assert text.endswith("`file`:\n- `scripts/sail.py`")
    assert await called(load_skills, tmp_path, name="tides", file="scripts/sail.py") == "print()"
    assert await called(load_skills, tmp_path, name="ports") == "there is no skill `ports`"
    for name in ("../outside", "link", ".env", "scripts/tls.pem", "keyrings/key", "SKILL.md"):
        with pytest.raises(ToolFailed, match="has no file"):
            await called(load_skills, tmp_path, name="tides", file=name)
    arguments = load_skills.check({"name": "tides", "file": "a"})
    assert await load_skills.resources(arguments, context(tmp_path)) == ("skill:tides",)
    assert line_of(load_skills, arguments, "en") == "read `a` of the skill `tides`"
    assert line_of(load_skills, {"name": "tides"}, "en") == "load the skill `tides`"


async def test_a_file_is_looked_at_again_when_it_is_read(tmp_path: Path) -> None:
    """One that became a link, or too large, or went, is not read."""
    folder = lay(tmp_path)
    for name in ("large", "link", "gone"):
        (folder / name).write_text("x", encoding="utf-8")
    _, load_skills = tools(await asyncio.to_thread(skills_in, tmp_path))
    (folder / "large").write_bytes(b"x" * (loading.MAX_FILE_BYTES + 1))
    (folder / "link").unlink()
    (folder / "link").symlink_to("/etc/hostname")
    (folder / "gone").unlink()
    for name, reason in (("large", "larger"), ("link", "leads out"), ("gone", "no such file")):
        with pytest.raises(ToolFailed, match=reason):
            await called(load_skills, tmp_path, name="tides", file=name)


def test_the_text_of_a_skill_is_redacted_and_escaped(tmp_path: Path) -> None:
    """A folder that people pass around may hold invisible words."""
    lay(tmp_path, text=TEXT.replace("hour", "hour\u200b of the secret"))
    (tmp_path / "notes.txt").write_text("no skill", encoding="utf-8")
    (tmp_path / ".hidden").mkdir()
    assert skills_in(tmp_path)["tides"].text == "Add an hour⟨U+200B⟩ of the [redacted]."


def test_each_broken_skill_is_named_with_its_fault(tmp_path: Path) -> None:
    """In the order of their names; none of them stops another."""
    (tmp_path / "a").mkdir()
    lay(tmp_path, "b", TEXT)
    (lay(tmp_path, "c") / "SKILL.md").write_bytes(b"---\xff")
    (lay(tmp_path, "d") / "SKILL.md").write_bytes(b"x" * (loading.MAX_TEXT_BYTES + 1))
    (lay(tmp_path, "e") / "SKILL.md").chmod(0o666)
    outside = tmp_path / "b" / "SKILL.md"
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "SKILL.md").symlink_to(outside)
    (tmp_path / "g").symlink_to(tmp_path / "b")
    (tmp_path / "h" / "SKILL.md").mkdir(parents=True)
    reasons = (
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
    for name, reason, fault in zip("abcdefgh", reasons, faults, strict=True):
        assert fault.startswith(f"`{name}` is left out: its `SKILL.md` {reason}")


def test_skills_and_their_files_are_bounded(tmp_path: Path) -> None:
    """What is beyond them is said of skills, and not listed of files."""
    folder = lay(tmp_path, "tides")
    for number in range(loading.MAX_FILES + 5):
        (folder / f"f{number:03}").write_text("", encoding="utf-8")
    assert len(skills_in(tmp_path)["tides"].files) == loading.MAX_FILES
    for number in range(loading.MAX_SKILLS):
        (tmp_path / f"a{number:03}").mkdir()
    faults = faults_in(tmp_path)
    assert len(faults) == loading.MAX_SKILLS + 1
    assert faults[-1] == "more than 100 skills: the rest is left out"


# --- how a `SKILL.md` is read ---------------------------------------------------------------------

FOLDER = Path("/skills/tides")


def read(front: str, body: str = "Add an hour.\n") -> Skill:
    return read_skill(f"---\n{front}\n---\n{body}", FOLDER)


def described(front: str) -> str:
    """Return the description of a skill."""
    return read(f"name: tides\n{front}").description


def test_a_skill_is_its_name_its_description_and_its_text() -> None:
    """All other keys are passed over, and so are nested ones of the same name. S3-07."""
    front = "\n".join(
        (
            "name: tides  # the folder's",
            "description: When to sail.",
            "license: MIT",
            "# name: other",
            "metadata:",
            "  name: nested",
            "  description: nested",
            "allowed-tools: Bash(rm:*)",
        )
    )
    text = "# Tides\n\n---\nAdd an hour."
    assert read(front, f"\n{text}\n\n") == Skill(
        name="tides", description="When to sail.", text=text, folder=FOLDER
    )
    assert read_skill("\ufeff--- \r\nname: tides\r\ndescription: a\r\n---\r\n", FOLDER) == Skill(
        name="tides", description="a", text="", folder=FOLDER
    )


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("description: Use when: they sail", "Use when: they sail"),
        ("description: of\n  two lines", "of two lines"),
        ("description:\n  on the next", "on the next"),
        ("description: >-\n  folded\n\n  in two\nlicense: MIT", "folded in two"),
        ("description: |2 # kept\n  one: two\n  # three", "one: two # three"),
        ('description: "a \\"b\\" # c" # d', 'a "b" # c'),
        ("description: 'it''s'", "it's"),
        ("description: C# and #1", "C# and"),
        ("description : spaced", "spaced"),
    ],
)
def test_a_description_is_read_as_people_write_it(written: str, read_as: str) -> None:
    """Plain, with a colon that YAML forbids, quoted, in a block; always as one line."""
    assert described(written) == read_as


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "front matter"),
        ("name: tides\ndescription: a\n---\n", "front matter"),
        ("---\nname: tides\ndescription: a\n", "front matter"),
        ("---\n---\n", "its folder's `name`"),
        ("---\ndescription: a\n---\n", "its folder's `name`"),
        ("---\nname: ports\ndescription: a\n---\n", "its folder's `name`"),
        ("---\nname: tides\n---\n", "a `description`"),
        ("---\nname: tides\ndescription: [a, b]\n---\n", "a `description`"),
        ('---\nname: tides\ndescription: "no end\n---\n', "a `description`"),
        ('---\nname: tides\ndescription: "\\x"\n---\n', "a `description`"),
        ("---\nname: tides\ndescription: &a text\n---\n", "a `description`"),
        (f"---\nname: tides\ndescription: {'a' * 1_025}\n---\n", "a `description`"),
        ("---\n lost\nname: tides\n- description: a\n---\n", "a `description`"),
    ],
)
def test_a_fault_is_named(text: str, reason: str) -> None:
    """Half a sentence that names what is missing."""
    with pytest.raises(ValueError, match=re.escape(reason)):
        read_skill(text, FOLDER)


@pytest.mark.parametrize("name", ["Tides", "-tides", "ti--des", "tides-", "ti_des", "a" * 65])
def test_a_name_keeps_to_the_format(name: str) -> None:
    """Even where the folder is called so."""
    front = f"---\nname: {name}\ndescription: a\n---\n"
    with pytest.raises(ValueError, match="needs its folder's `name`"):
        read_skill(front, Path("/skills") / name)


@given(text=st.text("-\n :\"'>|#\\anmedscriptol", max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    """It is a skill, or it is said why not."""
    with suppress(ValueError):
        found = described(f"description: {text}")
        assert found == " ".join(found.split())
