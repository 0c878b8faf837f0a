"""Answers to approval requests of every kind, each in one commit, by compare-and-set (P5).

The answer to a call's request ends the row and puts a control item into the conversation of the
call, so that its holder continues. The answer to a pairing request admits or denies the stranger,
and every recorded card shows the outcome (P4); a conversation's policy never sees a stranger. A
press on a card that was never recorded records the card. A press that comes too late runs nothing,
and the card shows the outcome.
"""

from collections.abc import Iterable
from functools import partial

from zeroclaw.conversation.inbox import ApprovalAnswered
from zeroclaw.delivery.rows import ApprovalCard, Settle, outbox_row
from zeroclaw.envelope import (
    Address,
    Choice,
    ConversationId,
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
from zeroclaw.inbound.identity import PEOPLE, Person, person_put
from zeroclaw.inbound.pairing import PAIRINGS, PairingRequest
from zeroclaw.store import Put, Reads, RowKind, Rows, Write, readable_of, scan
from zeroclaw.table import Column, Stays, Table, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.escape import escape_invisible
from zeroclaw.text.language import Sentence
from zeroclaw.turn.approvals import on_cards
from zeroclaw.value import Struct, replace

GRANTS = "grants"
"""The scope in which grants are numbered, as calls are in a chat; no chat has this key."""
LOOK_BACK = 200
"""How many ended approvals of a chat can still be named by number."""

Request = Approval | PairingRequest


async def requests_of(rows: Rows, keys: Iterable[str]) -> list[Request]:
    """Return the requests with these keys, of any kind; unknown keys are left out."""
    found = [await APPROVALS.get(rows, key) or await PAIRINGS.get(rows, key) for key in keys]
    return [request for request in found if request is not None]


def request_put(request: Request) -> Put:
    """Return the write that records a request of any kind."""
    return approvals.to_put(request) if isinstance(request, Approval) else pairing.to_put(request)


class Approvals(Struct, eq=False):
    """Plans the effects of answers; ingress commits them."""

    context: InboundContext

    async def press(self, reads: Reads, pressed: Pressed, principal: Principal) -> Plan | None:
        """Return the effect of a press; None for a card without a request."""
        card, requests = pressed.card, await requests_of(reads, (pressed.approval,))
        if not requests:
            return None
        before = requests[0]
        request = before if card is None else approvals.with_ref(before, card)
        scope = request.conversation if isinstance(request, Approval) else None
        if scope is None and not self.may_pair(principal):
            toast = catalogue.ONLY_AN_OPERATOR.to(principal.language)
            return Plan(conversation=None, toast=toast, idle=True)
        result, toast = self._answer(request, principal, pressed.choice, pressed.reason)
        if result.how == "refused":
            # It does not record the card either: Telegram lets a client name any of the bot's
            # messages as the one that was pressed (Bot API, CallbackQuery.data, read 2026-11).
            return Plan(conversation=scope, toast=toast, idle=True)
        writes = await self._end(reads, result, principal, card.address if card else None)
        has_ended = bool(writes)
        if not has_ended and card is not None and not (request is before and request.is_open):
            # Record the card; if its request has ended, it shows the outcome.
            settles = () if request.is_open else await self.settled(request, (card,))
            writes = (request_put(request), *settles)
        return Plan(
            conversation=scope,
            writes=writes,
            toast=toast,
            reply_wanted=result.how == "reason_wanted",
            wake=(scope,) if scope and has_ended else (),
            idle=not has_ended,
        )

    async def by_number(self, invocation: Invocation) -> Reply:
        """Return the effect of `/approve 1 3` or `/deny 2 because …` in one chat.

        Answers that end calls of other conversations than the first one's remain for the next plan.
        """
        principal, language = invocation.principal, invocation.language
        place, is_yes = invocation.address.key(), invocation.command.name == "approve"
        # In a mail, the writer's signature is on the lines below.
        arguments = invocation.command.rest.strip()
        numbers = wording.parse_numbers(arguments.partition("\n")[0] if is_yes else arguments)
        if is_yes and numbers.rest:
            # `/approve 3 1 hour` does not mean call 1.
            return Reply(text=catalogue.ONLY_NUMBERS_APPROVE.to(language))
        by_number = wording.numbered(await self._numbered_in(invocation), place)
        found = [(number, by_number.get(number)) for number in numbers.numbers]
        unknown = (number for number, request in found if not request)
        lines = [catalogue.NO_SUCH_CALL.to(language, number=number) for number in unknown]
        lines += [
            f"`{number}`: {wording.ended(request, language)}."
            for number, request in found
            if request and not request.is_open
        ]
        if numbers.too_many:
            lines.append(catalogue.TOO_MANY_NUMBERS.to(language, most=wording.MAX_NUMBERS))
        elif not numbers.numbers:
            lines.append(catalogue.SAY_WHICH_CALL.to(language, command=invocation.command.name))
        pending = [(number, request) for number, request in found if request and request.is_open]
        choice: Choice = "once" if is_yes else "deny"
        scope: ConversationId | None = None
        writes: list[Write] = []
        remaining: list[str] = []
        for number, request in pending:
            result, toast = self._answer(request, principal, choice, numbers.rest)
            # An answer that ends nothing needs no commit of its conversation: so nothing remains of a
            # command that was carried out, and if it is delivered again, its claim is found at once.
            if result.ends and isinstance(request, Approval):
                scope = scope or request.conversation
                if request.conversation != scope:
                    remaining.append(str(number))
                    continue
            writes += await self._end(invocation.reads, result, principal, invocation.address)
            lines.append(f"`{number}`: {toast}.")
        remaining_command = replace(invocation.command, rest=" ".join((*remaining, numbers.rest)))
        return Reply(
            text="\n".join(lines),
            writes=tuple(writes),
            scope=scope,
            wake=(scope,) if scope and writes else (),
            remaining_command=remaining_command if remaining else None,
        )

    async def pending(self, invocation: Invocation) -> Reply:
        """List the open requests that this person may answer, and those for their own calls.

        In a group others read along, so there it lists only that chat's requests, and the details
        of a call only if its card is there.
        """
        address, principal, language = invocation.address, invocation.principal, invocation.language
        lines: list[str] = []
        at, place = self.context.clock.now(), address.key()
        approvers = approvals.approver_names(
            self.context.settings.config.approvals.approvers, language
        )
        async for request in APPROVALS.readable(self.context.store, state="pending"):
            may = self.context.may_approve(principal, request.tool)
            number = number_of(request, place)
            is_shown = address.direct or bool(number)
            if not (is_shown or request.conversation == invocation.conversation):
                continue
            if may or request.requester.id == principal.id:
                name = f"`{number}`" if number else f"`{request.action_hash[:8]}`"
                waiting_for = "" if may else catalogue.WAITS_FOR_PERSON.to(language, who=approvers)
                summary = escape_invisible(approvals.summary_in(request, language))
                # The list is on the record in the chat that asked for it.
                is_told = is_shown and not is_off_the_record(request.conversation)
                details = f": {summary}" if is_told else ""
                until = wording.ended(request, language)
                lines.append(f"- {name} `{request.tool}`{details}, {until}{waiting_for}")
        if self.may_pair(principal):
            # In a group only requests with a card there.
            lines += [
                f"- {pairing.list_line(request, language, place)}"
                for request in await strangers_of(self.context.store)
                if pairing.is_open(request, at) and (address.direct or number_of(request, place))
            ]
        return Reply(text="\n".join(lines) or catalogue.NOTHING_WAITS.to(language))

    async def expired(self, key: str, reads: Reads) -> Plan:
        """Return the plan that ends a call's request at its deadline, unless an answer was first."""
        request = await APPROVALS.get(reads, key)
        if request is None or not request.is_open:
            return Plan(conversation=None)
        expired = approvals.expire(request, self.context.clock.now())
        conversation, late = expired.conversation, AnswerResult(request=expired, how="late")
        writes = await self._end(reads, late, expired.requester, None)
        return Plan(conversation=conversation, writes=writes, wake=(conversation,))

    # --- the effects of an answer --------------------------------------------------------------

    async def answer_about_stranger(
        self, invocation: Invocation, request: PairingRequest, choice: Choice
    ) -> Reply:
        """Return the effect of an answer; the caller has checked that the person may give it."""
        result, toast = self._answer(request, invocation.principal, choice)
        writes = await self._end(invocation.reads, result, invocation.principal, None)
        return Reply(text=toast, writes=writes)

    def _answer(
        self, request: Request, principal: Principal, choice: Choice, reason: str = ""
    ) -> tuple[AnswerResult[Approval] | AnswerResult[PairingRequest], str]:
        """Return the result of an answer, and one line for the person who gave it."""
        at = self.context.clock.now()
        if isinstance(request, PairingRequest):
            by, yes = pairing.by_of(principal), approvals.is_yes(choice)
            met = approvals.decide(request, yes=yes, by=by, at=at)
            return met, pairing.toast(met, principal.language)
        result = approvals.answer(
            self.context.in_force(request),
            principal=principal,
            requester=self.context.people.by_now(request.requester),
            choice=choice,
            admitted_at=at,
            may_approve=self.context.may_approve(principal, request.tool),
            reason=self.context.redact(reason),
        )
        return result, wording.toast(result, principal.language)

    def may_pair(self, principal: Principal) -> bool:
        """Whether a person may answer pairing requests, in any chat."""
        return self.context.may(principal, "command:pair")

    async def _end(
        self,
        reads: Reads,
        result: AnswerResult[Approval] | AnswerResult[PairingRequest],
        principal: Principal,
        address: Address | None,
    ) -> tuple[Write, ...]:
        """Return the writes of an answer that has ended its request, else none."""
        if not result.ends:
            return ()
        ended = result.request
        put = request_put(ended)
        if isinstance(ended, PairingRequest):
            settles = await self.settled(ended, ended.refs)
            if ended.state != "approved":
                return (put, *settles)
            admitted = await let_in(
                self.context,
                reads,
                ended.identity,
                ended.address,
                catalogue.YOU_ARE_ADMITTED,
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

    async def _grant(self, reads: Reads, ended: Approval, granter: Principal) -> tuple[Write, ...]:
        """Return the writes of the grant that an answer "for a time" makes."""
        stored = await ACTIONS.get(self.context.store, ended.action)
        if stored is None or ended.scope is None or ended.at is None:
            return ()
        if self.context.people.excluded_by(ended.requester):
            return ()  # revoked just now: this grant would outlive their others
        name = self.context.ids.ulid()
        number, counters = await take_numbers(reads, GRANTS, 1)
        grant = grant_for(
            stored.action, ended.scope, id=name, number=number, granter=granter, at=ended.at
        )
        return (to_put(grant), *counters)

    # --- cards ---------------------------------------------------------------------------------

    async def put_to(
        self, reads: Reads, readers: tuple[Reader, ...], request: PairingRequest, code: str = ""
    ) -> tuple[Write, ...]:
        """Return the writes that send the card of a pairing request to operators.

        Args:
            reads: The reads of the plan.
            readers: The operators' chats that have no card of it.
            request: The request.
            code: The stranger's code; empty if only its hash is stored any more.
        """
        (numbered,), counters = await give_numbers(reads, (request,), readers)
        cards = tuple(
            outbox_row(
                self.context.ids.ulid(),
                ApprovalCard(
                    address=reader.address,
                    card=pairing.card_of(numbered, reader.address.key(), code),
                    approvals=(request.id,),
                ),
            )
            for reader in readers
        )
        recorded = replace(numbered, messages=(*numbered.messages, *(card.key for card in cards)))
        return (pairing.to_put(recorded), *counters, *cards)

    async def settled(self, request: Request, refs: Iterable[MessageRef]) -> tuple[Put, ...]:
        """Return the writes that show the outcome of a request on these cards."""
        if isinstance(request, PairingRequest):
            conversation, outcome_in = None, partial(pairing.outcome_of, request)
        else:
            conversation, cards = request.conversation, frozenset({request.card})
            family = await on_cards(self.context.store, conversation, cards)
            outcome_in = partial(approvals.outcome_of, family)
        return tuple(
            outbox_row(self.context.ids.ulid(), settle, conversation)
            for settle in (Settle(ref=ref, outcome=outcome_in(ref.address.key())) for ref in refs)
        )

    async def _numbered_in(self, invocation: Invocation) -> tuple[Request, ...]:
        """Return the requests that a chat's numbers can mean: all open ones, and recently ended ones."""
        reads, place = invocation.reads, invocation.address.key()
        calls = {call.id: call async for call in APPROVALS.readable(reads, state="pending")}
        rows = await reads.select(APPROVALS.where(place=place, newest_first=True, limit=LOOK_BACK))
        calls.update((call.id, call) for call in readable_of(rows, APPROVALS.of))
        strangers = await strangers_of(reads) if self.may_pair(invocation.principal) else ()
        return (*strangers, *calls.values())


async def let_in(
    context: InboundContext,
    reads: Reads,
    identity: str,
    address: Address,
    sentence: Sentence,
    *,
    display: str,
    by: str,
    roles: tuple[str, ...] = (),
) -> tuple[Write, ...]:
    """Return the writes that admit a person and send them a notice.

    Without new roles they keep their current ones: a person who sent the printed code meanwhile
    stays an operator.
    """
    before = await PEOPLE.get(reads, identity)
    if before is not None and before.state == "admitted":
        roles = roles or before.roles
    admitted = Person(
        id=identity, display=display, state="admitted", by=by, at=context.clock.now(), roles=roles
    )
    reader = Reader(address=address, language=context.people.language_of(identity))
    return (person_put(admitted), context.note(sentence, reader))


async def strangers_of(rows: Rows) -> list[PairingRequest]:
    """Return all stored pairing requests, the oldest first."""
    requests = [request async for request in PAIRINGS.readable(rows)]
    return sorted(requests, key=lambda request: request.asked_at)


# --- the numbers of requests in a chat: they only increase, across restarts too ---------------------


COUNTERS = Table(
    kind=RowKind.COUNTER,
    codec=json_codec(int),
    columns=frozenset({Column.PLACE}),
    keeps=Stays(until="the end: no number of a chat is used twice"),
)


async def give_numbers(
    reads: Reads, requests: tuple[R, ...], readers: Iterable[Reader]
) -> tuple[tuple[R, ...], tuple[Write, ...]]:
    """Number approval requests in each chat that gets their card.

    Args:
        reads: The reads of the plan.
        requests: The requests, in the order in which they are numbered.
        readers: The chats.

    Returns:
        The requests with their numbers, and the writes to commit with them.
    """
    counters: list[Write] = []
    for reader in readers:
        place = reader.address.key()
        first, counted = await take_numbers(reads, place, len(requests))
        counters += counted
        requests = tuple(
            replace(
                request,
                numbers=(
                    *request.numbers,
                    Numbered(place=place, number=number, language=reader.language),
                ),
            )
            for number, request in enumerate(requests, first)
        )
    return requests, tuple(counters)


async def take_numbers(reads: Reads, place: str, count: int) -> tuple[int, tuple[Write, ...]]:
    """Return the first of `count` new numbers, and the writes to commit with them.

    Args:
        reads: The reads of the plan; a plan takes numbers of one place only once.
        place: The chat's address key, or another scope, such as `GRANTS`.
        count: How many.
    """
    await reads.get(COUNTERS.kind, place)  # guard the row that every taker writes
    found = [row async for row in scan(reads, COUNTERS.where(place=place))]
    counted = [*readable_of(found, COUNTERS.of)]
    if len(counted) < len(found):
        # The damaged row may hold the highest number, and no number may be used twice.
        counted += [number_of(request, place) async for request in APPROVALS.readable(reads)]
    last = max(counted, default=0)
    # An older release had a counter for each conversation.
    older = (COUNTERS.delete(row.key) for row in found if row.key != place)
    return last + 1, (COUNTERS.put(place, last + count, place=place), *older)
