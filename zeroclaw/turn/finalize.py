"""The end of a turn: one commit, then its text is delivered.

The commit has the journal's last entry, the item's state, the approvals that were open, the
receipts of calls that the end cut short, and the outbox row with the text.
"""

from zeroclaw.conversation import message_text
from zeroclaw.conversation.inbox import State, item_put
from zeroclaw.conversation.turn_row import TURNS, turn_put
from zeroclaw.delivery import rows
from zeroclaw.delivery.live import DraftHandle
from zeroclaw.delivery.split import BREAK, closed, in_one
from zeroclaw.envelope import CheckedReceipt
from zeroclaw.events import TurnEnded
from zeroclaw.gate import audit, receipt_screen
from zeroclaw.store import DurablePoint, Put, Reads
from zeroclaw.text import catalogue
from zeroclaw.text.escape import is_visible
from zeroclaw.turn import batch
from zeroclaw.turn.approvals import ApprovalRequests
from zeroclaw.turn.context import Failure, TurnContext, as_note
from zeroclaw.turn.entries import TurnFinished
from zeroclaw.turn.loop import LoopResult
from zeroclaw.turn.receipts import ReceiptLookup
from zeroclaw.turn.session import Transition
from zeroclaw.turn.states import Done, DoneReason
from zeroclaw.turn.tool_calls import refusal_result
from zeroclaw.value import replace

_ITEM_STATES: dict[DoneReason, State] = {"model_stop": "answered", "user_abort": "stopped"}


async def finish(turn: TurnContext, result: LoopResult, draft: DraftHandle) -> None:
    """Record the end, and return once its text is delivered or refused."""
    services, done, opened = turn.services, result.done, turn.opened
    fills, audited = await _fills(turn, done)
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
    # The budget reports to operators once that it is used up, not with each message.
    is_reported = done.reason == "budget_exceeded" and bool(
        await services.budget.exceeded(opened.principal, turn.conversation)
    )
    notices = _failure_notices(turn, done) if state == "failed" and not is_reported else ()
    transition = Transition(
        point=DurablePoint.FINISHED,
        journal=(finished,),
        audited=audited,
        writes=(item_put(turn.row.item, state), *result.writes, *notices),
    )
    final, answer = await _end(turn, result, transition, draft)
    services.budget.close(opened.turn)
    services.outbox.announce(final, await draft.close())
    turn.publish(TurnEnded(reason=done.reason, usage=done.usage, text=in_one(answer)))
    turn.log("turn_finished", reason=done.reason)
    await services.outbox.ended(final.key)


async def _end(
    turn: TurnContext, result: LoopResult, end: Transition, draft: DraftHandle
) -> tuple[Put, str]:
    """Commit the end; return the outbox row of the final answer, and its text.

    The plan respects an approver's answer that came first, a draft message recorded meanwhile and a
    budget notice given meanwhile. If the draft has shown nothing, the outbox may send the text at once.
    """
    services, session, usage = turn.services, turn.session, result.done.usage
    text, receipts = await _text(turn, result.done)
    drafted = draft.begin_close()
    approvals = ApprovalRequests(services, session.conversation)
    key = services.ids.ulid()
    # From the plan that was committed; the caller announces the row once the draft is closed.
    final_post: list[tuple[Put, str]] = []
    draft_is_unshown = drafted is not None and not drafted.is_begun

    async def plan(reads: Reads) -> Transition:
        stopped = await approvals.stop(reads, result.approvals, result.by)
        row = await TURNS.need(reads, turn.opened.turn)
        is_unsent = draft_is_unshown and not row.refs and not row.sending
        mark = services.outbox.mark_if_sent_now(row.address) if is_unsent else ""
        notes, marks = await turn.budget_notices(reads)
        # The note of a turn that a budget ended names that budget already.
        budget_notes = notes if result.done.reason != "budget_exceeded" else ()
        item = rows.TextPost(
            turn=row.turn,
            address=row.address,
            text=draft.as_shown("\n\n".join((text, *budget_notes))),
            receipts=receipts,
            refs=row.refs,
            reply_to=row.reply_to,
            language=row.item.principal.language,
            uncertainty=rows.Uncertainty(may_stand=bool(row.sending), mark=mark or row.sending),
        )
        state: rows.State = "sending" if mark else "pending"
        final = rows.outbox_row(key, item, session.conversation, state=state)
        closed = replace(row, final=key, usage=usage)
        if usage.total_tokens:
            facts = services.sources.model.provider.facts
            closed = replace(closed, model=facts.model, micros=services.budget.cost(usage))
        final_post[:] = [(final, item.text)]
        return replace(end, writes=(final, turn_put(closed), *end.writes, *stopped, *marks))

    written = (await session.transact(Transition(plan=plan))).writes
    services.outbox.announce_written(write for write in written if write is not final_post[0][0])
    return final_post[0]


def _failure_notices(turn: TurnContext, done: Done) -> tuple[Put, ...]:
    """Return the notices to operators about a failed turn, and about calls that may have run."""
    services, principal, address = turn.services, turn.opened.principal, turn.address
    label, channel = principal.label, address.channel
    line = catalogue.ANSWER_FAILED.about(
        who=label, where=channel, why=turn.detail or done.detail or done.note
    )
    reason = done.detail or done.note
    failure = Failure(id=turn.opened.turn, reason=reason, line=line, place=address.key())
    report = services.report_failure(failure)
    # After a crash loop, operators would not otherwise learn which calls had started.
    tools = [fill.result.tool_name for fill in done.fills if fill.outcome == "unknown"]
    lost = [catalogue.MAY_HAVE_RUN.about(tool=tool, who=label, where=channel) for tool in tools]
    return (*report, *(rows.notice_row(services.ids.ulid(), line) for line in lost))


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
        finished = settled.finished
        result = replace(finished.result, tool_call_id=fill.result.tool_call_id)
        fills.append(replace(fill, result=result, receipt=finished.receipt))
        audited.append(settled.audited)
    return tuple(fills), tuple(audited)


async def _text(turn: TurnContext, done: Done) -> tuple[str, tuple[CheckedReceipt, ...]]:
    """Return the whole final text for people, and its receipts; a person's own call is screened, too."""
    opened, language = turn.opened, turn.language
    text, receipt_lookup = done.text, ReceiptLookup(turn)
    if opened.call is not None and text:
        await receipt_lookup.refresh()
        text = receipt_screen.screen(text, receipt_lookup.lookup)
    text, receipts = await receipt_lookup.take_out(text)
    note = as_note(done.note) if done.note else ""
    head, mark, newest = text.rpartition(BREAK)
    if not is_visible(newest):
        text, note = head + mark, note or catalogue.NOTHING_TO_SAY.to(language)
    is_partly_unheard = opened.unheard and opened.kind != "unheard"
    unheard = f"_{catalogue.UNHEARD.to(language)}_" if is_partly_unheard else ""
    late = message_text.late_for_people(opened.late_s, language)
    notes = tuple(filter(None, (note, unheard, late)))
    return "\n\n".join(filter(None, (closed(text) if notes else text, *notes))), receipts
