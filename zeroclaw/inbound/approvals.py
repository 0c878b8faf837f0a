"""Approval requests of every kind: answered in one commit, by compare-and-set (P5).

The answer to a call's request ends the row and puts a control item into the conversation that
asked, so that its holder continues. The answer to a stranger's request lets in who was approved,
and every known card shows how it ended (P4); a conversation's policy never sees a stranger. A press
on a card that was never recorded makes the card's ref known. A press that comes too late runs
nothing, and the card is shown as it ended.
"""

from collections.abc import Iterable
from functools import partial

from zeroclaw.conversation.inbox import ApprovalAnswered
from zeroclaw.delivery.rows import ApprovalCard, Settle, outbox_row
from zeroclaw.envelope import (
    Address,
    Choice,
    MessageRef,
    Pressed,
    Principal,
    Reader,
    is_off_the_record,
)
from zeroclaw.gate import approval as approvals
from zeroclaw.gate import wording
from zeroclaw.gate.action import ACTIONS
from zeroclaw.gate.approval import APPROVALS, AnswerResult, Approval, Numbered, R, number_of
from zeroclaw.gate.grant import grant_for, to_put
from zeroclaw.inbound import pairing
from zeroclaw.inbound.commands.invocation import Invocation, Reply
from zeroclaw.inbound.context import InboundContext, Plan
from zeroclaw.inbound.identity import PEOPLE, Known, known_put
from zeroclaw.inbound.pairing import STRANGERS, Stranger
from zeroclaw.store import Put, Reads, RowKind, Rows, Write, readable_of, scan
from zeroclaw.table import Column, Stays, Table, Words, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.escape import escape_invisible
from zeroclaw.text.language import Sentence
from zeroclaw.turn.approvals import on_cards
from zeroclaw.value import Struct, replace

GRANTS = "grants"
"""The scope in which grants are numbered, like calls in an approver's chat; no chat has this key."""
LOOK_BACK = 200
"""How many ended approvals of a chat can still be referred to by number."""

Request = Approval | Stranger


async def requests_of(rows: Rows, keys: Iterable[str]) -> list[Request]:
    """Return requests of any kind, without unknown ones."""
    found = [await APPROVALS.get(rows, key) or await STRANGERS.get(rows, key) for key in keys]
    return [one for one in found if one is not None]


def request_put(one: Request) -> Put:
    """Return the write that records a request of any kind."""
    return approvals.to_put(one) if isinstance(one, Approval) else pairing.to_put(one)


class Approvals(Struct, eq=False):
    """Plans the effects of answers; ingress commits them."""

    context: InboundContext

    async def press(self, reads: Reads, pressed: Pressed, principal: Principal) -> Plan | None:
        """Return the effect of a press; None for a card without a request."""
        card, found = pressed.card, await requests_of(reads, (pressed.approval,))
        if not found:
            return None
        before = found[0]
        one = before if card is None else approvals.with_ref(before, card)
        scope = one.conversation if isinstance(one, Approval) else None
        if scope is None and not self.may_pair(principal):
            toast = catalogue.ONLY_AN_OPERATOR.to(principal.language)
            return Plan(conversation=None, toast=toast, idle=True)
        result, toast = self._answer(one, principal, pressed.choice, pressed.reason)
        if result.how == "refused":
            # It does not record the card either: Telegram lets a client name any of the bot's
            # messages as the one that was pressed (Bot API, CallbackQuery.data, read 2026-11).
            return Plan(conversation=scope, toast=toast, idle=True)
        writes = await self._ending(reads, result, principal, card.address if card else None)
        has_ended = bool(writes)
        if not has_ended and card is not None and not (one is before and one.is_open):
            # Record a card that was not known; it shows how its question ended.
            settles = () if one.is_open else await self.settled(one, (card,))
            writes = (request_put(one), *settles)
        return Plan(
            conversation=scope,
            writes=writes,
            toast=toast,
            reply_wanted=result.how == "reason_wanted",
            wake=(scope,) if scope and has_ended else (),
            idle=not has_ended,
        )

    async def by_number(self, given: Invocation) -> Reply:
        """Return the effect of `/approve 1 3` or `/deny 2 because …` in one chat.

        Calls of other conversations than the first one's are left for a following plan.
        """
        principal, language = given.principal, given.language
        place, is_yes = given.address.key(), given.command.name == "approve"
        # In a mail, the writer's signature is on the lines below.
        words = given.command.rest.strip()
        numbers = wording.parse_numbers(words.partition("\n")[0] if is_yes else words)
        if is_yes and numbers.rest:
            # `/approve 3 1 hour` does not mean call 1.
            return Reply(text=catalogue.ONLY_NUMBERS_APPROVE.to(language))
        here = wording.numbered(await self._in_chat(given), place)
        named = [(number, here.get(number)) for number in numbers.numbers]
        told = [
            catalogue.NO_SUCH_CALL.to(language, number=number) for number, one in named if not one
        ]
        told += [
            f"`{number}`: {wording.ended(one, language)}."
            for number, one in named
            if one and not one.is_open
        ]
        if numbers.too_many:
            told.append(catalogue.TOO_MANY_NUMBERS.to(language, most=wording.MOST_NUMBERS))
        elif not numbers.numbers:
            told.append(catalogue.SAY_WHICH_CALL.to(language, command=given.command.name))
        asked = [(str(number), one) for number, one in named if one and one.is_open]
        scope = next((one.conversation for _, one in asked if isinstance(one, Approval)), None)
        choice: Choice = "once" if is_yes else "deny"
        writes: list[Write] = []
        left: list[str] = []
        for number, one in asked:
            if isinstance(one, Approval) and one.conversation != scope:
                left.append(number)
                continue
            result, toast = self._answer(one, principal, choice, numbers.rest)
            writes += await self._ending(given.reads, result, principal, given.address)
            told.append(f"`{number}`: {toast}.")
        rest = replace(given.command, rest=" ".join((*left, numbers.rest)))
        return Reply(
            text="\n".join(told),
            writes=tuple(writes),
            scope=scope,
            wake=(scope,) if scope and writes else (),
            remaining_command=rest if left else None,
        )

    async def pending(self, given: Invocation) -> Reply:
        """List the open questions that this person may answer, and those about their own calls.

        Other people read along in a group, so it lists only what was asked there, and shows what a
        call would do only in the chat of its card.
        """
        address, principal, language = given.address, given.principal, given.language
        lines: list[str] = []
        at, place = self.context.clock.now(), address.key()
        who = approvals.who(self.context.settings.config.approvals.approvers, language)
        async for one in APPROVALS.readable(self.context.store, state="pending"):
            may = self.context.may_approve(principal, one.tool)
            number = approvals.number_of(one, place)
            is_shown = address.direct or bool(number)
            if not (is_shown or one.conversation == given.here):
                continue
            if may or one.requester.id == principal.id:
                name = f"`{number}`" if number else f"`{one.action_hash[:8]}`"
                whom = "" if may else catalogue.WAITING_FOR_WHOM.to(language, who=who)
                summary = escape_invisible(approvals.summary_in(one, language))
                # The list is on the record in the chat that asked for it.
                is_told = is_shown and not is_off_the_record(one.conversation)
                what = f": {summary}" if is_told else ""
                until = wording.ended(one, language)
                lines.append(f"- {name} `{one.tool}`{what}, {until}{whom}")
        if self.may_pair(principal):
            # In a group only requests with a card there: others read along.
            lines += [
                f"- {pairing.list_line(one, language, place)}"
                for one in await strangers_of(self.context.store)
                if pairing.is_open(one, at) and (address.direct or approvals.number_of(one, place))
            ]
        return Reply(text="\n".join(lines) or catalogue.NOTHING_WAITS.to(language))

    async def expired(self, key: str, reads: Reads) -> Plan:
        """Return the end of a call's request by its deadline; none if an answer was first."""
        one = await APPROVALS.get(reads, key)
        if one is None or not one.is_open:
            return Plan(conversation=None)
        ended = approvals.expire(one, self.context.clock.now())
        here, late = ended.conversation, AnswerResult(request=ended, how="late")
        writes = await self._ending(reads, late, ended.requester, None)
        return Plan(conversation=here, writes=writes, wake=(here,))

    # --- the effects of an answer --------------------------------------------------------------

    async def answer_about_stranger(
        self, given: Invocation, one: Stranger, choice: Choice
    ) -> Reply:
        """Return the effect of an answer; the caller has checked that this person may answer."""
        result, toast = self._answer(one, given.principal, choice)
        writes = await self._ending(given.reads, result, given.principal, None)
        return Reply(text=toast, writes=writes)

    def _answer(
        self, one: Request, principal: Principal, choice: Choice, reason: str = ""
    ) -> tuple[AnswerResult[Approval] | AnswerResult[Stranger], str]:
        """Return the result of an answer, and one line for the person who gave it."""
        at = self.context.clock.now()
        if isinstance(one, Stranger):
            by, yes = pairing.by_of(principal), approvals.is_yes(choice)
            met = approvals.decide(one, yes=yes, by=by, at=at)
            return met, pairing.toast(met, principal.language)
        found = approvals.answer(
            self.context.in_force(one),
            principal=principal,
            requester=self.context.people.by_now(one.requester),
            choice=choice,
            admitted_at=at,
            may_approve=self.context.may_approve(principal, one.tool),
            reason=self.context.redact(reason),
        )
        return found, wording.toast(found, principal.language)

    def may_pair(self, principal: Principal) -> bool:
        """Whether a person may answer pairing requests; where they ask from does not matter."""
        return self.context.may(principal, "command:pair")

    async def _ending(
        self,
        reads: Reads,
        result: AnswerResult[Approval] | AnswerResult[Stranger],
        principal: Principal,
        address: Address | None,
    ) -> tuple[Write, ...]:
        """Return the writes if the answer has ended the request, else none."""
        if not result.ends:
            return ()
        ended = result.request
        put = request_put(ended)
        if isinstance(ended, Stranger):
            settles = await self.settled(ended, ended.refs)
            if ended.state != "approved":
                return (put, *settles)
            admitted = await let_in(
                self.context,
                reads,
                ended.identity,
                ended.address,
                catalogue.YOU_ARE_LET_IN,
                display=ended.display,
                by=ended.by,
            )
            return (put, *admitted, *settles)
        # The deadline's answer has no address.
        nowhere = Address(channel="", account="", chat=ended.conversation)
        control = self.context.control(
            ApprovalAnswered(approval=ended.id),
            ended.conversation,
            address or nowhere,
            principal,
            turn=ended.turn,
        )
        is_granted = ended.choice == "for_a_time" and ended.state == "approved"
        granted = await self._grant(reads, ended, principal) if is_granted else ()
        return (put, control, *granted)

    async def _grant(
        self, reads: Reads, ended: Approval, principal: Principal
    ) -> tuple[Write, ...]:
        """Return the writes of the grant for an answer that lasts for a time."""
        asked = await ACTIONS.get(self.context.store, ended.action)
        if asked is None or ended.scope is None or ended.at is None:
            return ()
        if self.context.people.excluded_by(ended.requester):
            return ()  # revoked just now: it would outlive the end of their others
        name = self.context.ids.ulid()
        number, counters = await take_numbers(reads, GRANTS, 1)
        grant = grant_for(
            asked.action, ended.scope, id=name, number=number, granter=principal, at=ended.at
        )
        return (to_put(grant), *counters)

    # --- cards ---------------------------------------------------------------------------------

    async def put_to(
        self, reads: Reads, readers: tuple[Reader, ...], one: Stranger, code: str = ""
    ) -> tuple[Write, ...]:
        """Return the writes that put the question about a stranger to operators.

        Args:
            reads: What the plan reads through.
            readers: The operators' chats that have no card of it.
            one: The question.
            code: The stranger's code; empty if only its hash is known any more.
        """
        (asked,), counters = await give_numbers(reads, (one,), readers)
        cards = tuple(
            outbox_row(
                self.context.ids.ulid(),
                ApprovalCard(
                    address=reader.address,
                    card=pairing.card_of(asked, reader.address.key(), code),
                    approvals=(one.id,),
                ),
            )
            for reader in readers
        )
        known = replace(asked, messages=(*asked.messages, *(card.key for card in cards)))
        return (pairing.to_put(known), *counters, *cards)

    async def settled(self, one: Request, refs: Iterable[MessageRef]) -> tuple[Put, ...]:
        """Return the writes that show on these cards how a request ended."""
        if isinstance(one, Stranger):
            here, shown = None, partial(pairing.outcome_of, one)
        else:
            here, cards = one.conversation, frozenset({one.card})
            family = await on_cards(self.context.store, here, cards)
            shown = partial(approvals.outcome_of, family)
        return tuple(
            outbox_row(
                self.context.ids.ulid(), Settle(ref=ref, outcome=shown(ref.address.key())), here
            )
            for ref in refs
        )

    async def _in_chat(self, given: Invocation) -> tuple[Request, ...]:
        """Return what a chat's numbers can mean: all open requests, and recently ended ones."""
        reads, place = given.reads, given.address.key()
        calls = {one.id: one async for one in APPROVALS.readable(reads, state="pending")}
        ended = await reads.select(APPROVALS.where(place=place, newest_first=True, limit=LOOK_BACK))
        calls.update((one.id, one) for one in readable_of(ended, APPROVALS.of))
        strangers = await strangers_of(reads) if self.may_pair(given.principal) else ()
        return (*strangers, *calls.values())


async def let_in(
    context: InboundContext,
    reads: Reads,
    identity: str,
    address: Address,
    says: Sentence,
    *,
    display: str,
    by: str,
    roles: tuple[str, ...] = (),
) -> tuple[Write, ...]:
    """Return the writes that admit a person, and tell them.

    Without new roles they keep their current ones: if they sent the printed code meanwhile, they
    stay the operator that it made them.
    """
    before = await PEOPLE.get(reads, identity)
    if before is not None and before.state == "admitted":
        roles = roles or before.roles
    known = Known(
        id=identity, display=display, state="admitted", by=by, at=context.clock.now(), roles=roles
    )
    text = says.to(context.people.language_of(identity))
    return (known_put(known), context.note(text, address))


async def strangers_of(rows: Rows) -> list[Stranger]:
    """Return every stored request about a stranger, oldest first."""
    return sorted([one async for one in STRANGERS.readable(rows)], key=lambda one: one.asked_at)


# --- the numbers of requests in a chat: they only increase, across restarts too ---------------------


COUNTERS = Table(
    kind=RowKind.COUNTER,
    codec=json_codec(int),
    columns=frozenset({Column.PLACE}),
    keeps=Stays(until="the end: no number of a chat is given out twice"),
    words=Words.NOBODY,
)


async def give_numbers(
    reads: Reads, asked: tuple[R, ...], readers: Iterable[Reader]
) -> tuple[tuple[R, ...], tuple[Write, ...]]:
    """Number each approval request in each chat that it is shown in.

    Args:
        reads: What the plan of their commit reads through.
        asked: The requests, in the order in which they are numbered.
        readers: The chats.

    Returns:
        The requests with their numbers, and the writes to commit with them.
    """
    counters: list[Write] = []
    for reader in readers:
        place = reader.address.key()
        first, counted = await take_numbers(reads, place, len(asked))
        counters += counted
        asked = tuple(
            replace(
                one,
                numbers=(
                    *one.numbers,
                    Numbered(place=place, number=number, language=reader.language),
                ),
            )
            for number, one in enumerate(asked, first)
        )
    return asked, tuple(counters)


async def take_numbers(reads: Reads, place: str, count: int) -> tuple[int, tuple[Write, ...]]:
    """Return the first of `count` fresh numbers, and the writes to commit with them.

    Args:
        reads: What the plan reads through; a plan takes numbers of one place once.
        place: The chat's address key, or another name for what is numbered.
        count: How many.
    """
    await reads.get(COUNTERS.kind, place)  # guards the row that whoever takes a number writes
    found = [row async for row in scan(reads, COUNTERS.where(place=place))]
    counted = [*readable_of(found, COUNTERS.of)]
    if len(counted) < len(found):
        # The damaged one may be the highest, and no number may be given out twice.
        counted += [number_of(one, place) async for one in APPROVALS.readable(reads)]
    last = max(counted, default=0)
    # An older release counted for each conversation.
    older = (COUNTERS.delete(row.key) for row in found if row.key != place)
    return last + 1, (COUNTERS.put(place, last + count, place=place), *older)
