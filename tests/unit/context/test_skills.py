"""What the model is told of skills."""

from pathlib import Path

import pytest

from tests.fakes.context_requests import context_request
from zeroclaw.context.skills import LIST_TOKENS, TEXT_TOKENS, skills_provider, told
from zeroclaw.tools.loading.skill import Skill
from zeroclaw.value import replace

TIDES = Skill(name="tides", description="When to sail.", text="Add an hour.", folder=Path("/s"))
PORTS = replace(TIDES, name="ports", description="x" * 300, text="Kiel.")
SKILLS = {one.name: one for one in (TIDES, PORTS)}


async def test_skills_are_listed_and_the_loaded_ones_told_whole() -> None:
    """As rules, to whom they are for and where a model can load them. S3-07."""
    provider = skills_provider(
        lambda who, _: SKILLS if who.id == "person:sam" else {},
        lambda _who, _where, loaded: [(one, Path("/s")) for one in loaded],
    )
    request = context_request()
    request = replace(
        request, principal=replace(request.principal, id="person:sam"), skills=("tides",)
    )
    (text,) = await provider.texts(replace(request, has_tools=True))
    assert (text.is_data, text.name) == (False, "skills")
    assert text.text == told(SKILLS, ("tides",), None, {"tides"})
    (nothing,) = await provider.texts(replace(request, has_tools=False))
    stranger = replace(
        request, principal=replace(request.principal, id="person:mo"), has_tools=True
    )
    (of_nobody,) = await provider.texts(stranger)
    assert (nothing.text, of_nobody.text) == ("", "")


def test_what_is_loaded_stands_behind_the_list_in_its_order() -> None:
    """So that what stands before it stays; one that is gone since is left out. S3-07."""
    listed = told(SKILLS, (), None)
    assert listed.endswith(f"- tides: When to sail.\n- ports: {'x' * 199}…")
    added = "\n\nSkill ports, loaded:\nKiel.\n\nSkill tides, loaded:\nAdd an hour."
    assert told(SKILLS, ("ports", "gone", "tides"), None) == listed + added


def test_where_commands_find_a_folder_stands_with_its_text() -> None:
    """Of those alone that they find."""
    text = told(SKILLS, ("ports", "tides"), None, {"tides"})
    assert "\n\nSkill ports, loaded:\n" in text
    assert (
        "Skill tides, loaded (commands of `shell` find its folder at `/skills/tides`, read-only;"
        " paths in it count from there):\nAdd an hour."
    ) in text


@pytest.mark.parametrize("window", [2_048, None])
def test_skills_keep_to_their_part_of_the_window(window: int | None) -> None:
    """Where not all fit, what was loaded last is there, if only its beginning."""
    every = (replace(TIDES, name=f"s{one}", text=f"text {one} " * 9_000) for one in range(90))
    many = {one.name: one for one in every}
    text = told(many, many, window)
    assert "Skill s89, loaded:\ntext 89" in text
    assert "Skill s1, loaded" not in text
    room = TEXT_TOKENS if window is None else window // 4
    assert len(text) < 5 * (room + min(LIST_TOKENS, room))
