"""Sentences in several languages: defined together, filled in, and shown in a reader's language.

    GREETING = Sentence(en="Hello {name}.", de="Hallo {name}.")
    GREETING.to("de", name="Ann")              in one reader's language
    GREETING.about(name="Ann").to(language)    filled in now, for readers who are known later

Facts are values that are the same in every language (names, numbers, lines of errors), or
sentences, which are then shown in the same language.
"""

from collections.abc import Mapping
from typing import Literal, Protocol, get_args

from zeroclaw.value import Value, field

Language = Literal["en", "de"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
ENGLISH: Language = "en"
"""The default where the reader's language is not known."""
NAMES: Mapping[Language, str] = {"en": "English", "de": "Deutsch"}
"""Each language's name for itself."""


class Localized(Protocol):
    """Text that is available in every language."""

    def to(self, language: Language) -> str:
        """Return it in the reader's language."""
        ...


Fact = str | int | Localized

Translations = tuple[tuple[Language, str], ...]
"""The translations of a stored text; rows of an earlier release have none."""


def translated(text: str, translations: Translations, language: Language) -> str:
    """Return a stored text in one language, or untranslated if there is no translation."""
    return dict(translations).get(language, text)


class Grouped(Value):
    """A whole number whose digits are grouped by thousands."""

    number: int

    def to(self, language: Language) -> str:
        """Return it in the language's notation; see `Localized`."""
        text = f"{self.number:,}"
        return text.replace(",", ".") if language == "de" else text


class Sentence(Value):
    """A sentence of the bot, with `{facts}` to fill in.

    Attributes:
        en: In English.
        de: In German; uses the same facts.
        one: Used instead if the fact `count` is 1.
    """

    en: str
    de: str
    one: "Sentence | None" = None

    def to(self, language: Language, **facts: Fact) -> str:
        """Return it with its facts, in one language.

        Raises:
            KeyError: A fact is missing.
        """
        if self.one is not None and facts["count"] == 1:
            return self.one.to(language, **facts)
        template = self.de if language == "de" else self.en
        texts = {
            name: str(fact) if isinstance(fact, str | int) else fact.to(language)
            for name, fact in facts.items()
        }
        return template.format_map(texts)

    def about(self, **facts: Fact) -> "LocalizedMessage":
        """Return it with its facts, for readers of any language."""
        return LocalizedMessage(sentence=self, facts=facts)


class LocalizedMessage(Value):
    """A sentence with its facts."""

    sentence: Sentence
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])

    def to(self, language: Language) -> str:
        """Return it in one language; see `Localized`."""
        return self.sentence.to(language, **self.facts)


def language_of(text: str) -> Language | None:
    """Return the language that a person names, such as `de` or `Deutsch`; None if not supported."""
    word = text.strip().casefold()
    return next((code for code in LANGUAGES if word in (code, NAMES[code].casefold())), None)


def decimal(number: float, language: Language) -> str:
    """Return a number with one decimal, in the language's notation."""
    text = f"{number:.1f}"
    return text.replace(".", ",") if language == "de" else text
