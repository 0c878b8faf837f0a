"""The fixed words of an approval card, in the language that is read where it is shown.

A channel lays them out; what else stands on a card comes with it, in the same language.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from zeroclaw import sentences
from zeroclaw.channel import Ending
from zeroclaw.envelope import Choice
from zeroclaw.language import Fact, Language, Sentence

_LABELS: Mapping[Choice, tuple[Sentence, Sentence]] = {
    "once": (sentences.CARD_ONCE, sentences.CARD_ONCE_SHORT),
    "for_a_time": (sentences.CARD_FOR_A_TIME, sentences.CARD_FOR_A_TIME_SHORT),
    "deny": (sentences.CARD_DENY, sentences.CARD_DENY_SHORT),
    "deny_with_reason": (sentences.CARD_DENY_BECAUSE, sentences.CARD_DENY_BECAUSE_SHORT),
}
_ENDED: Mapping[Literal["approved", "denied", "expired", "stopped"], Sentence] = {
    "approved": sentences.CARD_APPROVED,
    "denied": sentences.CARD_DENIED,
    "expired": sentences.CARD_EXPIRED,
    "stopped": sentences.CARD_STOPPED,
}

NAMELESS: Mapping[str, Sentence] = {
    one.en: one
    for one in (
        sentences.BY_CONSOLE,
        sentences.BY_OPERATOR_HERE,
        sentences.BY_PRINTED_CODE,
        sentences.BY_CONFIGURATION,
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
        return sentences.CARD_HEAD.to(self.language, who=who, at=at)

    def label(self, choice: Choice) -> str:
        """Return what the button of an answer says, on a card of one call."""
        return _LABELS[choice][0].to(self.language)

    def short_label(self, choice: Choice, number: int) -> str:
        """Return what it says on a card of several calls."""
        return f"{number} {_LABELS[choice][1].to(self.language)}"

    def by_number(self, number: int) -> str:
        """Return how a call is answered where there is no button."""
        return sentences.CARD_BY_NUMBER.to(self.language, number=number)

    def ended(self, ending: Ending) -> str:
        """Return how a question ended, without by whom and why."""
        return _ENDED[ending.how].to(self.language)

    def by(self, who: str) -> str:
        """Return who ended it, as it follows `ended`; empty for nobody."""
        return sentences.BY.to(self.language, who=by_whom(who)) if who else ""

    def in_file(self) -> str:
        """Return what a card says whose calls stand whole in a file."""
        return sentences.CARD_IN_FILE.to(self.language)
