"""How a `SKILL.md` is read: what people write, and what is wrong with it."""

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.tools.loading.skill import Skill, read_skill

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
    assert read_skill("\ufeff---\r\nname: tides\r\ndescription: a\r\n---\r\n", FOLDER) == Skill(
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
    ("text", "why"),
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
def test_what_is_wrong_is_said(text: str, why: str) -> None:
    """Half a sentence that names what is missing."""
    with pytest.raises(ValueError, match=re.escape(why)):
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
