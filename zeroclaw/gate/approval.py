"""One approval: a request about one exact call, with one answer (P5).

    pending ── an approver says yes ──▶ approved
       ├────── an approver says no ───▶ denied
       ├────── the deadline ──────────▶ expired
       └────── its turn ends ─────────▶ stopped

Every ending is planned by `store.transact`, so of two concurrent endings one is written, and the
other is planned again and finds the row ended. A press admitted at or after
the deadline has lost, whether or not the timer has fired. Every answer is checked first for whether
its writer may give it, so that only an approver learns how a request ended.
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
from zeroclaw.gate.policy import Reason, ask_reason
from zeroclaw.gate.scope import Scope, for_a_time
from zeroclaw.store import Put, Row, RowKind
from zeroclaw.table import Age, Ages, Column, Owner, Table, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import ENGLISH, LANGUAGES, Language, Translations, translated
from zeroclaw.value import Value, replace

ALL_CHOICES: tuple[Choice, ...] = ("once", "for_a_time", "deny", "deny_with_reason")
State = Literal["pending", "approved", "denied", "expired", "stopped"]
OPEN = frozenset({"pending", "waiting"})
"""The states of unanswered requests; stored rows of pairing say `waiting`."""


class Numbered(Value):
    """The number of a request in one approver chat, which never reuses a number.

    Attributes:
        place: The chat's address key.
        number: From 1.
        language: The language of the chat.
    """

    place: str
    number: int
    language: Language = "en"


class ApprovalRequest(Value):
    """The common part of all kinds of requests: one deadline, and one answer.

    The kinds are `Approval`, about a call, and `inbound.pairing.PairingRequest`, about a person. Each
    has its own approvers and its own effect of an answer.

    Attributes:
        refused: The keys of the chats that did not take its card.
    """

    id: ApprovalId
    deadline_at: datetime
    numbers: tuple[Numbered, ...] = ()
    refs: tuple[MessageRef, ...] = ()
    refused: tuple[str, ...] = ()
    state: Literal["pending", "waiting", "approved", "denied", "expired", "stopped"] = "pending"
    by: str = ""
    reason: str = ""
    at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has no answer and no deadline has ended it."""
        return self.state in OPEN


R = TypeVar("R", bound=ApprovalRequest)


class Approval(ApprovalRequest):
    """The request about one call, and how it ended.

    Attributes:
        id: Unguessable; buttons carry it.
        action: The call it is about, together with `action_hash` (K9).
        action_hash: The frozen action's hash, in hex.
        tool: The tool's name.
        conversation: The conversation of the call.
        turn: The turn that waits.
        requester: The person for whom the model calls.
        approvers: The approvers, in the policy's terms: `role:operator`, `person:ann`.
        requester_may_answer: Whether the requester may be the approver.
        summary: The tool's line about the call; it may be cut, but hides nothing else.
        summaries: The same in other languages.
        arguments: The whole call for people, as `card_arguments` makes it.
        hidden: The references of the secrets in the arguments, one for each occurrence.
        scope: The calls that "for a time" would let run; None where it is not offered.
        why: Why it needs approval; in English.
        reasons: The same as statements of the policy, for readers of every language.
        card: The key of the card that shows it; the approvals of a batch share one.
        order: Its position on the card.
        choices: The answers on offer.
        deadline_at: When it is denied for lack of an answer.
        numbers: One for each approver chat.
        refs: Every known card that shows it.
        state: Its state; see the module.
        by: The label of the person who ended it; empty for the deadline.
        reason: The reason of a denial; redacted.
        choice: The answer; None when no approver answered.
        answerer: The approver, as `<channel>:<sender id>`; empty in rows of an earlier release.
        is_unheard: Whether the requester's chat was told that no approver can be reached.
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
    answerer: str = ""
    is_unheard: bool = False


# --- answers --------------------------------------------------------------------------------------


class AnswerResult(Value, Generic[R]):
    """The result of an answer to a request.

    Attributes:
        request: The request with the answer; to be stored if the answer `ends` it.
        how: `counted`; `late` if it was admitted at or after the deadline, before a timer noticed;
            `second` if another approver, or the deadline, was first; `reason_wanted` for a denial
            whose reason is still to come, while the request stays open; `refused` if this person
            may not give it, or the card does not offer it.
        reason: Why it is refused, for the person who gave it.
    """

    request: R
    how: Literal["counted", "late", "second", "reason_wanted", "refused"]
    reason: str = ""

    @property
    def ends(self) -> bool:
        """Whether the answer ends the request."""
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
    """Return the result of a person's answer.

    Args:
        approval: The stored approval.
        principal: The person who answers, as admission has just identified them.
        requester: The requester's current data; the approval has their earlier data.
        choice: Their choice.
        admitted_at: When their press was admitted, not when it is processed.
        may_approve: Whether the policy now lets this principal `approve:<tool>`.
        reason: The reason of a denial, redacted.
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
    reason = "" if is_yes(choice) else reason.strip()
    ended = replace(result.request, choice=choice, reason=reason, answerer=principal.identity)
    return replace(result, request=ended)


def is_yes(choice: Choice) -> bool:
    """Whether a choice approves."""
    return choice in ("once", "for_a_time")


def decide(request: R, *, yes: bool, by: str, at: datetime, refusal: str = "") -> AnswerResult[R]:
    """Return the result of a yes or a no to a request of any kind.

    Args:
        request: The stored request.
        yes: True for yes.
        by: The label of the person who answers.
        at: When their answer was admitted.
        refusal: Why they may not answer, empty if they may; checked before anything else.
    """
    if refusal:
        return AnswerResult(request=request, how="refused", reason=refusal)
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
    """Return why this person may not give this answer, empty if they may."""
    language = principal.language
    if not may_approve:
        names = approver_names(approval.approvers, language)
        return catalogue.ONLY_THEY_MAY_ANSWER.to(language, who=names)
    if not approval.requester_may_answer and any(
        is_same_person(asker, principal) for asker in (approval.requester, requester)
    ):
        return catalogue.NOT_BY_THE_REQUESTER.to(language)
    if choice not in approval.choices:
        return catalogue.ANSWER_NOT_OFFERED.to(language)
    return ""


def approver_names(approvers: Iterable[str], language: Language) -> str:
    """Return the approvers for people to read: `role:operator` becomes `an operator`."""
    names = [_approver_name(approver, language) for approver in approvers]
    return catalogue.OR.to(language).join(names) or catalogue.NOBODY.to(language)


def _approver_name(approver: str, language: Language) -> str:
    kind, _, name = approver.partition(":")
    if approver == "role:operator":
        return catalogue.AN_OPERATOR.to(language)
    if kind == "role":
        vowel = name[:1] in "aeiou"
        return (catalogue.AN_ROLE if vowel else catalogue.A_ROLE).to(language, role=name)
    return name if kind == "person" else approver


def is_same_person(first: Principal, second: Principal) -> bool:
    """Whether two principals are one person, perhaps under a new name."""
    return first.id == second.id or first.identity == second.identity


def expire(approval: R, now: datetime) -> R:
    """Return the request ended by its deadline; unchanged before the deadline or once ended."""
    if not approval.is_open or now < approval.deadline_at:
        return approval
    return replace(approval, state="expired", at=approval.deadline_at)


def stop(approval: Approval, *, by: str, at: datetime) -> Approval:
    """Return the approval ended with its turn; unchanged once ended."""
    if approval.state != "pending":
        return approval
    return replace(approval, state="stopped", by=by, at=at)


def with_ref(approval: R, ref: MessageRef) -> R:
    """Return the request with one more card that shows it, even if ended: that card is settled too."""
    return approval if ref in approval.refs else replace(approval, refs=(*approval.refs, ref))


# --- rows ----------------------------------------------------------------------------------------


def _owner_of(row: Row) -> Owner:
    approval = APPROVALS.of(row)
    return Owner(person=approval.requester.id, turn=approval.turn)


APPROVALS = Table(
    kind=RowKind.APPROVAL,
    codec=json_codec(Approval),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.PLACE, Column.DUE_AT}),
    # Its key is random, so it does not contain the time.
    keeps=Ages(
        age=Age.APPROVALS,
        ended=frozenset({"approved", "denied", "expired", "stopped"}),
        at=lambda row: APPROVALS.of(row).at,
    ),
    owner=_owner_of,
    busy=frozenset({"pending"}),
)


def to_put(approval: Approval) -> Put:
    """Return the write that opens or ends it.

    The row is due at the deadline while pending; `place` is the first approver chat.
    """
    return APPROVALS.put(
        approval.id,
        approval,
        conversation=approval.conversation,
        state=approval.state,
        place=approval.numbers[0].place if approval.numbers else "",
        due_at=approval.deadline_at if approval.state == "pending" else None,
    )


def without_words(put: Put) -> bytes:
    """Return the part of an approval off the record that may be stored beyond the process.

    With its ids, times and names of people and tools the next process can show on the cards how it
    ended; the call itself is left out. Empty for rows of other kinds.
    """
    if put.kind is not APPROVALS.kind:
        return b""
    approval, placeholder = APPROVALS.of(put), catalogue.ASKED_OFF_THE_RECORD
    remainder = replace(
        approval,
        requester=replace(approval.requester, display=""),
        summary=placeholder.to(ENGLISH),
        summaries=tuple((language, placeholder.to(language)) for language in LANGUAGES),
        arguments="",
        why="",
        reasons=(),
        hidden=(),
        scope=None,
        reason="",
    )
    return APPROVALS.codec.encode(remainder)


def of_another_process(body: bytes, at: datetime) -> Approval:
    """Return the approval from `without_words`, stopped with its process if it was unanswered.

    Raises:
        RecordUnreadable: The bytes are no such approval.
    """
    return stop(APPROVALS.codec.decode(body), by="", at=at)


# --- cards ---------------------------------------------------------------------------------------


def card_of(approvals: Iterable[Approval], place: str) -> Card:
    """Return the card that shows these approvals in one chat.

    Args:
        approvals: All of one card, in any order; at least one.
        place: The chat's address key; its numbers are shown, 0 where it has none.
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
                why=_reason(approval, language),
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


def _reason(approval: Approval, language: Language) -> str:
    """Return why it needs approval, and which secrets its arguments name instead of their values."""
    reason = ask_reason(approval.reasons, language) or approval.why
    if not approval.hidden:
        return reason
    references = ", ".join(f"`⟦{reference}⟧`" for reference in dict.fromkeys(approval.hidden))
    hides = catalogue.CARD_HIDES.to(language, count=len(approval.hidden), references=references)
    return f"{reason}; {hides}"


def _scope(approval: Approval, language: Language) -> str:
    """Return the scope of "for a time", empty where it is not offered."""
    if approval.scope is None or "for_a_time" not in approval.choices:
        return ""
    return catalogue.CARD_SCOPE.to(language, scope=for_a_time(approval.scope, language))


def outcome_of(approvals: Iterable[Approval], place: str) -> Outcome:
    """Return the card with the endings so far, in the card's order.

    It shows the approvals that have a number in the chat. A chat that got the card later than others
    has none for calls that had ended by then.
    """
    shared = tuple(approvals)
    numbered = [approval for approval in shared if number_of(approval, place)]
    # A group that became a supergroup has another key, and numbers only under the old one.
    ordered = sorted(numbered or shared, key=lambda approval: approval.order)
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
    return next((entry.number for entry in approval.numbers if entry.place == place), 0)


def language_in(approval: ApprovalRequest, place: str) -> Language:
    """Return the language of a chat that got its card, English elsewhere."""
    languages: dict[str, Language] = {entry.place: entry.language for entry in approval.numbers}
    return languages.get(place, ENGLISH)
