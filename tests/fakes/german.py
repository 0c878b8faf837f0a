"""Finds English words of the catalogue in a German text."""

import re
from collections.abc import Iterable, Iterator

from zeroclaw.text import catalogue
from zeroclaw.text.language import Sentence

# Whole words only: a hash such as `5be7…` has several letters in a row too.
_WORD = re.compile(r"\b[^\W\d_]{2,}\b")
_FACT = re.compile(r"\{\w+\}|`[^`]*`")


def english_in(text: str) -> set[str]:
    """Return the words of a text that only the English half of the catalogue has."""
    return {word.casefold() for word in _WORD.findall(_FACT.sub(" ", text))} & _ENGLISH


def _forms(sentence: Sentence) -> Iterator[Sentence]:
    yield sentence
    if sentence.one:
        yield from _forms(sentence.one)


def _words(texts: Iterable[str]) -> set[str]:
    return {word.casefold() for text in texts for word in _WORD.findall(_FACT.sub(" ", text))}


_ALL = [
    form
    for value in vars(catalogue).values()
    if isinstance(value, Sentence)
    for form in _forms(value)
]
_ENGLISH = _words(form.en for form in _ALL) - _words(form.de for form in _ALL)
