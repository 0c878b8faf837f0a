"""The shared parts of tools: models as schemas and faults, bytes and names as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from tests.fakes.loop_steps import calls_made
from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.tools import (
    ModelSchema,
    Readable,
    ToolArguments,
    counted,
    fenced,
    parse,
    quoted,
    readable,
    without_controls,
)


class Sample(ToolArguments):
    name: str = Field(min_length=1, description="Who.")
    count: int = Field(default=1, ge=1, le=50)
    at: int = Field(default=0, ge=0, le=1_000_000)


def test_a_schema_holds_what_a_model_needs_and_no_titles() -> None:
    """The model reads types, defaults, descriptions and bounds that it may meet, and nothing else."""
    assert ModelSchema(Sample) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who."},
            "count": {"type": "integer", "maximum": 50, "default": 1},
            "at": {"type": "integer", "default": 0},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_defaults_are_filled_in() -> None:
    """The whole call is checked and hashed (S1-11)."""
    assert parse(Sample, {"name": "ada"}).model_dump() == {"name": "ada", "count": 1, "at": 0}


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        ({}, ("name: field required",)),
        (
            {"name": "a\0b", "count": 0, "sudo": True},
            (
                "name: must not hold a NUL character",
                "count: input should be greater than or equal to 1",
                "sudo: extra inputs are not permitted",
            ),
        ),
        ({"name": "\ud800"}, ("name: input should be a valid string, unable to parse",)),
        ({"name": {"secret": "hunter2"}}, ("name: input should be a valid string",)),
    ],
)
def test_every_fault_is_reported_at_once_without_the_value(
    arguments: dict[str, object], faults: tuple[str, ...]
) -> None:
    """A mismatch is a value the turn can show the model, complete in one round (S1-12)."""
    with pytest.raises(ToolArgumentsInvalid) as raised:
        parse(Sample, arguments)
    reported = raised.value.faults
    assert [message.startswith(fault) for message, fault in zip(reported, faults, strict=True)] == [
        True
    ] * len(faults)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", Readable(text="", is_text=True)),
        ("héllo".encode(), Readable(text="héllo", is_text=True)),
        (
            b"a long enough line with one \xff",
            Readable(text="a long enough line with one \ufffd", is_text=True, bad_bytes=1),
        ),
        ("an honest \ufffd".encode(), Readable(text="an honest \ufffd", is_text=True)),
        (
            b"\x7fELF\0\1",
            Readable(text="[6 bytes of data, not text: 7f 45 4c 46 00 01]", is_text=False),
        ),
        (
            bytes(range(128, 192)),
            Readable(
                text="[64 bytes of data, not text:"
                " 80 81 82 83 84 85 86 87 88 89 8a 8b 8c 8d 8e 8f …]",
                is_text=False,
            ),
        ),
    ],
)
def test_bytes_are_shown_as_text_or_described(data: bytes, shown: Readable) -> None:
    """A stray byte is marked; data is described and never dumped."""
    assert readable(data) == shown


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[1;31mred\x1b[0m\tgreen\r\n", "red\tgreen\n"),
        ("\x1b]0;a title\x07body", "body"),
        ("50%\r100%", "50%\n100%"),
        ("a\x00b\x08c\x9bd", "abcd"),
    ],
)
def test_what_moves_a_cursor_is_dropped(text: str, plain: str) -> None:
    """A command can't repaint what a person reads."""
    assert without_controls(text) == plain


@given(text=st.text(max_size=400))
def test_a_name_is_quoted_on_one_line(text: str) -> None:
    """Whatever a model calls a file, a card keeps its one line and its backticks."""
    line = quoted(text)
    assert line.isprintable()
    assert (line[0], line[-1], line.count("`")) == ("`", "`", 2)
    assert len(line) <= 203


@given(st.text("`a\n", max_size=20))
def test_no_text_closes_its_fence(text: str) -> None:
    """It has one backtick more than any run in the text, and three at least."""
    fence, _, rest = fenced(text).partition("\n")
    assert set(fence) == {"`"}
    assert rest == f"{text.rstrip()}\n{fence}"
    assert fence not in text
    assert fence == "```" or fence[1:] in text


def test_a_fence_around_many_backticks_takes_no_time() -> None:
    """The text is read once (the test's time-out is the assertion)."""
    assert len(fenced("`" * 1_000_000)) == 3_000_004


def test_one_is_not_many() -> None:
    """People read cards and results, so what is counted agrees with its number."""
    assert [counted(number, "byte") for number in (0, 1, 1200)] == [
        "0 bytes",
        "1 byte",
        "1,200 bytes",
    ]


def test_only_the_quoted_part_of_a_text_is_escaped() -> None:
    """The line about a call may quote an argument of a hundred thousand invisible characters (P9)."""
    assert calls_made(lambda: quoted("\u202e" * 100_000)) < 10_000
    assert quoted("\r\n" * 200 + "x") == f"`{' ' * 199}…`"
