"""A skill, how its `SKILL.md` is read, and what a model writes to get one, or tools (pure).

The format is that of agentskills.io (read 2026-11): front matter in YAML with a `name`, which is the
folder's, and a `description`; below it the text. Of the front matter two texts are used, so a subset of
YAML is read: plain, quoted, and in a block (`>`, `|`). A plain text may hold a colon, which YAML forbids
and many people write. All other keys are passed over, `allowed-tools` too: what may run is the policy's.
"""

import json
import re
from pathlib import Path

from pydantic import Field

from zeroclaw.tool import ToolSpec
from zeroclaw.tools import ModelSchema, ToolArguments
from zeroclaw.value import Value

MOST_NAME_CHARS, MOST_DESCRIPTION_CHARS = 64, 1_024  # the format's own bounds

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_KEY = re.compile(r"([A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(.*)|)$")
_BLOCK = re.compile(r"[>|][-+0-9]{0,2}(?: +#.*)?$")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(?: +#.*)?$""")


class LoadToolsArguments(ToolArguments):
    """What `load_tools` takes."""

    groups: tuple[str, ...] = Field(min_length=1, max_length=50)


class LoadSkillArguments(ToolArguments):
    """What `load_skills` takes."""

    name: str = Field(min_length=1, max_length=200)
    file: str = Field(default="", max_length=500, description="One of its further files.")


def _spec(name: str, description: str, model: type[ToolArguments]) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=description,
        parameters=ModelSchema(model),
        effects=frozenset({"read"}),
        idempotent=True,
        risk="low",
        timeout_s=10.0,
    )


LOAD_TOOLS = _spec("load_tools", "Get the tools of groups.", LoadToolsArguments)
LOAD_SKILLS = _spec("load_skills", "Get a skill, or read a file of it.", LoadSkillArguments)


class Skill(Value):
    """Instructions of the operator for one kind of task.

    Attributes:
        name: Its folder's.
        description: When it is of use; one line.
        text: What the model reads once it is loaded.
        folder: Where it is.
        files: Its further files, from the folder down, sorted.
    """

    name: str
    description: str
    text: str
    folder: Path
    files: tuple[str, ...] = ()


def read_skill(text: str, folder: Path) -> Skill:
    """Read a `SKILL.md`; `folder` is where it stands.

    Raises:
        ValueError: It is none; why, in half a sentence.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    ends = (at for at, line in enumerate(lines) if at and line.rstrip() == "---")
    end = next(ends, 0) if lines and lines[0].rstrip() == "---" else 0
    if not end:
        message = "does not begin with front matter between two lines `---`"
        raise ValueError(message)
    fields = _fields(lines[1:end])
    name, description = fields.get("name", ""), fields.get("description", "")
    if name != folder.name or not _NAME.fullmatch(name) or len(name) > MOST_NAME_CHARS:
        message = (
            f"needs its folder's `name`: {MOST_NAME_CHARS} small letters, digits, single hyphens"
        )
        raise ValueError(message)
    if not 0 < len(description) <= MOST_DESCRIPTION_CHARS:
        message = (
            f"needs a `description`, plain or quoted, of 1 to {MOST_DESCRIPTION_CHARS} characters"
        )
        raise ValueError(message)
    body = "\n".join(lines[end + 1 :]).strip()
    return Skill(name=name, description=description, text=body, folder=folder)


def _fields(lines: list[str]) -> dict[str, str]:
    """Return the texts of the front matter by key, each on one line."""
    found: dict[str, list[str]] = {}
    key = ""
    for line in lines:
        if made := _KEY.match(line):
            key = made[1]
            found[key] = [made[2] or ""]
        elif key and line[:1] in {"", " ", "\t"}:
            found[key].append(line)
    return {key: _scalar(values) for key, values in found.items()}


def _scalar(lines: list[str]) -> str:
    """Return a text of YAML without its line breaks, empty for what is none."""
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
            return ""  # an escape that JSON does not have
    if text[:1] in set("\"'[]{}&*!|>%@`"):
        return ""
    return re.sub(r"(?:^| )#.*", "", text)
