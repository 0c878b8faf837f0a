"""How a sentence is said in several languages."""

import pytest

from zeroclaw.text.language import Language, Sentence, decimal, language_of

GREETING = Sentence(en="Hello {name}, {what}.", de="Hallo {name}, {what}.")
BUSY = Sentence(en="I am busy", de="ich habe zu tun")
WAITING = Sentence(
    en="{count} messages wait",
    de="{count} Nachrichten warten",
    one=Sentence(en="a message waits", de="eine Nachricht wartet"),
)


@pytest.mark.parametrize(
    ("language", "said"), [("en", "Hello Ann, I am busy."), ("de", "Hallo Ann, ich habe zu tun.")]
)
def test_a_sentence_in_a_sentence_is_said_in_the_same_language(
    language: Language, said: str
) -> None:
    assert GREETING.to(language, name="Ann", what=BUSY) == said
    assert GREETING.about(name="Ann", what=BUSY).to(language) == said


@pytest.mark.parametrize(
    ("count", "language", "said"),
    [
        (0, "en", "0 messages wait"),
        (1, "en", "a message waits"),
        (2, "en", "2 messages wait"),
        (1, "de", "eine Nachricht wartet"),
        (2, "de", "2 Nachrichten warten"),
    ],
)
def test_one_is_said_otherwise_than_many(count: int, language: Language, said: str) -> None:
    assert WAITING.to(language, count=count) == said


def test_a_fact_is_never_taken_for_a_place_to_fill_in() -> None:
    """What a person or a model wrote stays as it is written, whatever it holds."""
    assert GREETING.to("en", name="{what}", what="{0.__class__}") == "Hello {what}, {0.__class__}."


def test_a_missing_fact_is_a_fault() -> None:
    with pytest.raises(KeyError):
        GREETING.to("en", name="Ann")


@pytest.mark.parametrize(
    ("text", "found"),
    [("de", "de"), (" Deutsch ", "de"), ("EN", "en"), ("english", "en"), ("fr", None), ("", None)],
)
def test_a_language_is_named_by_its_code_or_as_it_calls_itself(
    text: str, found: Language | None
) -> None:
    assert language_of(text) == found


def test_a_number_is_written_as_it_is_read_there() -> None:
    assert [decimal(1234.56, one) for one in ("en", "de")] == ["1234.6", "1234,6"]
