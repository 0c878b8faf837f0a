"""The end of a turn: one commit, then its text is delivered.

The commit has the journal's last entry, the item's state, the approvals that were open, the
receipts of calls that the end cut short, and the outbox row with the text.
"""

from zeroclaw.conversation import message_text
from zeroclaw.conversation.inbox import State, item_put
from zeroclaw.conversation.turn_row import TURNS, turn_put
from zeroclaw.delivery import rows
from zeroclaw.delivery.live import DraftHandle
from zeroclaw.envelope import CheckedReceipt
from zeroclaw.events import TurnEnded
from zeroclaw.gate import audit, receipt_screen
from zeroclaw.store import DurablePoint, Put, Reads
from zeroclaw.text import catalogue
from zeroclaw.text.escape import is_hidden
from zeroclaw.turn import batch
from zeroclaw.turn.approvals import ApprovalRequests
from zeroclaw.turn.context import Failure, TurnContext, as_note
from zeroclaw.turn.control import ControlLane
from zeroclaw.turn.entries import TurnFinished
from zeroclaw.turn.loop import LoopResult
from zeroclaw.turn.receipts import ReceiptLookup
from zeroclaw.turn.session import Transition
from zeroclaw.turn.states import Done, DoneReason
from zeroclaw.turn.tool_calls import refusal_result
from zeroclaw.value import replace

_ITEM_STATES: dict[DoneReason, State] = {"model_stop": "answered", "user_abort": "stopped"}


async def finish(
    turn: TurnContext, controls: ControlLane, ended: LoopResult, draft: DraftHandle
) -> None:
    """Record the end, and return once its text is delivered or refused."""
    services, done, opened = turn.services, ended.done, turn.opened
    fills, audited = await _fills(turn, done)
    noted, joined = controls.note_held()
    finished = TurnFinished(
        reason=done.reason,
        usage=done.usage,
        at=services.clock.now(),
        message=done.message,
        fills=fills,
        note=done.note,
        untrusted=turn.untrusted,
    )
    state = _ITEM_STATES.get(done.reason, "failed")
    # Operators are told once that a budget is used up, not with each message.
    is_told = done.reason == "budget_exceeded" and bool(
        await services.budget.exceeded(opened.principal, turn.conversation)
    )
    told = _told(turn, done) if state == "failed" and not is_told else ()
    end = Transition(
        point=DurablePoint.FINISHED,
        journal=(finished, *noted),
        audited=audited,
        writes=(item_put(turn.row.item, state), *joined, *ended.writes, *told),
    )
    final, text = await _end(turn, ended, end, draft)
    services.budget.close(opened.turn)
    services.outbox.announce(final, await draft.close())
    turn.publish(TurnEnded(reason=done.reason, usage=done.usage, text=text))
    turn.log("turn_finished", reason=done.reason)
    await services.outbox.ended(final.key)


async def _end(
    turn: TurnContext, ended: LoopResult, end: Transition, draft: DraftHandle
) -> tuple[Put, str]:
    """Commit the end; return the outbox row of the final answer, and its text.

    An approver's answer that came first is respected, and so are a draft message recorded
    meanwhile and a budget notice given meanwhile. If the draft has shown nothing, its text may be
    sent at once.
    """
    services, session, usage = turn.services, turn.session, ended.done.usage
    text, receipts = await _text(turn, ended.done)
    left = draft.begin_close()
    asks = ApprovalRequests(services, session.conversation)
    key = services.ids.ulid()
    # Result of the plan that was committed; the final is announced once its draft is closed.
    made: list[tuple[Put, str]] = []
    is_fresh = left is not None and not left.is_begun and not left.inherited

    async def planned(reads: Reads) -> Transition:
        stopped = await asks.stopped(reads, ended.approvals, ended.by)
        row = await TURNS.need(reads, turn.opened.turn)
        is_certain = is_fresh and not row.refs and not row.sending
        mark = services.outbox.mark_if_sent_now(row.address) if is_certain else ""
        notes, marks = await turn.of_budgets(reads)
        # A turn that ended because of a budget has already said so.
        below = notes if ended.done.reason != "budget_exceeded" else ()
        item = rows.TextPost(
            turn=row.turn,
            address=row.address,
            text="\n\n".join((text, *below)),
            receipts=receipts,
            refs=row.refs,
            reply_to=row.reply_to,
            language=row.item.principal.language,
            uncertainty=rows.Uncertainty(may_stand=bool(row.sending), mark=mark or row.sending),
        )
        begun: rows.State = "sending" if mark else "pending"
        final = rows.outbox_row(key, item, session.conversation, state=begun)
        closed = replace(row, final=key, usage=usage)
        if usage.total_tokens:
            facts = services.sources.model.provider.facts
            closed = replace(closed, model=facts.model, micros=services.budget.cost(usage))
        made[:] = [(final, item.text)]
        return replace(end, writes=(final, turn_put(closed), *end.writes, *stopped, *marks))

    committed = await session.transact(Transition(plan=planned))
    services.outbox.announce_written(one for one in committed.writes if one is not made[0][0])
    return made[0]


def _told(turn: TurnContext, done: Done) -> tuple[Put, ...]:
    """Return the notices to operators about a failed turn, and about what it may have done."""
    services, whose, address = turn.services, turn.opened.principal, turn.address
    who, where = whose.label, address.channel
    says = catalogue.ANSWER_FAILED.about(
        who=who, where=where, why=turn.why or done.why or done.note
    )
    failure = Failure(
        id=turn.opened.turn, why=done.why or done.note, says=says, place=address.key()
    )
    line = services.failed(failure)
    # After a crash loop, operators would not otherwise learn which calls had started.
    started = [one.result.tool_name for one in done.fills if one.outcome == "unknown"]
    lost = [catalogue.MAY_HAVE_RUN.about(tool=one, who=who, where=where) for one in started]
    return (*line, *(rows.notice_row(services.ids.ulid(), one) for one in lost))


async def _fills(
    turn: TurnContext, done: Done
) -> tuple[tuple[batch.Fill, ...], tuple[audit.Entry, ...]]:
    """Sign and audit the results of calls that the end cut short."""
    fills: list[batch.Fill] = []
    audited: list[audit.Entry] = []
    for fill in done.fills:
        if fill.action is None:
            fills.append(fill)
            continue
        settled = refusal_result(
            turn.services,
            await turn.frozen(fill.action),
            fill.result.content,
            outcome=fill.outcome,
            by="turn",
        )
        cut = settled.finished
        result = replace(cut.result, tool_call_id=fill.result.tool_call_id)
        fills.append(replace(fill, result=result, receipt=cut.receipt))
        audited.append(settled.audited)
    return tuple(fills), tuple(audited)


async def _text(turn: TurnContext, done: Done) -> tuple[str, tuple[CheckedReceipt, ...]]:
    """Return the whole final text for people, and its receipts.

    The result of a person's own call is screened as well.
    """
    opened, language = turn.opened, turn.language
    text, verdicts = done.text, ReceiptLookup(turn)
    if opened.call is not None and text:
        await verdicts.refresh()
        text = receipt_screen.screen(text, verdicts.lookup)
    text, receipts = await verdicts.take_out(text)
    note = as_note(done.note) if done.note else ""
    whole = "\n\n".join(filter(_is_seen, (text, note)))
    whole = whole or catalogue.NOTHING_TO_SAY.to(language)
    unheard = f"_{catalogue.UNHEARD.to(language)}_" if opened.unheard else ""
    below = (
        "" if opened.kind == "unheard" else unheard,
        message_text.late_for_people(opened.late_s, language),
    )
    return "\n\n".join(part for part in (whole, *below) if part), receipts


def _is_seen(text: str) -> bool:
    """Whether a text shows anything; platforms refuse one of invisible characters alone."""
    return not all(sign == " " or is_hidden(sign) for sign in text)
