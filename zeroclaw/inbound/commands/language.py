"""`/language`: which language the bot's own sentences are in, chosen by each person for themselves.

The choice is a row of its own, committed with the command; it beats the configuration, on every
channel where that person is known by the same name.
"""

from zeroclaw.envelope import Principal
from zeroclaw.inbound.identity import LANGUAGE_CHOICES, Chosen
from zeroclaw.store import Write
from zeroclaw.text import catalogue
from zeroclaw.text.language import LANGUAGES, NAMES, language_of
from zeroclaw.value import Value


class Reply(Value):
    """What the command comes to."""

    text: str
    writes: tuple[Write, ...] = ()


def choose(rest: str, principal: Principal) -> Reply:
    """Return what `/language de` comes to; without a language that is spoken, the choice there is.

    The answer is in the language that was chosen.
    """
    wanted = language_of(rest)
    if wanted is None:
        choices = ", ".join(f"{NAMES[one]} (`/language {one}`)" for one in LANGUAGES)
        now = principal.language
        text = catalogue.LANGUAGES_SPOKEN.to(now, choices=choices, name=NAMES[now])
        return Reply(text=text)
    chosen = Chosen(person=principal.id, language=wanted)
    put = LANGUAGE_CHOICES.put(principal.id, chosen)
    return Reply(
        text=catalogue.LANGUAGE_CHOSEN.to(wanted, name=NAMES[wanted]),
        writes=(put,),
    )
