"""The catalogue of what the bot says: whole in every language, used, and filled in rightly.

That no room says a sentence of its own is held in `test_what_rooms_say.py`.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from zeroclaw import sentences
from zeroclaw.language import LANGUAGES, Sentence, facts_of

ROOT = Path(__file__).parents[2]
SENTENCES = {name: value for name, value in vars(sentences).items() if isinstance(value, Sentence)}


def forms(sentence: Sentence) -> tuple[Sentence, ...]:
    return (sentence, *forms(sentence.one)) if sentence.one else (sentence,)


def uses() -> Iterator[ast.Attribute]:
    """Every `sentences.NAME` of the code."""
    files = chain((ROOT / "zeroclaw").rglob("*.py"), (ROOT / "channels").rglob("*.py"))
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in files)
    for node in chain.from_iterable(map(ast.walk, trees)):
        match node:
            case ast.Attribute(value=ast.Name(id="sentences"), attr=name) if name.isupper():
                yield node
            case _:
                pass


def filled() -> Iterator[tuple[str, frozenset[str]]]:
    """The name of each sentence that is filled in where it is named, and the facts it is given."""
    files = chain((ROOT / "zeroclaw").rglob("*.py"), (ROOT / "channels").rglob("*.py"))
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in files)
    for node in chain.from_iterable(map(ast.walk, trees)):
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Attribute(value=ast.Name(id="sentences"), attr=name),
                    attr="to" | "about",
                ),
                keywords=keywords,
            ):
                yield name, frozenset(keyword.arg or "**" for keyword in keywords)
            case _:
                pass


@pytest.mark.parametrize("name", SENTENCES)
def test_every_language_names_the_same_facts(name: str) -> None:
    """A fact that one language leaves out is told to nobody who reads that language."""
    for form in forms(SENTENCES[name]):
        assert facts_of(form.de) == facts_of(form.en)
    assert all(form.facts <= SENTENCES[name].facts for form in forms(SENTENCES[name]))


@pytest.mark.parametrize("name", SENTENCES)
def test_every_language_keeps_what_somebody_types(name: str) -> None:
    """What stands in backticks is typed or looked for as it is, and is not translated."""
    for form in forms(SENTENCES[name]):
        assert Counter(form.de.split("`")[1::2]) == Counter(form.en.split("`")[1::2])


@pytest.mark.parametrize("name", SENTENCES)
def test_every_language_says_it_in_its_own_words(name: str) -> None:
    for form in forms(SENTENCES[name]):
        assert form.en != form.de


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_said_twice(language: str) -> None:
    said = Counter(getattr(form, language) for one in SENTENCES.values() for form in forms(one))
    assert [text for text, times in said.items() if times > 1] == []


def test_every_sentence_is_said_somewhere() -> None:
    """A sentence that nobody says any more is removed with its translation."""
    assert sorted(set(SENTENCES) - {node.attr for node in uses()}) == []


def test_every_sentence_is_given_its_facts_and_no_others() -> None:
    """A missing fact would be found only when somebody should have read it."""
    wrong = [
        (name, sorted(SENTENCES[name].facts ^ given))
        for name, given in filled()
        if given != SENTENCES[name].facts | ({"count"} if SENTENCES[name].one else set())
    ]
    assert wrong == []


def test_a_sentence_with_facts_is_filled_in_where_it_is_named() -> None:
    """So that the test above sees every one of them."""
    bare = Counter(node.attr for node in uses()) - Counter(name for name, _ in filled())
    assert [name for name in bare if SENTENCES[name].facts] == []


def test_the_catalogue_holds_nothing_else() -> None:
    """One file to translate: sentences, and no code that a translator would have to read."""
    tree = ast.parse((ROOT / "zeroclaw" / "sentences.py").read_text(encoding="utf-8"))
    assert {type(node).__name__ for node in tree.body} == {"Expr", "ImportFrom", "Assign"}
