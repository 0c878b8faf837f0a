"""The catalogue of what the bot says: whole in every language, used, and filled in rightly.

That no room says a sentence of its own is held in `test_sentences.py`.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from string import Formatter

import pytest

from zeroclaw.text import catalogue
from zeroclaw.text.language import Language, Sentence, decimal, language_of

ROOT = Path(__file__).parents[3]
SENTENCES = {name: value for name, value in vars(catalogue).items() if isinstance(value, Sentence)}


def facts_of(template: str) -> frozenset[str]:
    """The names in braces that stand in a text."""
    return frozenset(name for _, name, _, _ in Formatter().parse(template) if name is not None)


def forms(sentence: Sentence) -> tuple[Sentence, ...]:
    return (sentence, *forms(sentence.one)) if sentence.one else (sentence,)


@cache
def nodes() -> tuple[ast.AST, ...]:
    """All of the product's code that may name a sentence; read once, by the worker that needs it."""
    files = chain((ROOT / "zeroclaw").rglob("*.py"), (ROOT / "channels").rglob("*.py"))
    texts = (file.read_text(encoding="utf-8") for file in files)
    trees = (ast.parse(text) for text in texts if re.search(r"catalogue|\.(to|about)\(", text))
    naming = ast.Attribute | ast.AnnAssign | ast.Call
    return tuple(node for tree in trees for node in ast.walk(tree) if isinstance(node, naming))


FORMS = [(name, form) for name, sentence in SENTENCES.items() for form in forms(sentence)]


def named_in(node: ast.expr) -> tuple[str, ...]:
    """The names of the sentences that an expression is one of."""
    match node:
        case ast.Attribute(value=ast.Name(id="catalogue"), attr=name):
            return (name,)
        case ast.IfExp(body=one, orelse=other):
            return (*named_in(one), *named_in(other))
        case _:
            return ()


@cache
def tables() -> dict[str, tuple[str, ...]]:
    """The sentences of each table that one is chosen from, by the table's name."""
    found: dict[str, tuple[str, ...]] = {}
    for node in nodes():
        match node:
            case ast.AnnAssign(target=ast.Name(id=table), value=ast.Dict(values=values)):
                found[table] = tuple(name for value in values for name in named_in(value))
            case _:
                pass
    return found


def used() -> Counter[str]:
    """How often each sentence is named in the code."""
    whole = (node for node in nodes() if isinstance(node, ast.Attribute))
    return Counter(name for node in whole for name in named_in(node))


def filled() -> Iterator[tuple[str, frozenset[str]]]:
    """The name of each sentence that is filled in where it is named, and the facts it is given."""
    for node in nodes():
        match node:
            case ast.Call(func=ast.Attribute(value=text, attr="to" | "about"), keywords=keywords):
                given = frozenset(keyword.arg or "**" for keyword in keywords)
                yield from ((name, given) for name in named_in(text))
                match text:
                    case ast.Subscript(value=ast.Name(id=table)):
                        # Each takes what it has a place for.
                        chosen = tables().get(table, ())
                        yield from ((name, given & facts_of(SENTENCES[name].en)) for name in chosen)
                    case _:
                        pass
            case _:
                pass


def test_every_language_names_the_same_facts() -> None:
    """A fact that one language leaves out never reaches its readers."""
    assert [name for name, form in FORMS if facts_of(form.de) != facts_of(form.en)] == []
    assert [
        name for name, form in FORMS if not facts_of(form.en) <= facts_of(SENTENCES[name].en)
    ] == []


def test_every_language_keeps_the_words_to_be_typed() -> None:
    """What stands in backticks is typed or looked for as it is, and is not translated."""
    typed = {name: Counter(form.en.split("`")[1::2]) for name, form in FORMS}
    quoted = {name: Counter(form.de.split("`")[1::2]) for name, form in FORMS}
    assert quoted == typed


def test_every_language_says_it_in_its_own_words() -> None:
    """All but what has no words of its own, and only joins others."""
    same = [(name, re.sub(r"\{\w+\}", "", form.en)) for name, form in FORMS if form.en == form.de]
    assert [name for name, words in same if re.search(r"\w", words)] == []


def test_every_language_ends_alike() -> None:
    """A sentence that is put together with others fits into them in every language."""
    assert [name for name, form in FORMS if ends(form.en) != ends(form.de)] == []


def ends(text: str) -> tuple[str, str]:
    """The spaces and signs at a text's beginning and end, those of its facts left out."""
    before = text[: len(text) - len(text.lstrip(" \n,-_"))]
    after = text[len(text.rstrip(" .:_")) :]
    return before, after


def test_no_sentence_is_there_twice() -> None:
    counts = Counter((form.en, form.de) for _, form in FORMS)
    assert [sentence for sentence, times in counts.items() if times > 1] == []


def test_every_sentence_is_used() -> None:
    """An unused sentence is removed with its translation."""
    assert sorted(set(SENTENCES) - set(used())) == []


def test_every_sentence_is_given_its_facts_and_no_others() -> None:
    """A missing fact would be found only when a person should have read it."""
    expected = {
        name: facts_of(sentence.en) | (frozenset({"count"}) if sentence.one else frozenset[str]())
        for name, sentence in SENTENCES.items()
    }
    assert [(name, sorted(given)) for name, given in filled() if given != expected[name]] == []


def test_a_sentence_with_facts_is_filled_in_where_it_is_named() -> None:
    """So that the test above sees every one of them."""
    bare = used() - Counter(name for name, _ in filled())
    assert [name for name in bare if facts_of(SENTENCES[name].en)] == []


def test_the_catalogue_holds_nothing_else() -> None:
    """One file to translate: sentences, and no code that a translator would have to read."""
    tree = ast.parse((ROOT / "zeroclaw" / "text" / "catalogue.py").read_text(encoding="utf-8"))
    assert {type(node).__name__ for node in tree.body} == {"Expr", "ImportFrom", "Assign"}


# --- how a sentence is said in several languages --------------------------------------------------

GREETING = Sentence(en="Hello {name}, {what}.", de="Hallo {name}, {what}.")
BUSY = Sentence(en="I am busy", de="ich habe zu tun")
WAITING = Sentence(
    en="{count} messages wait",
    de="{count} Nachrichten warten",
    one=Sentence(en="a message waits", de="eine Nachricht wartet"),
)


@pytest.mark.parametrize(
    ("language", "text"), [("en", "Hello Ann, I am busy."), ("de", "Hallo Ann, ich habe zu tun.")]
)
def test_a_sentence_in_a_sentence_is_in_the_same_language(language: Language, text: str) -> None:
    assert GREETING.to(language, name="Ann", what=BUSY) == text
    assert GREETING.about(name="Ann", what=BUSY).to(language) == text


@pytest.mark.parametrize(
    ("count", "language", "text"),
    [
        (0, "en", "0 messages wait"),
        (1, "en", "a message waits"),
        (2, "en", "2 messages wait"),
        (1, "de", "eine Nachricht wartet"),
        (2, "de", "2 Nachrichten warten"),
    ],
)
def test_one_has_another_form_than_many(count: int, language: Language, text: str) -> None:
    assert WAITING.to(language, count=count) == text


def test_a_fact_is_never_taken_for_a_place_to_fill_in() -> None:
    """A text of a person or a model stays as it is written, braces included."""
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
    assert [decimal(1234.56, language) for language in ("en", "de")] == ["1234.6", "1234,6"]
