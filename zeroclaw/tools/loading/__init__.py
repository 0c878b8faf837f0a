"""The tools that load more into a conversation: `load_tools` (groups of tools) and `load_skills`.

Running them changes nothing. The groups and skills of a conversation are derived from the calls in
its journal (`context/offers.py`), and the next request includes them. Skills are folders that
belong to the operator, in the one place that the configuration names; no tool can write there. The
resource of a call is `tools:<group>` or `skill:<name>`, so policy can decide who may load what.
"""

import asyncio
import os
import stat
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from pathlib import Path

from zeroclaw.envelope import Address, Principal
from zeroclaw.errors import ToolFailed, system_words
from zeroclaw.host.masks import is_hidden
from zeroclaw.text import catalogue
from zeroclaw.text.escape import escape_for_model
from zeroclaw.text.language import Localized
from zeroclaw.tool import Tool, ToolContext, ToolOutput
from zeroclaw.tools import ModelTool, quoted, readable
from zeroclaw.tools.loading.skill import (
    LOAD_SKILLS,
    LOAD_TOOLS,
    LoadSkillArguments,
    LoadToolsArguments,
    Skill,
    read_skill,
)
from zeroclaw.value import replace

FILE = "SKILL.md"
MOST_SKILLS, MOST_FILES = 100, 100
MOST_TEXT_BYTES, MOST_FILE_BYTES = 65_536, 262_144


def tools(
    groups: Callable[[Principal, Address], Collection[str]],
    skills: Callable[[Principal, Address], Mapping[str, Skill]],
) -> tuple[Tool, ...]:
    """Return both tools; `groups` and `skills` return what a principal may load in a chat."""

    async def load_tools(asked: LoadToolsArguments, context: ToolContext) -> ToolOutput:
        await asyncio.sleep(0)  # yield once, as tools that do I/O would
        if unknown := set(asked.groups) - set(groups(context.principal, context.address)):
            return _error(f"there is no group {', '.join(map(quoted, sorted(unknown)))}")
        return ToolOutput(text="Loaded: their tools are among yours from now on.")

    async def load_skills(asked: LoadSkillArguments, context: ToolContext) -> ToolOutput:
        await asyncio.sleep(0)
        found = skills(context.principal, context.address).get(asked.name)
        if found is None:
            return _error(f"there is no skill {quoted(asked.name)}")
        if asked.file:
            return ToolOutput(text=await asyncio.to_thread(_read_file, found, asked.file))
        more = "".join(f"\n- {quoted(one)}" for one in found.files)
        files = f" Its further files, to be read with `file`:{more}" if more else ""
        return ToolOutput(text=f"Loaded: the system message holds it from now on.{files}")

    return (
        ModelTool(
            spec=LOAD_TOOLS,
            model=LoadToolsArguments,
            summary=lambda asked: catalogue.WOULD_LOAD_TOOLS.about(
                groups=", ".join(map(quoted, asked.groups))
            ),
            find_resources=_group_resources,
            handler=load_tools,
        ),
        ModelTool(
            spec=LOAD_SKILLS,
            model=LoadSkillArguments,
            summary=_skill_line,
            find_resources=_skill_resources,
            handler=load_skills,
        ),
    )


def _error(text: str) -> ToolOutput:
    return ToolOutput(text=text, is_error=True)


def _skill_line(asked: LoadSkillArguments) -> Localized:
    if asked.file:
        return catalogue.WOULD_READ_OF_SKILL.about(name=quoted(asked.name), path=quoted(asked.file))
    return catalogue.WOULD_LOAD_SKILL.about(name=quoted(asked.name))


async def _group_resources(asked: LoadToolsArguments, context: ToolContext) -> tuple[str, ...]:
    del context
    return tuple(f"tools:{one}" for one in asked.groups)


async def _skill_resources(asked: LoadSkillArguments, context: ToolContext) -> tuple[str, ...]:
    del context
    return (f"skill:{asked.name}",)


# --- skill folders -------------------------------------------------------------------------------


def read_skills(
    place: Path, redact: Callable[[str], str]
) -> tuple[tuple[Skill, ...], tuple[str, ...]]:
    """Return the skills of a folder by name, and the faults of those left out; blocks.

    Raises:
        OSError: The folder can't be read.
    """
    root = Path(os.path.realpath(place, strict=True))  # an OSError where links lead in a circle
    folders = [one for one in sorted(root.iterdir()) if one.is_dir() and one.name[0] != "."]
    found: list[Skill] = []
    faults: list[str] = []
    for folder in folders[:MOST_SKILLS]:
        try:
            skill = read_skill(_text_of(folder), folder)
        except ValueError as error:
            faults.append(f"`{folder.name}` is left out: its `{FILE}` {error}")
            continue
        # A skill that people pass around may contain invisible characters.
        text, _ = escape_for_model(redact(skill.text))
        told, _ = escape_for_model(redact(skill.description))
        found.append(replace(skill, text=text, description=told, files=_files_in(folder)))
    if len(folders) > MOST_SKILLS:
        faults.append(f"more than {MOST_SKILLS} skills: those behind them are left out")
    return tuple(found), tuple(faults)


def _text_of(folder: Path) -> str:
    text = readable(_bytes_of(folder, FILE, MOST_TEXT_BYTES))
    if not text.is_text or text.bad_bytes:
        message = "is not UTF-8 text"
        raise ValueError(message)
    return text.text


def _files_in(folder: Path) -> tuple[str, ...]:
    """Return the names of a skill's other files, without links, hidden files and secrets."""
    files = (one for one in folder.rglob("*") if one.is_file() and not one.is_symlink())
    names = (one.relative_to(folder).as_posix() for one in files)
    seen = (one for one in names if one != FILE and not any(map(is_hidden, one.split("/"))))
    return tuple(sorted(islice(seen, MOST_FILES)))


def _read_file(skill: Skill, name: str) -> str:
    if name not in skill.files:
        message = f"the skill {quoted(skill.name)} has no file {quoted(name)}"
        raise ToolFailed(message)
    try:
        return readable(_bytes_of(skill.folder, name, MOST_FILE_BYTES)).text
    except ValueError as error:
        message = f"{quoted(name)} {error}"
        raise ToolFailed(message) from error


def _bytes_of(folder: Path, name: str, most_bytes: int) -> bytes:
    """Return the content of a file of a skill.

    Raises:
        ValueError: The file is missing, lies outside the folder, is too large, or is
            world-writable. The message is half a sentence.
    """
    try:
        real = Path(os.path.realpath(folder / name, strict=True))
        seen = real.stat()
        if not real.is_relative_to(folder) or folder.is_symlink():
            message = "leads out of its folder by a symbolic link"
        elif not stat.S_ISREG(seen.st_mode):
            message = "is no file"
        elif (seen.st_mode | folder.stat().st_mode) & stat.S_IWOTH:
            message = "can be written by everybody on this machine: `chmod -R o-w` its folder"
        elif seen.st_size > most_bytes:
            message = f"is larger than {most_bytes:,} bytes"
        else:
            return real.read_bytes()
    except OSError as error:
        message = f"can't be read: {system_words(error)}"
    raise ValueError(message)
