"""One approval: a question about one exact call, and the one answer that it gets (P5).

    pending ── an approver says yes ──▶ approved
       ├────── an approver says no ───▶ denied
       ├────── the deadline ──────────▶ expired
       └────── its turn ends ─────────▶ stopped

Every ending goes through the same compare-and-set: `to_put` names the version that was read, so of
two that meet one is written and the other finds the row ended. A press that was admitted at or
after the deadline has lost, whether or not the timer has fired. Who may answer is checked at the
moment of the answer, and before anything else is told.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Generic, Literal, TypeVar

from zeroclaw.channel import Card, CardCall, Ending, Outcome
from zeroclaw.envelope import (
    ActionId,
    ApprovalId,
    Choice,
    ConversationId,
    MessageRef,
    Principal,
    TurnId,
)
from zeroclaw.gate.policy import Reason, why_asked
from zeroclaw.gate.scope import Scope, for_a_time
from zeroclaw.store import Put, Row, RowKind
from zeroclaw.table import Age, Ages, Column, Table, Whose, Words, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import ENGLISH, LANGUAGES, Language, Translations, translated
from zeroclaw.value import Value, replace

ALL_CHOICES: tuple[Choice, ...] = ("once", "for_a_time", "deny", "deny_with_reason")
State = Literal["pending", "approved", "denied", "expired", "stopped"]
OPEN = frozenset({"pending", "waiting"})
"""The states of requests that no approver has answered yet; stored rows of pairing say `waiting`."""


class Numbered(Value):
    """What a call is called in one approver chat; numbers are never used again there.

    Attributes:
        place: The chat's address key.
        number: From 1.
        language: What is read there.
    """

    place: str
    number: int
    language: Language = "en"


class ApprovalRequest(Value):
    """What a request of every kind is: a question with one deadline, and one answer.

    The kinds are `Approval`, about a call, and `inbound.pairing.Stranger`, about a person. What
    differs is who may answer and what an answer comes to; that is theirs, and their rooms'.
    """

    id: ApprovalId
    deadline_at: datetime
    numbers: tuple[Numbered, ...] = ()
    refs: tuple[MessageRef, ...] = ()
    state: Literal["pending", "waiting", "approved", "denied", "expired", "stopped"] = "pending"
    by: str = ""
    reason: str = ""
    at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether no approver has answered it and no deadline was noticed."""
        return self.state in OPEN


R = TypeVar("R", bound=ApprovalRequest)


class Approval(ApprovalRequest):
    """The request about one call, and how it ended.

    Attributes:
        id: Unguessable; buttons carry it.
        action: The call it is about, with `action_hash`, and nothing else (K9).
        action_hash: Hex, of the frozen action.
        tool: The tool's name.
        conversation: Where the call was asked for.
        turn: The turn that waits.
        requester: On whose behalf the call is.
        approvers: Who is asked, as the policy calls them: `role:operator`, `person:ann`.
        requester_may_answer: Whether the requester may be the approver.
        summary: The tool's line about the call; it may be cut, and hides no more than that.
        summaries: The same in other languages.
        arguments: The whole call for people, as `card_arguments` makes it.
        hidden: The references of the secrets that stand in the arguments, one for each place.
        scope: What "for a time" would let run; None where it is not offered.
        why: Why it needs approval; in English.
        reasons: The same as far as a policy said it, for readers of every language.
        card: The key of the card that shows it; the asks of a batch share one.
        order: Its place on the card.
        choices: What may be answered.
        deadline_at: When silence has become a denial.
        numbers: One for each approver chat.
        refs: Every card that is known to show it.
        state: Where it stands.
        by: Who ended it, for people; empty for the deadline.
        reason: Of a denial; redacted.
        choice: What was answered; None when no approver answered.
        at: When it ended.
    """

    action: ActionId
    action_hash: str
    tool: str
    conversation: ConversationId
    turn: TurnId
    requester: Principal
    approvers: tuple[str, ...]
    summary: str
    arguments: str
    why: str
    card: str
    requester_may_answer: bool = True
    order: int = 0
    summaries: Translations = ()
    choices: tuple[Choice, ...] = ALL_CHOICES
    reasons: tuple[Reason, ...] = ()
    hidden: tuple[str, ...] = ()
    scope: Scope | None = None
    state: State = "pending"
    choice: Choice | None = None


# --- what an answer comes to ---------------------------------------------------------------------


class AnswerResult(Value, Generic[R]):
    """What an answer to a request comes to.

    Attributes:
        request: As it stands with it; stored if it `ends` by it.
        how: `counted`; `late` if it was admitted at or after the deadline, which no timer had noticed
            yet; `second` if another approver, or the deadline, was first; `reason_wanted` for a denial whose
            reason is still to come, until which the request stays open; `refused` if it is not
            theirs to give, or is not offered.
        why: It is refused, for the approver who gave it.
    """

    request: R
    how: Literal["counted", "late", "second", "reason_wanted", "refused"]
    why: str = ""

    @property
    def ends(self) -> bool:
        """Whether the request ends by it."""
        return self.how in ("counted", "late")


def answer(
    approval: Approval,
    *,
    principal: Principal,
    requester: Principal,
    choice: Choice,
    admitted_at: datetime,
    may_approve: bool,
    reason: str = "",
) -> AnswerResult[Approval]:
    """Return what a person's answer comes to.

    Args:
        approval: As it stands in the store.
        principal: Who answers, as admission found them just now.
        requester: Who asks, as they are known by now; the approval has who they were.
        choice: What they chose.
        admitted_at: When their press was admitted; not when it is looked at.
        may_approve: What the policy says now of `approve:<tool>` by this principal.
        reason: Of a denial, redacted.
    """
    result = decide(
        approval,
        yes=is_yes(choice),
        by=principal.label,
        at=admitted_at,
        refusal=_refusal(approval, requester, principal, choice, may_approve=may_approve),
    )
    if result.how != "counted":
        return result
    if choice == "deny_with_reason" and not reason.strip():
        return AnswerResult(request=approval, how="reason_wanted")
    why = "" if is_yes(choice) else reason.strip()
    return replace(result, request=replace(result.request, choice=choice, reason=why))


def is_yes(choice: Choice) -> bool:
    """Whether a choice lets what is asked about happen."""
    return choice in ("once", "for_a_time")


def decide(request: R, *, yes: bool, by: str, at: datetime, refusal: str = "") -> AnswerResult[R]:
    """Return what a yes or a no comes to, to a request of any kind.

    Args:
        request: As it stands in the store.
        yes: What they say.
        by: Who answers, for people.
        at: When their answer was admitted.
        refusal: Why it is not theirs to answer, empty when it is; told before anything else.
    """
    if refusal:
        return AnswerResult(request=request, how="refused", why=refusal)
    if not request.is_open:
        return AnswerResult(request=request, how="second")
    if at >= request.deadline_at:
        return AnswerResult(request=expire(request, at), how="late")
    answered = replace(request, state="approved" if yes else "denied", by=by, at=at)
    return AnswerResult(request=answered, how="counted")


def _refusal(
    approval: Approval,
    requester: Principal,
    principal: Principal,
    choice: Choice,
    *,
    may_approve: bool,
) -> str:
    """Return why this is not theirs to answer, empty when it is."""
    language = principal.language
    if not may_approve:
        whom = who(approval.approvers, language)
        return catalogue.ONLY_THEY_MAY_ANSWER.to(language, who=whom)
    if not approval.requester_may_answer and any(
        _same_person(asks, principal) for asks in (approval.requester, requester)
    ):
        return catalogue.NOT_THE_ONE_WHO_ASKS.to(language)
    if choice not in approval.choices:
        return catalogue.ANSWER_NOT_OFFERED.to(language)
    return ""


def who(approvers: Iterable[str], language: Language) -> str:
    """Return approvers as people read them: `role:operator` is `an operator`."""
    names = [_who(one, language) for one in approvers]
    return catalogue.OR.to(language).join(names) or catalogue.NOBODY.to(language)


def _who(approver: str, language: Language) -> str:
    kind, _, name = approver.partition(":")
    if approver == "role:operator":
        return catalogue.AN_OPERATOR.to(language)
    if kind == "role":
        vowel = name[:1] in "aeiou"
        return (catalogue.AN_ROLE if vowel else catalogue.A_ROLE).to(language, role=name)
    return name if kind == "person" else approver


def _same_person(one: Principal, other: Principal) -> bool:
    """Whether two principals are one person, known under a new name perhaps."""
    return one.id == other.id or one.identity == other.identity


def expire(approval: R, now: datetime) -> R:
    """Return the request ended by its deadline; as it is before the deadline or once ended."""
    if not approval.is_open or now < approval.deadline_at:
        return approval
    return replace(approval, state="expired", at=approval.deadline_at)


def stop(approval: Approval, *, by: str, at: datetime) -> Approval:
    """Return the approval ended with its turn; as it is once ended."""
    if approval.state != "pending":
        return approval
    return replace(approval, state="stopped", by=by, at=at)


def with_ref(approval: R, ref: MessageRef) -> R:
    """Return the request with one more card that shows it; ended or not, for it is settled too."""
    return approval if ref in approval.refs else replace(approval, refs=(*approval.refs, ref))


# --- rows ----------------------------------------------------------------------------------------


def _whose(row: Row) -> Whose:
    asked = APPROVALS.of(row)
    return Whose(person=asked.requester.id, turn=asked.turn)


APPROVALS = Table(
    kind=RowKind.APPROVAL,
    owner="gate",
    codec=json_codec(Approval),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.PLACE, Column.DUE_AT}),
    # Its key is unguessable and tells no time.
    keeps=Ages(
        age=Age.APPROVALS,
        ended=frozenset({"approved", "denied", "expired", "stopped"}),
        at=lambda row: APPROVALS.of(row).at,
    ),
    words=Words.WRITER,
    whose=_whose,
    busy=frozenset({"pending"}),
)


def to_put(approval: Approval, *, expect: int) -> Put:
    """Return the write that ends or opens it if the row is still at version `expect`.

    The row is due at the deadline while pending; `place` is the first approver chat.
    """
    return APPROVALS.put(
        approval.id,
        approval,
        conversation=approval.conversation,
        state=approval.state,
        place=approval.numbers[0].place if approval.numbers else "",
        due_at=approval.deadline_at if approval.state == "pending" else None,
        expect=expect,
    )


def without_words(put: Put) -> bytes:
    """Return what may outlive a process of a row that tells of an approval off the record.

    By its ids, times and names of people and tools the next one shows on its cards how it ended; nothing
    of the call is left. Empty for rows of other kinds.
    """
    if put.kind is not APPROVALS.kind:
        return b""
    one, gone = APPROVALS.of(put), catalogue.ASKED_OFF_THE_RECORD
    left = replace(
        one,
        requester=replace(one.requester, display=""),
        summary=gone.to(ENGLISH),
        summaries=tuple((language, gone.to(language)) for language in LANGUAGES),
        arguments="",
        why="",
        reasons=(),
        hidden=(),
        scope=None,
        reason="",
    )
    return APPROVALS.codec.encode(left)


def of_another_process(left: bytes, at: datetime) -> Approval:
    """Return what `without_words` left, ended with its process where no approver had answered.

    Raises:
        StoreUnusable: It is none of that.
    """
    return stop(APPROVALS.codec.decode(left), by="", at=at)


# --- cards ---------------------------------------------------------------------------------------


def card_of(approvals: Iterable[Approval], place: str) -> Card:
    """Return the card that shows these approvals in one chat.

    Args:
        approvals: All of one card, in any order; at least one.
        place: The chat's address key; its numbers are shown, 0 where it gave none.
    """
    ordered = sorted(approvals, key=lambda approval: approval.order)
    first = ordered[0]
    language = language_in(first, place)
    return Card(
        key=first.card,
        asked_by=first.requester.label,
        calls=tuple(
            CardCall(
                approval=approval.id,
                number=number_of(approval, place),
                tool=approval.tool,
                summary=summary_in(approval, language),
                arguments=approval.arguments,
                why=_why(approval, language),
                scope=_scope(approval, language),
                hash8=approval.action_hash[:8],
            )
            for approval in ordered
        ),
        deadline_at=min(approval.deadline_at for approval in ordered),
        choices=tuple(
            choice
            for choice in first.choices
            if all(choice in approval.choices for approval in ordered)
        ),
        language=language,
    )


def summary_in(approval: Approval, language: Language) -> str:
    """Return the tool's line about the call in one language."""
    return translated(approval.summary, approval.summaries, language)


def _why(approval: Approval, language: Language) -> str:
    """Return why it is asked, and which secrets its arguments name in place of their values."""
    why = why_asked(approval.reasons, language) or approval.why
    if not approval.hidden:
        return why
    named = ", ".join(f"`⟦{one}⟧`" for one in dict.fromkeys(approval.hidden))
    hides = catalogue.CARD_HIDES.to(language, count=len(approval.hidden), references=named)
    return f"{why}; {hides}"


def _scope(approval: Approval, language: Language) -> str:
    """Return what "for a time" would let run, empty where it is not offered."""
    if approval.scope is None or "for_a_time" not in approval.choices:
        return ""
    return catalogue.CARD_SCOPE.to(language, scope=for_a_time(approval.scope, language))


def outcome_of(approvals: Iterable[Approval], place: str) -> Outcome:
    """Return the card and the endings that it has so far, in the card's order."""
    ordered = sorted(approvals, key=lambda approval: approval.order)
    return Outcome(
        card=card_of(ordered, place),
        endings=tuple(found for approval in ordered if (found := ending_of(approval))),
    )


def ending_of(approval: ApprovalRequest) -> Ending | None:
    """Return how it ended, None while it is open."""
    match approval.state:
        case "pending" | "waiting":
            return None
        case how:
            at, by = approval.at or approval.deadline_at, approval.by
            return Ending(approval=approval.id, how=how, by=by, at=at, reason=approval.reason)


def number_of(approval: ApprovalRequest, place: str) -> int:
    """Return its number in a chat, 0 where it has none."""
    return next((given.number for given in approval.numbers if given.place == place), 0)


def language_in(approval: ApprovalRequest, place: str) -> Language:
    """Return what is read in a chat where it was asked, English elsewhere."""
    known: dict[str, Language] = {given.place: given.language for given in approval.numbers}
    return known.get(place, ENGLISH)
