"""Entities are counted in UTF-16 units, sorted, and detected in plain text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.telegram.emulator.entities import (
    MAX_ENTITIES,
    Entity,
    Formatted,
    normalized,
    parse_entities,
    read_text,
    utf16,
    with_detected,
)
from channels.telegram.emulator.refusals import Refused

Mark = tuple[str, int, int]
NO_MARKS: list[Mark] = []


def entity(kind: str, offset: int, length: int) -> Entity:
    return Entity(type=kind, offset=offset, length=length)


def settle(text: str, *marks: Mark) -> tuple[str, list[Mark]]:
    formatted = normalized(text, [entity(*mark) for mark in marks])
    return formatted.text, [
        (entity.type, entity.offset, entity.length) for entity in formatted.entities
    ]


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))))
def test_lengths_are_those_of_utf_16(text: str) -> None:
    assert utf16(text) == len(text.encode("utf-16-le")) // 2
    assert Formatted(text=text).length == utf16(text)


@pytest.mark.parametrize(
    ("text", "marks", "expected"),
    [
        ("ab", [("bold", 1, 1), ("italic", 0, 1)], ("ab", [("italic", 0, 1), ("bold", 1, 1)])),
        (" ab ", [("bold", 0, 4)], ("ab", [("bold", 0, 2)])),
        ("  a", [("bold", 0, 1)], ("a", NO_MARKS)),
        ("a", [("bold", 0, 0)], ("a", NO_MARKS)),
        ("abc", [("code", 0, 3), ("bold", 1, 1)], ("abc", [("code", 0, 3)])),
        ("abc", [("bold", 0, 3), ("bold", 1, 1)], ("abc", [("bold", 0, 3)])),
        (
            "abc",
            [("blockquote", 0, 3), ("expandable_blockquote", 1, 1)],
            ("abc", [("blockquote", 0, 3)]),
        ),
        ("abc", [("bold", 0, 2), ("italic", 1, 2)], ("abc", [("bold", 0, 2), ("italic", 1, 1)])),
        ("ab", [("bold", 0, 2), ("italic", 0, 2)], ("ab", [("italic", 0, 2), ("bold", 0, 2)])),
        ("😀a", [("bold", 2, 1)], ("😀a", [("bold", 2, 1)])),
    ],
)
def test_marks_are_put_in_order(
    text: str, marks: list[Mark], expected: tuple[str, list[Mark]]
) -> None:
    assert settle(text, *marks) == expected


@pytest.mark.parametrize(
    ("text", "mark", "reason"),
    [
        ("ab", (0, 3), "ends after the end of the text at UTF-16 offset 2"),
        ("ab", (-1, 1), "incorrect offset or length"),
        ("ab", (0, -1), "incorrect offset or length"),
        ("😀", (1, 1), "begins in a middle of a UTF-16 symbol"),
        ("😀", (0, 1), "ends in a middle of a UTF-16 symbol"),
        ("\ud800", (0, 1), "strings must be encoded in UTF-8"),
    ],
)
def test_a_mark_outside_of_the_text_is_refused(
    text: str, mark: tuple[int, int], reason: str
) -> None:
    with pytest.raises(Refused, match=reason):
        normalized(text, [entity("bold", *mark)])


def test_a_hundred_marks_are_kept() -> None:
    marks = [entity("bold", at, 1) for at in range(0, 240, 2)]
    assert len(normalized("a " * 120, marks).entities) == MAX_ENTITIES


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("bold", "expected an Object"),
        ({"type": "bold", "offset": "0", "length": 1}, "must be whole numbers"),
        ({"type": "bold", "offset": 0, "length": True}, "must be whole numbers"),
        ({"type": "loud", "offset": 0, "length": 1}, "unsupported type"),
    ],
)
def test_a_list_of_marks_is_checked(value: object, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        parse_entities([value])


def test_a_mark_keeps_its_fields() -> None:
    value = {"type": "text_link", "offset": 0, "length": 1, "url": "http://x.org/", "else": 1}
    (entity,) = parse_entities([value])
    assert entity.to_json() == {
        "type": "text_link",
        "offset": 0,
        "length": 1,
        "url": "http://x.org/",
    }


@pytest.mark.parametrize(
    ("text", "kind", "marked"),
    [
        ("see https://x.org/a?b=1.", "url", "https://x.org/a?b=1"),
        ("ann@example.com", "email", "ann@example.com"),
        ("/start now", "bot_command", "/start"),
        ("/stop@zero_bot", "bot_command", "/stop@zero_bot"),
        ("hey @zero_bot!", "mention", "@zero_bot"),
        ("😀 #news", "hashtag", "#news"),
    ],
)
def test_links_and_mentions_are_detected(text: str, kind: str, marked: str) -> None:
    (detected,) = with_detected(Formatted(text=text)).entities
    assert detected == entity(kind, utf16(text[: text.index(marked)]), utf16(marked))


def test_code_and_links_have_no_detection() -> None:
    marks = (entity("code", 0, 6),)
    assert with_detected(Formatted(text="/start", entities=marks)).entities == marks
    assert with_detected(Formatted(text="a/b 1@2 #1")).entities == ()


def test_markup_beats_a_list_and_detection_can_be_disabled() -> None:
    listed: list[object] = [{"type": "bold", "offset": 0, "length": 1}]
    result = read_text("/a", entities=listed, parse=None, detect=False)
    assert result.entities == (entity("bold", 0, 1),)
    parsed = read_text("/a", entities=listed, parse=lambda text: (text, ()), detect=False)
    assert parsed.entities == ()
    assert read_text("/a", entities=None, parse=None).entities == (entity("bot_command", 0, 2),)
