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
MAX_SKILLS, MAX_FILES = 100, 100
MAX_TEXT_BYTES, MAX_FILE_BYTES = 65_536, 262_144


def tools(
    groups: Callable[[Principal, Address], Collection[str]],
    skills: Callable[[Principal, Address], Mapping[str, Skill]],
) -> tuple[Tool, ...]:
    """Return both tools; `groups` and `skills` return those that a principal may load in a chat."""

    async def load_tools(arguments: LoadToolsArguments, context: ToolContext) -> ToolOutput:
        await asyncio.sleep(0)  # yield once, as tools that do I/O would
        if unknown := set(arguments.groups) - set(groups(context.principal, context.address)):
            named = ", ".join(map(quoted, sorted(unknown)))
            return ToolOutput(text=f"there is no group {named}", is_error=True)
        return ToolOutput(text="Loaded: their tools are among yours from now on.")

    async def load_skills(arguments: LoadSkillArguments, context: ToolContext) -> ToolOutput:
        await asyncio.sleep(0)
        skill = skills(context.principal, context.address).get(arguments.name)
        if skill is None:
            return ToolOutput(text=f"there is no skill {quoted(arguments.name)}", is_error=True)
        if arguments.file:
            return ToolOutput(text=await asyncio.to_thread(_read_file, skill, arguments.file))
        listed = "".join(f"\n- {quoted(file)}" for file in skill.files)
        files = f" Its further files, to be read with `file`:{listed}" if listed else ""
        return ToolOutput(text=f"Loaded: the system message holds it from now on.{files}")

    return (
        ModelTool(
            spec=LOAD_TOOLS,
            model=LoadToolsArguments,
            summary=lambda arguments: catalogue.WOULD_LOAD_TOOLS.about(
                groups=", ".join(map(quoted, arguments.groups))
            ),
            find_resources=lambda arguments, _: tuple(
                f"tools:{group}" for group in arguments.groups
            ),
            handler=load_tools,
        ),
        ModelTool(
            spec=LOAD_SKILLS,
            model=LoadSkillArguments,
            summary=_skill_line,
            find_resources=lambda arguments, _: (f"skill:{arguments.name}",),
            handler=load_skills,
        ),
    )


def _skill_line(arguments: LoadSkillArguments) -> Localized:
    if arguments.file:
        return catalogue.WOULD_READ_OF_SKILL.about(
            name=quoted(arguments.name), path=quoted(arguments.file)
        )
    return catalogue.WOULD_LOAD_SKILL.about(name=quoted(arguments.name))


# --- skill folders -------------------------------------------------------------------------------


def read_skills(
    directory: Path, redact: Callable[[str], str]
) -> tuple[tuple[Skill, ...], tuple[str, ...]]:
    """Return the skills of a folder by name, and the faults of those left out; blocks.

    Raises:
        OSError: The folder can't be read.
    """
    root = Path(os.path.realpath(directory, strict=True))  # an OSError where links lead in a circle
    folders = [path for path in sorted(root.iterdir()) if path.is_dir() and path.name[0] != "."]
    skills: list[Skill] = []
    faults: list[str] = []
    for folder in folders[:MAX_SKILLS]:
        try:
            skill = read_skill(_text_of(folder), folder)
        except ValueError as error:
            faults.append(f"`{folder.name}` is left out: its `{FILE}` {error}")
            continue
        # A skill that people pass around may contain invisible characters.
        text, _ = escape_for_model(redact(skill.text))
        description, _ = escape_for_model(redact(skill.description))
        skills.append(replace(skill, text=text, description=description, files=_files_in(folder)))
    if len(folders) > MAX_SKILLS:
        faults.append(f"more than {MAX_SKILLS} skills: the rest is left out")
    return tuple(skills), tuple(faults)


def _text_of(folder: Path) -> str:
    text = readable(_bytes_of(folder, FILE, MAX_TEXT_BYTES))
    if not text.is_text or text.bad_bytes:
        message = "is not UTF-8 text"
        raise ValueError(message)
    return text.text


def _files_in(folder: Path) -> tuple[str, ...]:
    """Return the names of a skill's other files, without links, hidden files and secrets."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    names = (path.relative_to(folder).as_posix() for path in files)
    listed = (name for name in names if name != FILE and not any(map(is_hidden, name.split("/"))))
    return tuple(sorted(islice(listed, MAX_FILES)))


def _read_file(skill: Skill, name: str) -> str:
    if name not in skill.files:
        message = f"the skill {quoted(skill.name)} has no file {quoted(name)}"
        raise ToolFailed(message)
    try:
        return readable(_bytes_of(skill.folder, name, MAX_FILE_BYTES)).text
    except ValueError as error:
        message = f"{quoted(name)} {error}"
        raise ToolFailed(message) from error


def _bytes_of(folder: Path, name: str, max_bytes: int) -> bytes:
    """Return the content of a file of a skill.

    Raises:
        ValueError: The file is missing, lies outside the folder, is too large, or is
            world-writable. The message is half a sentence.
    """
    try:
        real = Path(os.path.realpath(folder / name, strict=True))
        status = real.stat()
        if not real.is_relative_to(folder) or folder.is_symlink():
            message = "leads out of its folder by a symbolic link"
        elif not stat.S_ISREG(status.st_mode):
            message = "is no file"
        elif (status.st_mode | folder.stat().st_mode) & stat.S_IWOTH:
            message = "can be written by everybody on this machine: `chmod -R o-w` its folder"
        elif status.st_size > max_bytes:
            message = f"is larger than {max_bytes:,} bytes"
        else:
            return real.read_bytes()
    except OSError as error:
        message = f"can't be read: {system_words(error)}"
    raise ValueError(message)
