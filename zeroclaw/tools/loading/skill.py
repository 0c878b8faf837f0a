"""A skill, the parser of its `SKILL.md`, and the arguments of the loading tools (pure).

The format is that of agentskills.io (read 2026-11): YAML front matter with a `name`, equal to the
folder's, and a `description`; the text follows. We use only these two strings, so the parser reads
a subset of YAML: plain, quoted and block (`>`, `|`) scalars. A plain scalar may contain a colon,
which YAML forbids but many people write. All other keys are ignored, `allowed-tools` too: policy
decides which tools may run.
"""

import json
import re
from pathlib import Path

from pydantic import Field

from zeroclaw.tools import ToolArguments, read_spec
from zeroclaw.value import Value

MAX_NAME_CHARS, MAX_DESCRIPTION_CHARS = 64, 1_024  # bounds set by the format

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_KEY = re.compile(r"([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(.*)|)$")
_BLOCK = re.compile(r"[>|][-+0-9]{0,2}(?: +#.*)?$")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(?: +#.*)?$""")


class LoadToolsArguments(ToolArguments):
    """Arguments of `load_tools`."""

    groups: tuple[str, ...] = Field(min_length=1, max_length=50)


class LoadSkillArguments(ToolArguments):
    """Arguments of `load_skills`."""

    name: str = Field(min_length=1, max_length=200)
    file: str = Field(default="", max_length=500, description="One of its further files.")


_TIMEOUT_S = 10.0
LOAD_TOOLS = read_spec("load_tools", "Get the tools of groups.", LoadToolsArguments, _TIMEOUT_S)
LOAD_SKILLS = read_spec(
    "load_skills", "Get a skill, or read a file of it.", LoadSkillArguments, _TIMEOUT_S
)


class Skill(Value):
    """The operator's instructions for one kind of task.

    Attributes:
        name: Equals the name of its folder.
        description: When to use it; one line.
        text: The instructions that the model reads once the skill is loaded.
        folder: The skill's folder.
        files: Its other files, relative to the folder, sorted.
    """

    name: str
    description: str
    text: str
    folder: Path
    files: tuple[str, ...] = ()


def read_skill(text: str, folder: Path) -> Skill:
    """Parse the `SKILL.md` of `folder`.

    Raises:
        ValueError: It is not a valid skill; the message says why, in half a sentence.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    ends = (index for index, line in enumerate(lines) if index and line.rstrip() == "---")
    end = next(ends, 0) if lines and lines[0].rstrip() == "---" else 0
    if not end:
        message = "does not begin with front matter between two lines `---`"
        raise ValueError(message)
    fields = _fields(lines[1:end])
    name, description = fields.get("name", ""), fields.get("description", "")
    if name != folder.name or not _NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        message = (
            f"needs its folder's `name`: {MAX_NAME_CHARS} small letters, digits, single hyphens"
        )
        raise ValueError(message)
    if not 0 < len(description) <= MAX_DESCRIPTION_CHARS:
        message = (
            f"needs a `description`, plain or quoted, of 1 to {MAX_DESCRIPTION_CHARS} characters"
        )
        raise ValueError(message)
    body = "\n".join(lines[end + 1 :]).strip()
    return Skill(name=name, description=description, text=body, folder=folder)


def _fields(lines: list[str]) -> dict[str, str]:
    """Return the scalars of the front matter by key, each on one line."""
    found: dict[str, list[str]] = {}
    key = ""
    for line in lines:
        if match := _KEY.match(line):
            key = match[1]
            found[key] = [match[2] or ""]
        elif key and line[:1] in {"", " ", "\t"}:
            found[key].append(line)
    return {key: _scalar(values) for key, values in found.items()}


def _scalar(lines: list[str]) -> str:
    """Return a YAML scalar without its line breaks, or an empty string if it is not one."""
    if _BLOCK.match(lines[0]):
        return " ".join(" ".join(lines[1:]).split())
    text = " ".join(" ".join(lines).split())
    if quoted := _QUOTED.match(text):
        inner = quoted[1]
        if inner.startswith("'"):
            return inner[1:-1].replace("''", "'")
        try:
            return " ".join(str(json.loads(inner)).split())
        except ValueError:
            return ""  # an escape that JSON does not know
    if text[:1] in set("\"'[]{}&*!|>%@`"):
        return ""
    return re.sub(r"(?:^| )#.*", "", text)
