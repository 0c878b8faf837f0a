"""The skills in a request: a list, and the whole texts of loaded ones (pure, S3-07).

It comes after the rules, so that a newly loaded skill changes nothing before it.
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from pathlib import Path

from zeroclaw.context.assembly import clip
from zeroclaw.context.prompt import FixedText, fixed
from zeroclaw.context.tokens import of_text
from zeroclaw.context_provider import ContextRequest
from zeroclaw.envelope import Address, Principal
from zeroclaw.text.escape import shortened
from zeroclaw.tool import SKILLS
from zeroclaw.tools.loading.skill import Skill

LISTED_CHARS = 200
"""The limit of a description in the list; the description's own limit is five times that."""
LIST_TOKENS, TEXT_TOKENS = 2_000, 16_000
"""The limits of the list, and of the texts; each is at most a quarter of a small window."""

_OPENING = (
    "The operator of this bot wrote skills. Before a task that one of them is for, load it with "
    "`load_skills`, and follow it:"
)


_PLACE = (
    " (commands of `shell` find its folder at `{place}`, read-only; paths in it count from there)"
)


def skills_provider(
    skills_for: Callable[[Principal, Address], Mapping[str, Skill]],
    folders_for: Callable[[Principal, Address, Collection[str]], Iterable[tuple[str, Path]]],
) -> FixedText:
    """Return the provider of the list and the texts.

    Args:
        skills_for: Returns the skills that a person may have in a chat.
        folders_for: Returns the loaded skills whose folders shell commands can read.
    """

    def write(request: ContextRequest) -> str:
        if not request.has_tools:
            return ""  # without tools nothing could load a skill
        principal, address = request.principal, request.address
        skills = skills_for(principal, address)
        folders = dict(folders_for(principal, address, request.skills))
        return skills_text(skills, request.skills, request.window, folders)

    return fixed("skills", write, label="skills")


def skills_text(
    skills: Mapping[str, Skill],
    loaded: Iterable[str],
    window: int | None,
    folders: Container[str] = (),
) -> str:
    """Return the list, empty for none, then the texts; the newest of them if not all fit."""
    if not skills:
        return ""
    every = skills.values()
    lines = (f"- {skill.name}: {shortened(skill.description, LISTED_CHARS)}" for skill in every)
    room = TEXT_TOKENS if window is None else min(TEXT_TOKENS, window // 4)
    texts = [clip("\n".join((_OPENING, *lines)), min(LIST_TOKENS, room))]
    for name in reversed([name for name in loaded if name in skills]):
        place = _PLACE.format(place=f"{SKILLS}/{name}") if name in folders else ""
        text = clip(f"Skill {name}, loaded{place}:\n{skills[name].text}", max(room, 0))
        texts.insert(1, text)
        room -= of_text(text)
    return "\n\n".join(filter(None, texts))
