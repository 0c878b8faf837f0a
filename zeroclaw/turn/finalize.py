"""How a turn ends: one commit, then its text is delivered.

The commit holds the journal's last entry, the item's state, the questions that were open, the
receipts of calls that the end cut short, and the outbox row that carries the text.
"""

import asyncio

from zeroclaw.delivery.handle import DraftHandle
from zeroclaw.delivery.rows import final_row, quiet_notes
from zeroclaw.envelope import CheckedReceipt
from zeroclaw.errors import Conflict
from zeroclaw.events import TurnEnded
from zeroclaw.gate import audit, receipt_screen
from zeroclaw.message import ToolCall
from zeroclaw.store import DurablePoint, Put, Write
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.turn import batch, message_text
from zeroclaw.turn.approvals import ApprovalRequests
from zeroclaw.turn.context import Failure, TurnServices
from zeroclaw.turn.control import ControlLane
from zeroclaw.turn.entries import Entry, TurnFinished, TurnOpened
from zeroclaw.turn.inbox import State, item_put
from zeroclaw.turn.loop import Ended
from zeroclaw.turn.receipts import ReceiptLookup
from zeroclaw.turn.results import AUDITED
from zeroclaw.turn.session import ConversationSession
from zeroclaw.turn.states import Done, DoneReason
from zeroclaw.turn.tool_calls import ToolCalls
from zeroclaw.turn.turn_row import TRIES, TurnRow, read_turn, turn_put
from zeroclaw.value import Value, replace

_ITEM_STATES: dict[DoneReason, State] = {"model_stop": "answered", "user_abort": "stopped"}


class TurnContext(Value):
    """One turn and what it is run with.

    Attributes:
        why: Why it fails, for operators, where that is not what its person reads.
    """

    session: ConversationSession
    opened: TurnOpened
    row: TurnRow
    news: asyncio.Event
    why: Localized | None = None


class _End(Value):
    """What the commit of the end holds, however often it is tried."""

    journal: tuple[Entry, ...]
    audited: tuple[audit.Entry, ...]
    writes: tuple[Write, ...]
    text: str
    receipts: tuple[CheckedReceipt, ...]
    told: tuple[Put, ...]


class Finalizer:
    """Ends turns; one for the whole daemon."""

    def __init__(self, services: TurnServices) -> None:
        """Hold what turns need."""
        self._services = services

    async def finish(
        self, seat: TurnContext, controls: ControlLane, ended: Ended, draft: DraftHandle
    ) -> None:
        """Record the end, and return when its text is delivered or refused."""
        services, done = self._services, ended.done
        session, opened, row = seat.session, seat.opened, seat.row
        fills, audited = await self._fills(seat, ended)
        noted, joined = controls.note_held()
        finished = TurnFinished(
            reason=done.reason,
            usage=done.usage,
            at=services.clock.now(),
            message=done.message,
            fills=fills,
            note=done.note,
        )
        text, receipts = await self._text(session, opened, done)
        state = _ITEM_STATES.get(done.reason, "failed")
        told = self._told(seat, done) if state == "failed" else ()
        final = await self._end(
            seat,
            ended,
            _End(
                journal=(finished, *noted),
                audited=audited,
                writes=(item_put(row.item, state), *joined, *ended.writes, *told),
                text=text,
                receipts=receipts,
                told=told,
            ),
        )
        services.outbox.announce(final, await draft.close())
        services.publish(
            TurnEnded(
                conversation=session.conversation,
                turn=opened.turn,
                correlation=opened.correlation,
                reason=done.reason,
                usage=done.usage,
                text=text,
            )
        )
        services.log("turn_finished", turn=opened.turn, reason=done.reason)
        await services.outbox.ended(final.key)

    async def _end(self, seat: TurnContext, ended: Ended, end: _End) -> Put:
        """Commit the end, and return the row of its final.

        An answer that came first is read, and its question left as it ended; so is a message of
        the draft that was recorded meanwhile.
        """
        services, session = self._services, seat.session
        asks = ApprovalRequests(services, session.conversation)
        key = services.ids.ulid()
        tries_left = TRIES
        while True:
            stopped = await asks.stopped(ended.approvals, ended.by)
            row, version, _ = await read_turn(services.store, seat.opened.turn)
            final = final_row(
                key=key,
                conversation=session.conversation,
                turn=row.turn,
                address=row.address,
                text=end.text,
                receipts=end.receipts,
                refs=row.refs,
                lost=row.sending,
                reply_to=row.reply_to,
                language=row.item.principal.language,
            )
            closed = replace(row, final=key)
            put = turn_put(closed, session.conversation, closed=True, expect=version)
            tries_left -= 1
            try:
                await session.commit(
                    DurablePoint.FINISHED,
                    journal=end.journal,
                    audited=end.audited,
                    writes=(final, put, *end.writes, *stopped),
                )
            except Conflict:
                if not tries_left:
                    raise
                continue
            services.outbox.announce_written(stopped)
            services.outbox.announce_written((*ended.writes, *end.told))
            return final

    def _told(self, seat: TurnContext, done: Done) -> tuple[Put, ...]:
        """Return the notes to operators about a turn that failed, and what it may have done."""
        services, whose, address = self._services, seat.opened.principal, seat.row.address
        who, where = whose.label, address.channel
        says = catalogue.ANSWER_FAILED.about(
            who=who, where=where, why=seat.why or done.why or done.note
        )
        failure = Failure(
            id=seat.opened.turn, why=done.why or done.note, says=says, place=address.key()
        )
        line = services.failed(failure)
        # A crash loop ended it, and nobody else would be told what had started.
        started = [one.result.tool_name for one in done.fills if one.outcome == "unknown"]
        lost = [catalogue.MAY_HAVE_RUN.about(tool=one, who=who, where=where) for one in started]
        readers = services.operators("") if lost else ()
        notes = [note for one in lost for note in quiet_notes(one, readers, services.ids.ulid)]
        return (*line, *notes)

    async def _fills(
        self, seat: TurnContext, ended: Ended
    ) -> tuple[tuple[batch.Fill, ...], tuple[audit.Entry, ...]]:
        """Sign and audit the results of calls that the end cut short."""
        session = seat.session
        calls = ToolCalls(self._services, session, seat.opened, address=seat.row.address)
        fills: list[batch.Fill] = []
        audited: list[audit.Entry] = []
        for fill in ended.done.fills:
            if fill.action is None:
                fills.append(fill)
                continue
            frozen = await calls.frozen(fill.action)
            refusal = self._services.refusals.refuse(
                _call_of(fill),
                fill.result.content,
                conversation=session.conversation,
                action=fill.action,
                arguments=frozen.action.canonical_arguments,
                outcome=fill.outcome,
                at=self._services.clock.now(),
            )
            fills.append(replace(fill, result=refusal.message, receipt=refusal.receipt))
            audited.append(
                audit.Entry(
                    kind=AUDITED[fill.outcome],
                    at=self._services.clock.now(),
                    action=fill.action,
                    tool=frozen.action.tool,
                    hash=frozen.hash,
                    by="turn",
                    receipt=refusal.receipt,
                )
            )
        return tuple(fills), tuple(audited)

    async def _text(
        self, session: ConversationSession, opened: TurnOpened, done: Done
    ) -> tuple[str, tuple[CheckedReceipt, ...]]:
        """Return the whole final text for people, and its receipts.

        What a tool said is screened like the rest.
        """
        text, verdicts = done.text, ReceiptLookup(self._services, session)
        if opened.call is not None and text:
            await verdicts.refresh()
            text = receipt_screen.screen(text, verdicts.lookup)
        text, receipts = await verdicts.take_out(text, opened.principal.language)
        note = f"_{done.note[:1].upper()}{done.note[1:]}._" if done.note else ""
        language = opened.principal.language
        whole = "\n\n".join(part for part in (text, note) if part.strip())
        whole = whole or catalogue.NOTHING_TO_SAY.to(language)
        unheard = f"_{catalogue.UNHEARD.to(language)}_" if opened.unheard else ""
        below = (
            "" if opened.kind == "unheard" else unheard,
            message_text.late_for_people(opened.late_s, language),
        )
        return "\n\n".join(part for part in (whole, *below) if part), receipts


def _call_of(fill: batch.Fill) -> ToolCall:
    """Return the call that a fill echoes, without its arguments."""
    return ToolCall(id=fill.result.tool_call_id, name=fill.result.tool_name, arguments="")
