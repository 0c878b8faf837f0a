"""How a sentence is said in several languages: written side by side, filled in, told to a reader.

    GREETING = Sentence(en="Hello {name}.", de="Hallo {name}.")
    GREETING.to("de", name="Ann")              in the language of one reader
    GREETING.about(name="Ann").to(language)    filled in now, for readers who are found later

Facts are what is the same in every language (names, numbers, lines of errors), or sentences
themselves, which are then said in the same language.
"""

from collections.abc import Mapping
from typing import Literal, Protocol, get_args

from zeroclaw.value import Value, field

Language = Literal["en", "de"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
ENGLISH: Language = "en"
"""What is spoken where nobody knows what is read."""
NAMES: Mapping[Language, str] = {"en": "English", "de": "Deutsch"}
"""What each language calls itself."""


class Localized(Protocol):
    """Something that can be said in every language."""

    def to(self, language: Language) -> str:
        """Return it in the language of whoever reads it."""
        ...


Fact = str | int | Localized

Translations = tuple[tuple[Language, str], ...]
"""What a stored text is in languages other than its own; rows of an earlier release have none."""


def translated(text: str, others: Translations, language: Language) -> str:
    """Return a stored text in one language, as it is where that is not known."""
    return dict(others).get(language, text)


class Grouped(Value):
    """A whole number whose digits are grouped by thousands."""

    number: int

    def to(self, language: Language) -> str:
        """Return it as it is written there; see `Localized`."""
        shown = f"{self.number:,}"
        return shown.replace(",", ".") if language == "de" else shown


class Sentence(Value):
    """What the bot says, with `{facts}` still to be filled in.

    Attributes:
        en: In English.
        de: In German; names the same facts.
        one: Said instead where the fact `count` is 1.
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
        said = {
            name: str(fact) if isinstance(fact, str | int) else fact.to(language)
            for name, fact in facts.items()
        }
        return template.format_map(said)

    def about(self, **facts: Fact) -> "LocalizedMessage":
        """Return it with its facts, for whoever will read it."""
        return LocalizedMessage(sentence=self, facts=facts)


class LocalizedMessage(Value):
    """A sentence with its facts."""

    sentence: Sentence
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])

    def to(self, language: Language) -> str:
        """Return it in one language; see `Localized`."""
        return self.sentence.to(language, **self.facts)


def language_of(text: str) -> Language | None:
    """Return the language that a person names, `de` or `Deutsch`; None for none that is spoken."""
    word = text.strip().casefold()
    return next((one for one in LANGUAGES if word in (one, NAMES[one].casefold())), None)


def decimal(number: float, language: Language) -> str:
    """Return a number with one digit behind its decimal sign, as it is written there."""
    shown = f"{number:.1f}"
    return shown.replace(".", ",") if language == "de" else shown
