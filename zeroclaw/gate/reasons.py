"""Why the policy decided so, in the language of whoever reads it (pure).

`Decision.why` says the same in English, for the model and the command line. What an operator wrote
into a statement's note stays as it is written; the notes of shipped statements are translated.
"""

from collections.abc import Iterable, Mapping

from zeroclaw import sentences
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import Decision, PolicySet
from zeroclaw.gate.taint import Source, in_words
from zeroclaw.language import Language, Sentence
from zeroclaw.value import Value

SHIPPED: Mapping[str, Sentence] = {
    "supervised.effects": sentences.IT_DOES_MORE_THAN_READ,
    "supervised.risk": sentences.ITS_RISK_IS_NOT_LOW,
    "readonly.files_to_groups": sentences.EVERYBODY_HERE_GETS_IT,
    "supervised.files_to_groups": sentences.EVERYBODY_HERE_GETS_IT,
    "supervised.undeclared": sentences.IT_IS_UNDECLARED,
    "full.undeclared": sentences.IT_IS_UNDECLARED,
    "full.untrusted": sentences.IT_IS_UNTRUSTED,
}
"""What shipped statements say that people read in chats, by their ids."""


class Reason(Value):
    """A statement that made a decision.

    Attributes:
        statement: Its id.
        note: What it says of itself, empty for nothing.
        sources: Of the untrusted text, where the statement asks about that.
    """

    statement: str
    note: str = ""
    sources: tuple[Source, ...] = ()


def reasons_of(
    policy: PolicySet, decision: Decision, sources: tuple[Source, ...] = ()
) -> tuple[Reason, ...]:
    """Return the statements that made a decision of this policy, about text from these sources."""
    return tuple(
        Reason(
            statement=one.id,
            note=one.note,
            sources=sources if "untrusted" in one.when else (),
        )
        for one in policy.statements
        if one.id in decision.statements
    )


def why_asked(reasons: Iterable[Reason], language: Language) -> str:
    """Return why a call is put to a person; one line."""
    return "; ".join(
        sentences.STATEMENT_ASKS.to(language, id=one.statement, note=_note(one, language))
        for one in reasons
    )


def why_refused(policy: PolicySet, query: Query, language: Language) -> str:
    """Return why the policy does not allow what a person wants to do themselves; one line."""
    decision = policy.decide(query)
    if decision.effect == "ask":
        # There is no card for what a person does themselves.
        return why_asked(reasons_of(policy, decision), language)
    return why_denied(policy, decision, query, language)


def why_denied(policy: PolicySet, decision: Decision, query: Query, language: Language) -> str:
    """Return why this decision of the policy is a no; one line."""
    if not decision.statements:
        return sentences.NO_STATEMENT_ALLOWS.to(
            language, action=query.action, principal=query.principal.id
        )
    return "; ".join(
        sentences.STATEMENT_DENIES.to(language, id=one.statement, note=_note(one, language))
        for one in reasons_of(policy, decision)
    )


def _note(reason: Reason, language: Language) -> str:
    shipped = SHIPPED.get(reason.statement)
    said = reason.note if shipped is None else shipped.to(language)
    came = f" ({in_words(reason.sources, language)})" if reason.sources else ""
    return f": {said}{came}" if said or came else ""
