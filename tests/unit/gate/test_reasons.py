"""Why the policy decided so, in the language of whoever reads it."""

from datetime import UTC, datetime
from typing import get_args

import pytest

from zeroclaw.envelope import Principal
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import (
    SHIPPED,
    PolicySet,
    Reason,
    Statement,
    StatementEffect,
    reasons_of,
    why_asked,
    why_refused,
)
from zeroclaw.gate.shipped import Autonomy, assemble
from zeroclaw.text.language import Language

ANN = Principal(id="person:ann", roles=frozenset(), channel="chat", sender="1")
QUERY = Query(principal=ANN, action="command:halt", now=datetime(2026, 1, 1, tzinfo=UTC))
OWN = Reason(statement="mine", note="ask the boss")
READS = Reason(statement="supervised.effects", note="it does more than read")


def policy(effect: StatementEffect, note: str = "") -> PolicySet:
    return PolicySet(
        (
            Statement(
                id="mine", effect=effect, principals=("anyone",), actions=("command:*",), note=note
            ),
        )
    )


@pytest.mark.parametrize(
    ("language", "why"),
    [
        ("en", "`supervised.effects` asks: it does more than read; `mine` asks: ask the boss"),
        (
            "de",
            "`supervised.effects` fragt nach: es tut mehr als nur lesen; `mine` fragt nach: ask the boss",
        ),
    ],
)
def test_what_ships_is_translated_and_what_an_operator_wrote_is_not(
    language: Language, why: str
) -> None:
    assert why_asked((READS, OWN), language) == why


def test_a_reason_without_a_note_is_a_statement() -> None:
    assert why_asked((Reason(statement="mine"),), "de") == "`mine` fragt nach"


@pytest.mark.parametrize(
    ("rules", "english", "german"),
    [
        (
            PolicySet(()),
            "no statement allows `command:halt` for `person:ann`",
            "keine Regel erlaubt `command:halt` für `person:ann`",
        ),
        (policy("deny", "not now"), "`mine` denies it: not now", "`mine` verbietet es: not now"),
        (policy("ask"), "`mine` asks", "`mine` fragt nach"),
    ],
)
def test_a_person_reads_why_they_may_not(rules: PolicySet, english: str, german: str) -> None:
    """In English it is what the decision itself says (P10)."""
    assert why_refused(rules, QUERY, "en") == english == rules.decide(QUERY).why
    assert why_refused(rules, QUERY, "de") == german


def test_every_translated_statement_is_one_that_ships_and_says_the_same() -> None:
    """An id that is renamed would be told in English to everybody."""
    shipped = [one for level in get_args(Autonomy) for one in assemble(level).statements]
    notes = {one.id: one.note for one in shipped if one.effect == "ask"}
    assert {id_: says.en for id_, says in SHIPPED.items()} == notes


def test_the_reasons_of_a_decision_are_its_statements() -> None:
    rules = policy("deny", "not now")
    assert reasons_of(rules, rules.decide(QUERY)) == (Reason(statement="mine", note="not now"),)
    assert reasons_of(rules, PolicySet(()).decide(QUERY)) == ()
