"""The fixed words of a card, as every chat platform lays them out."""

from datetime import UTC, datetime
from typing import Literal

import pytest

from zeroclaw.card_words import NAMELESS, CardWords
from zeroclaw.channel import Ending
from zeroclaw.envelope import ApprovalId, Choice
from zeroclaw.text.language import Language

How = Literal["approved", "denied", "expired", "stopped"]


def ending(how: How, by: str = "") -> Ending:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Ending(approval=ApprovalId("a"), how=how, by=by, at=at)


@pytest.mark.parametrize(
    ("language", "head", "number", "file"),
    [
        (
            "en",
            "ann asks; answer until noon",
            "/approve 3 or /deny 3",
            "The whole of it is in the file.",
        ),
        (
            "de",
            "ann fragt; Antwort bis noon",
            "/approve 3 oder /deny 3",
            "Das Ganze steht in der Datei.",
        ),
    ],
)
def test_a_card_is_put_in_the_language_of_its_reader(
    language: Language, head: str, number: str, file: str
) -> None:
    words = CardWords(language)
    assert (words.head("ann", "noon"), words.by_number(3), words.in_file()) == (head, number, file)


@pytest.mark.parametrize(
    ("choice", "label", "short"),
    [
        ("once", "Einmal freigeben", "2 ✓ einmal"),
        ("for_a_time", "Eine Zeit lang freigeben", "2 ✓ länger"),
        ("deny", "Ablehnen", "2 ✗ nein"),
        ("deny_with_reason", "Ablehnen, weil …", "2 ✗ warum …"),
    ],
)
def test_a_button_says_what_it_does(choice: Choice, label: str, short: str) -> None:
    words = CardWords("de")
    assert (words.label(choice), words.short_label(choice, 2)) == (label, short)


@pytest.mark.parametrize(
    ("how", "by", "english", "german"),
    [
        ("approved", "ann", "approved by ann", "freigegeben von ann"),
        ("denied", "ann", "denied by ann", "abgelehnt von ann"),
        ("expired", "", "expired, it did not run", "abgelaufen, nicht ausgeführt"),
        ("stopped", "", "stopped, it did not run", "abgebrochen, nicht ausgeführt"),
        (
            "stopped",
            "ann",
            "stopped by ann, it did not run",
            "abgebrochen von ann, nicht ausgeführt",
        ),
    ],
)
def test_a_card_says_how_its_question_ended(how: How, by: str, english: str, german: str) -> None:
    """And by whom, where a person ended it (P5)."""
    texts = [CardWords(language).ended(ending(how), by) for language in ("en", "de")]
    assert texts == [english, german]


def test_who_has_no_name_is_called_in_the_language_of_the_card() -> None:
    texts = {
        name: CardWords("de").ended(ending("denied"), name) for name in (*NAMELESS, "the olga")
    }
    assert texts == {
        "the console": "abgelehnt von der Konsole",
        "the operator on this machine": "abgelehnt von dem Operator an diesem Rechner",
        "the code that the daemon printed": "abgelehnt von dem Code, den der Daemon angezeigt hat",
        "the configuration": "abgelehnt von der Konfiguration",
        "the olga": "abgelehnt von the olga",
    }
