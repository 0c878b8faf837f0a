"""Approval requests of every kind: answered in one commit, by compare-and-set, wherever (P5).

About a call, the commit ends the row and puts a control item into the conversation that asked, so
that whoever holds it goes on. About a stranger, it lets in who was approved, and every card that is
known shows how it ended (P4); a conversation's policy never sees a stranger. A press on a card that
was never recorded is how its ref becomes known; a press that comes too late runs nothing, and the
card is shown as it ended.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Generic

from zeroclaw.delivery.rows import note_row, settle_rows
from zeroclaw.envelope import (
    Address,
    ApprovalId,
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
from zeroclaw.gate.approval import APPROVALS, Answered, Approval, Late, R, ReasonWanted, Result
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.grant import grant_for, to_put
from zeroclaw.gate.ruling import rule_answer
from zeroclaw.inbound import pairing
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.conversations import Found
from zeroclaw.inbound.identity import Known, known_of, known_put
from zeroclaw.inbound.pairing import STRANGERS, Stranger
from zeroclaw.inbound.plan import Plan
from zeroclaw.store import Put, RowKind, Rows, Write, scan
from zeroclaw.text import catalogue
from zeroclaw.text.escape import escape_invisible
from zeroclaw.turn.approvals import on_cards
from zeroclaw.turn.inbox import Answer, Item, item_put
from zeroclaw.turn.numbers import Numbers, last_put
from zeroclaw.value import Value, replace

GRANTS = "grants"
"""Where grants are numbered, as calls are in an approver's chat; no chat's key is this word."""
LOOK_BACK = 200
"""Ended approvals of a chat that numbers are still understood for."""


class Read(Value, Generic[R]):
    """A request and the version it was read at."""

    request: R
    version: int


class Approvals:
    """Plans what answers come to; ingress commits it."""

    def __init__(self, context: InboundContext, numbers: Numbers) -> None:
        """Hold what answers need; `numbers` is for grants."""
        self._context = context
        self._numbers = numbers

    async def press(self, pressed: Pressed, principal: Principal, at: datetime) -> Plan | None:
        """Return what a press comes to; None for a card of nobody's."""
        row = await self._context.store.get(RowKind.APPROVAL, pressed.approval)
        if row is None:
            return await self._press_about_stranger(pressed, principal, at)
        one = approvals.decode(row.body)
        if pressed.card is not None:
            one = approvals.with_ref(one, pressed.card)
        read = Read(request=one, version=row.version)
        result = self._result(one, principal, pressed.choice, pressed.reason, at)
        toast, here = wording.toast(result, principal.language), one.conversation
        match result:
            case Answered(approval=ended) | Late(approval=ended):
                address = pressed.card.address if pressed.card else None
                writes = await self._ending(read, ended, address, principal, at)
                return Plan(conversation=here, writes=writes, toast=toast, wake=(here,))
            case _:
                return Plan(
                    conversation=here,
                    writes=await self._touched(read, pressed.card),
                    toast=toast,
                    reply_wanted=isinstance(result, ReasonWanted),
                    idle=True,
                )

    async def _press_about_stranger(
        self, pressed: Pressed, principal: Principal, at: datetime
    ) -> Plan | None:
        row = await self._context.store.get(RowKind.STRANGER, pressed.approval)
        if row is None:
            return None
        if not self.may_pair(principal):
            toast = catalogue.ONLY_AN_OPERATOR.to(principal.language)
            return Plan(conversation=None, toast=toast, idle=True)
        before = pairing.of_row(row)
        one = before if pressed.card is None else approvals.with_ref(before, pressed.card)
        yes = pressed.choice in ("once", "for_a_time")
        read = Read(request=one, version=row.version)
        writes, toast = await self.answer_about_stranger(read, yes=yes, principal=principal, at=at)
        if not writes and one != before and pressed.card is not None:
            put = pairing.to_put(one, expect=row.version)
            writes = (put, *self.settled(one, (pressed.card,)))
        return Plan(conversation=None, writes=writes, toast=toast, idle=not writes)

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
        picked = wording.pick((one.request for one in read), address.key(), numbers.numbers)
        strangers = await self._strangers_by_number(address, picked.unknown, principal)
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
        versions = {one.request.id: one for one in read}
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
            more, toast = await self.answer_about_stranger(one, yes=yes, principal=principal, at=at)
            writes += more
            told.append(f"`{number}`: {toast}.")
        note = note_row(
            key=self._context.ids.ulid(),
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
        async for row in scan(self._context.store, APPROVALS.where(state="pending")):
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
        if self.may_pair(principal):
            # In a group only those whose card stands there: others read along.
            lines += [
                f"- {pairing.line(one, language, address.key())}"
                for one in (read.request for read in await strangers_of(self._context.store))
                if pairing.is_open(one, at)
                and (address.direct or approvals.number_of(one, address.key()))
            ]
        return "\n".join(lines) or catalogue.NOTHING_WAITS.to(language)

    async def overdue(self, now: datetime) -> tuple[Plan, ...]:
        """Return the endings of all questions whose deadline has passed, for the start."""
        plans: list[Plan] = []
        async for row in scan(
            self._context.store, APPROVALS.where(state="pending", due_before=now)
        ):
            read = Read(request=approvals.decode(row.body), version=row.version)
            ended = approvals.expire(read.request, now)
            conversation = ended.conversation
            writes = await self._ending(read, ended, None, ended.requester, now)
            plans.append(Plan(conversation=conversation, writes=writes, wake=(conversation,)))
        return tuple(plans)

    # --- about strangers -----------------------------------------------------------------------

    def may_pair(self, principal: Principal) -> bool:
        """Whether somebody may answer for strangers; where they ask from does not matter."""
        now = self._context.clock.now()
        query = Query(principal=principal, action="command:pair", now=now, own=True)
        return self._context.policy().decide(query).effect == "allow"

    async def answer_about_stranger(
        self, read: Read[Stranger], *, yes: bool, principal: Principal, at: datetime
    ) -> tuple[tuple[Write, ...], str]:
        """Return the writes of an operator's answer, none when it changes nothing, and its toast.

        That they may answer was checked.
        """
        by = pairing.by_of(principal)
        result = pairing.answer(read.request, yes=yes, by=by, at=at)
        toast = pairing.said(result, principal.language)
        match result:
            case Answered(approval=one) | Late(approval=one):
                admitted = await self._let_in(one, at) if one.state == "approved" else ()
                put = pairing.to_put(one, expect=read.version)
                return (put, *admitted, *self.settled(one, one.refs)), toast
            case _:
                return (), toast

    async def _let_in(self, one: Stranger, at: datetime) -> tuple[Write, ...]:
        row = await self._context.store.get(RowKind.PERSON, one.identity)
        known = Known(
            id=one.identity,
            display=one.display,
            state="admitted",
            by=one.by,
            at=at,
            # Who sent the printed code meanwhile stays the operator that it made them.
            roles=known_of(row).roles if row is not None and row.state == "admitted" else (),
        )
        put = known_put(known, expect=row.version if row else 0)
        text = catalogue.YOU_ARE_LET_IN.to(self._context.people.language_of(one.identity))
        return (put, note_row(key=self._context.ids.ulid(), address=one.address, text=text))

    async def _strangers_by_number(
        self, place: Address, numbers: Iterable[int], principal: Principal
    ) -> dict[int, Read[Stranger]]:
        """Return the requests that numbers mean in one chat, for somebody who may answer them."""
        wanted = frozenset(numbers)
        if not wanted or not self.may_pair(principal):
            return {}
        every = await strangers_of(self._context.store)
        found = {approvals.number_of(one.request, place.key()): one for one in every}
        return {number: one for number, one in found.items() if number in wanted}

    def settled(self, one: Stranger, refs: Iterable[MessageRef]) -> tuple[Put, ...]:
        """Return the writes that show on these cards how a request ended."""
        return tuple(
            put
            for ref in refs
            for put in settle_rows(
                keys=(self._context.ids.ulid(),),
                conversation=None,
                refs=(ref,),
                outcome=pairing.outcome_of(one, ref.address.key()),
            )
        )

    async def stands(self, id: ApprovalId) -> tuple[MessageRef, ...]:  # noqa: A002
        """Return the cards of a request about a stranger that are known."""
        row = await self._context.store.get(RowKind.STRANGER, id)
        return () if row is None else pairing.of_row(row).refs

    async def shown(self, id: ApprovalId, ref: MessageRef) -> tuple[Write, ...]:  # noqa: A002
        """Return what to write when such a card stands; one that ended meanwhile is settled."""
        row = await self._context.store.get(RowKind.STRANGER, id)
        if row is None:
            return ()
        one = approvals.with_ref(pairing.of_row(row), ref)
        settles = () if one.is_open else self.settled(one, (ref,))
        return (pairing.to_put(one, expect=row.version), *settles)

    # --- about calls ---------------------------------------------------------------------------

    def _result(
        self, one: Approval, principal: Principal, choice: Choice, reason: str, at: datetime
    ) -> Result:
        return approvals.answer(
            one,
            principal=principal,
            choice=choice,
            admitted_at=at,
            may_approve=self._may(one, principal, at),
            reason=self._context.redact(reason),
        )

    def _may(self, one: Approval, principal: Principal, at: datetime) -> bool:
        query = Query(principal=principal, action=f"approve:{one.tool}", now=at)
        ruling = rule_answer(query, policy=self._context.policy(), approvers=one.approvers)
        return ruling.decision.effect == "allow"

    async def _ending(
        self,
        read: Read[Approval],
        ended: Approval,
        address: Address | None,
        principal: Principal,
        at: datetime,
    ) -> tuple[Write, ...]:
        item = Item(
            id=ItemId(self._context.ids.ulid()),
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
        row = await self._context.store.get(RowKind.ACTION, ended.action)
        if row is None or ended.scope is None:
            return ()
        number = await self._numbers.take(GRANTS, 1)
        grant = grant_for(
            from_row(row.body).action,
            ended.scope,
            id=self._context.ids.ulid(),
            number=number,
            granter=principal,
            at=at,
        )
        return (to_put(grant), last_put(GRANTS, grant.id, number))

    async def _touched(self, read: Read[Approval], card: MessageRef | None) -> tuple[Write, ...]:
        """Record a card that was not known, and show on it how its question ended."""
        if card is None:
            return ()
        writes: list[Write] = [approvals.to_put(read.request, expect=read.version)]
        if read.request.state != "pending":
            one = read.request
            family = await on_cards(self._context.store, one.conversation, frozenset({one.card}))
            writes.extend(
                settle_rows(
                    keys=(self._context.ids.ulid(),),
                    conversation=read.request.conversation,
                    refs=(card,),
                    outcome=approvals.outcome_of(family, card.address.key()),
                )
            )
        return tuple(writes)

    async def _in_chat(self, address: Address) -> tuple[Read[Approval], ...]:
        """Return the approvals that numbers of a chat can mean: all open ones, and late ones."""
        still_open = scan(self._context.store, APPROVALS.where(state="pending"))
        rows = {row.key: row async for row in still_open}
        ended = await self._context.store.select(
            APPROVALS.where(place=address.key(), newest_first=True, limit=LOOK_BACK)
        )
        rows.update({row.key: row for row in ended})
        return tuple(
            Read(request=approvals.decode(row.body), version=row.version) for row in rows.values()
        )


def _anywhere(ended: Approval) -> Address:
    """Return an address for an ending that came from nowhere: the deadline's."""
    return Address(channel="", account="", chat=ended.conversation)


async def strangers_of(rows: Rows) -> tuple[Read[Stranger], ...]:
    """Return every request about a stranger that is remembered, oldest first."""
    found = scan(rows, STRANGERS.where())
    read = [Read(request=pairing.of_row(row), version=row.version) async for row in found]
    return tuple(sorted(read, key=lambda one: one.request.asked_at))
