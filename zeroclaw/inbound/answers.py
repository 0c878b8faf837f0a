"""An answer to an approval: one commit, by compare-and-set, whoever gave it and wherever (P5).

The commit ends the row and puts a control item into the conversation that asked, so that
whoever holds it goes on. A press on a card that was never recorded is how its ref becomes known;
a press that comes too late runs nothing, and the card is shown as it ended.
"""

from collections.abc import Callable
from datetime import datetime

from zeroclaw.clock import Ids
from zeroclaw.delivery.rows import note_row, settle_rows
from zeroclaw.envelope import (
    Address,
    Choice,
    Command,
    ConversationId,
    ItemId,
    MessageRef,
    Pressed,
    Principal,
)
from zeroclaw.gate import approval as approvals
from zeroclaw.gate import wording
from zeroclaw.gate.action import from_row
from zeroclaw.gate.approval import Answered, Approval, Late, ReasonWanted, Result
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.grant import grant_for, to_put
from zeroclaw.gate.policy import PolicySet
from zeroclaw.gate.ruling import rule_answer
from zeroclaw.inbound.conversations import Found
from zeroclaw.inbound.plan import Plan
from zeroclaw.inbound.questions import Questions
from zeroclaw.store import RowKind, Store, Write, find_all
from zeroclaw.text import catalogue
from zeroclaw.text.escape import escape_invisible
from zeroclaw.turn.asks import on_cards
from zeroclaw.turn.inbox import Answer, Item, item_put
from zeroclaw.turn.numbers import Numbers, last_put
from zeroclaw.value import Value, replace

GRANTS = "grants"
"""Where grants are numbered, as calls are in an approver's chat; no chat's key is this word."""
LOOK_BACK = 200
"""Ended approvals of a chat that numbers are still understood for."""


class _Read(Value):
    """An approval and the version it was read at."""

    approval: Approval
    version: int


class Answers:
    """Plans what answers come to; ingress commits it."""

    def __init__(
        self,
        *,
        store: Store,
        questions: Questions,
        policy: Callable[[], PolicySet],
        redact: Callable[[str], str],
        ids: Ids,
        numbers: Numbers,
    ) -> None:
        """Hold what answers need.

        Args:
            store: Where approvals are read.
            questions: About strangers, which are answered the same way.
            policy: The one in force now.
            redact: For reasons that people type.
            ids: For rows.
            numbers: For grants.
        """
        self._store = store
        self._questions = questions
        self._policy = policy
        self._redact = redact
        self._ids = ids
        self._numbers = numbers

    async def press(self, pressed: Pressed, principal: Principal, at: datetime) -> Plan | None:
        """Return what a press comes to; None for a card of nobody's."""
        row = await self._store.get(RowKind.APPROVAL, pressed.approval)
        if row is None:
            return await self._questions.press(pressed, principal)
        read = _Read(approval=approvals.decode(row.body), version=row.version)
        if pressed.card is not None:
            shown = approvals.with_ref(read.approval, pressed.card)
            read = _Read(approval=shown, version=row.version)
        return await self._decided(read, pressed.card, pressed, principal, at)

    async def _decided(
        self,
        read: _Read,
        card: MessageRef | None,
        pressed: Pressed,
        principal: Principal,
        at: datetime,
    ) -> Plan:
        result = self._result(read.approval, principal, pressed.choice, pressed.reason, at)
        conversation = read.approval.conversation
        match result:
            case Answered(approval=ended) | Late(approval=ended):
                writes = await self._ending(
                    read, ended, card.address if card else None, principal, at
                )
                return Plan(
                    conversation=conversation,
                    writes=writes,
                    toast=wording.toast(result, principal.language),
                    wake=(conversation,),
                )
            case _:
                touched = await self._touched(read, card)
                return Plan(
                    conversation=conversation,
                    writes=touched,
                    toast=wording.toast(result, principal.language),
                    reply_wanted=isinstance(result, ReasonWanted),
                    idle=True,
                )

    async def by_number(
        self,
        command: Command,
        address: Address,
        principal: Principal,
        at: datetime,
        found: Found,
    ) -> Plan:
        """Return what `/approve 1 3` or `/deny 2 because …` comes to in one chat.

        Calls of another conversation than the first one's are left for a plan after it.
        """
        read, language = await self._in_chat(address), principal.language
        numbers = wording.parse_numbers(command.rest)
        picked = wording.pick((one.approval for one in read), address.key(), numbers.numbers)
        strangers = await self._questions.by_number(address, picked.unknown, principal)
        told: list[str] = [
            catalogue.NO_SUCH_CALL.to(language, number=number)
            for number in picked.unknown
            if number not in strangers
        ]
        told += [
            f"`{approvals.number_of(one, address.key())}`: {wording.ended(one, language)}."
            for one in picked.ended
        ]
        if numbers.too_many:
            told.append(catalogue.TOO_MANY_NUMBERS.to(language, most=wording.MOST_NUMBERS))
        elif not numbers.numbers:
            told.append(catalogue.SAY_WHICH_CALL.to(language, command=command.name))
        scope = picked.open[0].conversation if picked.open else None
        versions = {one.approval.id: one for one in read}
        writes: list[Write] = []
        for one in picked.open:
            if one.conversation != scope:
                continue
            choice: Choice = "once" if command.name == "approve" else "deny"
            result = self._result(one, principal, choice, numbers.rest, at)
            if isinstance(result, Answered | Late):
                ended = result.approval
                writes += await self._ending(versions[one.id], ended, address, principal, at)
            number = approvals.number_of(one, address.key())
            told.append(f"`{number}`: {wording.toast(result, language)}.")
        for number, one in strangers.items():
            yes = command.name == "approve"
            more, toast = await self._questions.answer(one, yes=yes, principal=principal)
            writes += more
            told.append(f"`{number}`: {toast}.")
        note = note_row(
            key=self._ids.ulid(),
            conversation=found.conversation,
            address=address,
            text="\n".join(told),
            language=language,
        )
        left = [
            str(approvals.number_of(one, address.key()))
            for one in picked.open
            if one.conversation != scope
        ]
        rest = replace(command, rest=" ".join((*left, numbers.rest)))
        return Plan(
            conversation=scope or found.conversation,
            here=found.conversation,
            writes=(*found.writes, *writes, note),
            wake=(scope,) if scope and writes else (),
            idle=not writes,
            rest=rest if left else None,
        )

    async def pending(
        self, here: ConversationId, address: Address, principal: Principal, at: datetime
    ) -> str:
        """List the open questions that this person may answer, and those they set off.

        Others read along in a group, so only what was asked there is listed, and what a call would
        do only where its card stands.
        """
        lines: list[str] = []
        language = principal.language
        async for row in find_all(self._store, RowKind.APPROVAL, state="pending"):
            one = approvals.decode(row.body)
            may = self._may(one, principal, at)
            number = approvals.number_of(one, address.key())
            if not (address.direct or number or one.conversation == here):
                continue
            if may or one.requester.id == principal.id:
                name = f"`{number}`" if number else f"`{one.action_hash[:8]}`"
                until = wording.ended(one, language)
                who = approvals.who(one.approvers, language)
                whom = "" if may else catalogue.WAITING_FOR_WHOM.to(language, who=who)
                what = (
                    f": {escape_invisible(approvals.summary_in(one, language))}"
                    if address.direct or number
                    else ""
                )
                lines.append(f"- {name} `{one.tool}`{what}, {until}{whom}")
        lines += [f"- {line}" for line in await self._questions.lines(address, principal)]
        return "\n".join(lines) or catalogue.NOTHING_WAITS.to(language)

    async def overdue(self, now: datetime) -> tuple[Plan, ...]:
        """Return the endings of all questions whose deadline has passed, for the start."""
        plans: list[Plan] = []
        async for row in find_all(self._store, RowKind.APPROVAL, state="pending", due_before=now):
            read = _Read(approval=approvals.decode(row.body), version=row.version)
            ended = approvals.expire(read.approval, now)
            conversation = ended.conversation
            writes = await self._ending(read, ended, None, ended.requester, now)
            plans.append(Plan(conversation=conversation, writes=writes, wake=(conversation,)))
        return tuple(plans)

    def _result(
        self, one: Approval, principal: Principal, choice: Choice, reason: str, at: datetime
    ) -> Result:
        return approvals.answer(
            one,
            principal=principal,
            choice=choice,
            admitted_at=at,
            may_approve=self._may(one, principal, at),
            reason=self._redact(reason),
        )

    def _may(self, one: Approval, principal: Principal, at: datetime) -> bool:
        query = Query(principal=principal, action=f"approve:{one.tool}", now=at)
        ruling = rule_answer(query, policy=self._policy(), approvers=one.approvers)
        return ruling.decision.effect == "allow"

    async def _ending(
        self,
        read: _Read,
        ended: Approval,
        address: Address | None,
        principal: Principal,
        at: datetime,
    ) -> tuple[Write, ...]:
        item = Item(
            id=ItemId(self._ids.ulid()),
            conversation=ended.conversation,
            address=address or _anywhere(ended),
            principal=principal,
            content=Answer(approval=ended.id),
            admitted_at=at,
            turn=ended.turn,
        )
        writes: list[Write] = [
            approvals.to_put(ended, expect=read.version),
            item_put(item, "control", expect=0),
        ]
        if ended.choice == "for_a_time" and ended.state == "approved":
            writes += await self._grant(ended, principal, at)
        return tuple(writes)

    async def _grant(
        self, ended: Approval, principal: Principal, at: datetime
    ) -> tuple[Write, ...]:
        """Return the grant of an answer that holds for a time."""
        row = await self._store.get(RowKind.ACTION, ended.action)
        if row is None or ended.scope is None:
            return ()
        number = await self._numbers.take(GRANTS, 1)
        grant = grant_for(
            from_row(row.body).action,
            ended.scope,
            id=self._ids.ulid(),
            number=number,
            granter=principal,
            at=at,
        )
        return (to_put(grant), last_put(GRANTS, grant.id, number))

    async def _touched(self, read: _Read, card: MessageRef | None) -> tuple[Write, ...]:
        """Record a card that was not known, and show on it how its question ended."""
        if card is None:
            return ()
        writes: list[Write] = [approvals.to_put(read.approval, expect=read.version)]
        if read.approval.state != "pending":
            one = read.approval
            family = await on_cards(self._store, one.conversation, frozenset({one.card}))
            writes.extend(
                settle_rows(
                    keys=(self._ids.ulid(),),
                    conversation=read.approval.conversation,
                    refs=(card,),
                    outcome=approvals.outcome_of(family, card.address.key()),
                )
            )
        return tuple(writes)

    async def _in_chat(self, address: Address) -> tuple[_Read, ...]:
        """Return the approvals that numbers of a chat can mean: all open ones, and late ones."""
        still_open = find_all(self._store, RowKind.APPROVAL, state="pending")
        rows = {row.key: row async for row in still_open}
        ended = await self._store.find(
            RowKind.APPROVAL, place=address.key(), newest_first=True, limit=LOOK_BACK
        )
        rows.update({row.key: row for row in ended})
        return tuple(
            _Read(approval=approvals.decode(row.body), version=row.version) for row in rows.values()
        )


def _anywhere(ended: Approval) -> Address:
    """Return an address for an ending that came from nowhere: the deadline's."""
    return Address(channel="", account="", chat=ended.conversation)
