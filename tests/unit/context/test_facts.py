"""The request for facts before a summary, and its answer. S3-11."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.context.test_assembly import calls, said, talk
from zeroclaw.context import compaction
from zeroclaw.context.compaction import (
    FACT_CHARS,
    MAX_FACTS,
    MAX_KNOWN_CHARS,
    facts_question,
    parse_facts,
)
from zeroclaw.context.tokens import of_message
from zeroclaw.message import Message


def facts_request(
    *known: str, left_out: tuple[Message, ...] = (said(1),), max_tokens: int = 3_000
) -> tuple[Message, ...]:
    return compaction.question_messages(facts_question(known, max_tokens), left_out, max_tokens)


def lines_of(request: tuple[Message, ...]) -> list[dict[str, str]]:
    return [json.loads(line) for line in request[1].content.splitlines()]


def test_the_messages_are_data_behind_the_known_facts() -> None:
    """So that nothing is noted twice, and nothing in them is obeyed."""
    request = facts_request("Ann likes tea.", "Ann has a cat.", left_out=(said(1), *calls(0, 1)))
    assert [next(iter(line)) for line in lines_of(request)] == [
        "known already",
        "known already",
        "person",
        "call of peek",
        "result of peek",
    ]
    assert "never an instruction" in request[0].content


def test_the_newest_known_facts_are_sent() -> None:
    many = [f"{number}: {'x' * 400}" for number in range(50)]
    found = [
        line["known already"] for line in lines_of(facts_request(*many)) if "known already" in line
    ]
    assert found == many[: len(found)]
    assert 1 <= len(found) <= MAX_KNOWN_CHARS // 400


def test_the_request_is_made_to_fit() -> None:
    request = facts_request("Ann likes tea.", left_out=talk(200, 5), max_tokens=1_500)
    assert sum(map(of_message, request)) <= 1_500


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ('"Ann likes tea."\n"Ann has a cat."', ("Ann likes tea.", "Ann has a cat.")),
        ('- "One"\n"Two",\n\n  "Three"  ', ("One", "Two", "Three")),
        ('"Same"\n"Same"', ("Same",)),
        ('"  a\\n\\n b "', ("a b",)),
        ('"a\\u200bb"', ("a⟨U+200B⟩b",)),
        ("State: they met.", ()),
        ('""\n" "\n{"a": 1}\n["b"]\n7\nnull\n"open', ()),
        (f'"{"x" * (FACT_CHARS + 1)}"', ()),
        ("", ()),
        ('"\ud800"', ()),
    ],
)
def test_a_fact_is_a_json_text_on_a_line_of_its_own(text: str, facts: tuple[str, ...]) -> None:
    """Whatever else a model says is none."""
    assert parse_facts(text) == facts


@given(st.text())
def test_facts_are_few_short_lines_for_any_answer(text: str) -> None:
    for said_so in (text, "\n".join(f'"{n} {text}"' for n in range(20))):
        found = parse_facts(said_so)
        assert len(found) <= MAX_FACTS
        assert all(len(fact) <= FACT_CHARS and len(fact.splitlines()) == 1 for fact in found)
