"""The fixed words of an approval card, in the reader's language.

Channels lay these words out; the card carries its other texts in the same language. Where a web
page or a terminal client does the layout, `by_name` travels with the card.
"""

from collections.abc import Mapping
from typing import Literal

from zeroclaw.channel import Ending
from zeroclaw.envelope import Choice
from zeroclaw.text import catalogue
from zeroclaw.text.language import Fact, Language, Sentence
from zeroclaw.value import Struct

_LABELS: Mapping[Choice, tuple[Sentence, Sentence]] = {
    "once": (catalogue.CARD_ONCE, catalogue.CARD_ONCE_SHORT),
    "for_a_time": (catalogue.CARD_FOR_A_TIME, catalogue.CARD_FOR_A_TIME_SHORT),
    "deny": (catalogue.CARD_DENY, catalogue.CARD_DENY_SHORT),
    "deny_with_reason": (catalogue.CARD_DENY_BECAUSE, catalogue.CARD_DENY_BECAUSE_SHORT),
}
_ENDED: Mapping[Literal["approved", "denied", "expired", "stopped"], Sentence] = {
    "approved": catalogue.CARD_APPROVED,
    "denied": catalogue.CARD_DENIED,
    "expired": catalogue.CARD_EXPIRED,
    "stopped": catalogue.CARD_STOPPED,
}

_PLAIN: Mapping[str, Sentence] = {
    "is_open": catalogue.CARD_IS_OPEN,
    "has_ended": catalogue.CARD_HAS_ENDED,
    "time_is_up": catalogue.CARD_TIME_IS_UP,
    "reason": catalogue.CARD_REASON,
    "reason_hint": catalogue.CARD_REASON_HINT,
    "because": catalogue.CARD_BECAUSE,
    "hash": catalogue.CARD_HASH,
}

NAMELESS: Mapping[str, Sentence] = {
    sentence.en: sentence
    for sentence in (
        catalogue.BY_CONSOLE,
        catalogue.BY_OPERATOR_HERE,
        catalogue.BY_PRINTED_CODE,
        catalogue.BY_CONFIGURATION,
    )
}
"""Actors without a name, by the text that is stored in place of one, with its translations."""


def by_whom(name: str) -> Fact:
    """Return an actor as it reads after "by"; people's names stay as they are."""
    return NAMELESS.get(name, name)


class CardWords(Struct, frozen=True):
    """The words for one card: `CardWords(card.language)`.

    Attributes:
        language: The language of the card's reader.
    """

    language: Language

    def head(self, who: str, at: str) -> str:
        """Return the card's first line: the requester, and the deadline for an answer."""
        return catalogue.CARD_HEAD.to(self.language, who=who, at=at)

    def label(self, choice: Choice) -> str:
        """Return a button's label on a card with one call."""
        return _LABELS[choice][0].to(self.language)

    def short_label(self, choice: Choice, number: int) -> str:
        """Return a button's label on a card with several calls."""
        return f"{number} {_LABELS[choice][1].to(self.language)}"

    def by_number(self, number: int) -> str:
        """Return how to answer a call on a channel without buttons."""
        return catalogue.CARD_BY_NUMBER.to(self.language, number=number)

    def ended(self, ending: Ending, who: str) -> str:
        """Return how an approval ended and by whom, without the reason.

        Args:
            ending: The ending.
            who: The name of the person who ended it; empty if no person did.
        """
        by = catalogue.BY.to(self.language, who=by_whom(who)) if who else ""
        return _ENDED[ending.how].to(self.language, by=by)

    def by_name(self, count: int) -> Mapping[str, str]:
        """Return the fixed words by name, for a client that lays the card out itself.

        The client fills in the parts in braces, such as a name or the remaining time.

        Args:
            count: How many calls of the card are still open.
        """
        words = {name: sentence.to(self.language) for name, sentence in _PLAIN.items()}
        labels = {choice: self.label(choice) for choice in _LABELS}
        return {
            **words,
            **labels,
            "title": catalogue.CARD_TITLE.to(self.language, count=count),
            "all_once": catalogue.CARD_ALL_ONCE.to(self.language, count=count),
            "all_deny": catalogue.CARD_ALL_DENY.to(self.language, count=count),
            "head": self.head("{who}", "{at}"),
            "asked_by": catalogue.CARD_ASKED_BY.to(self.language, who="{who}"),
            "denied_at": catalogue.CARD_DENIED_AT.to(self.language, at="{at}"),
            "left": catalogue.CARD_LEFT.to(self.language, time="{time}"),
        }

    def in_file(self) -> str:
        """Return the line of a card whose calls are written out in an attached file."""
        return catalogue.CARD_IN_FILE.to(self.language)
