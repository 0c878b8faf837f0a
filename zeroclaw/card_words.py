"""The fixed words of an approval card, in the language that is read where it is shown.

A channel lays them out; what else stands on a card comes with it, in the same language.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from zeroclaw.channel import Ending
from zeroclaw.envelope import Choice
from zeroclaw.text import catalogue
from zeroclaw.text.language import Fact, Language, Sentence

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

NAMELESS: Mapping[str, Sentence] = {
    one.en: one
    for one in (
        catalogue.BY_CONSOLE,
        catalogue.BY_OPERATOR_HERE,
        catalogue.BY_PRINTED_CODE,
        catalogue.BY_CONFIGURATION,
    )
}
"""Who has no name, by what stands in a row in place of one."""


def by_whom(name: str) -> Fact:
    """Return who did something, as it is said after `by`; people's names stay as they are."""
    return NAMELESS.get(name, name)


@dataclass(frozen=True, slots=True)
class CardWords:
    """The words for one card: `CardWords(card.language)`.

    Attributes:
        language: What is read there.
    """

    language: Language

    def head(self, who: str, at: str) -> str:
        """Return its first line: who set the calls off, and until when silence is no denial."""
        return catalogue.CARD_HEAD.to(self.language, who=who, at=at)

    def label(self, choice: Choice) -> str:
        """Return what the button of an answer says, on a card of one call."""
        return _LABELS[choice][0].to(self.language)

    def short_label(self, choice: Choice, number: int) -> str:
        """Return what it says on a card of several calls."""
        return f"{number} {_LABELS[choice][1].to(self.language)}"

    def by_number(self, number: int) -> str:
        """Return how a call is answered where there is no button."""
        return catalogue.CARD_BY_NUMBER.to(self.language, number=number)

    def ended(self, ending: Ending) -> str:
        """Return how a question ended, without by whom and why."""
        return _ENDED[ending.how].to(self.language)

    def by(self, who: str) -> str:
        """Return who ended it, as it follows `ended`; empty for nobody."""
        return catalogue.BY.to(self.language, who=by_whom(who)) if who else ""

    def in_file(self) -> str:
        """Return what a card says whose calls stand whole in a file."""
        return catalogue.CARD_IN_FILE.to(self.language)
