"""The tasks of a running turn: each performs one effect, and reports its outcome as a transition.

A task writes nothing to the conversation itself; the transition carries the entries and writes that
must be stored together with its event.
"""

import asyncio
import hashlib
from collections.abc import Mapping

from zeroclaw.context.history import files_of
from zeroclaw.context.tokens import of_message
from zeroclaw.delivery.rows import FilePost, notice_row, outbox_row
from zeroclaw.envelope import ActionId
from zeroclaw.gate.approval import to_put
from zeroclaw.gate.conditions import facts_of
from zeroclaw.gate.verdict import Stopped
from zeroclaw.message import ToolCall, ToolMessage, Usage
from zeroclaw.provider import ModelRequest
from zeroclaw.store import DurablePoint, PutBlob, Reads, Write
from zeroclaw.text import catalogue
from zeroclaw.tool import ToolFile
from zeroclaw.turn import batch, entries, loop_detection, signals
from zeroclaw.turn.compactor import compact
from zeroclaw.turn.context import TurnContext, as_note
from zeroclaw.turn.control import ControlLane
from zeroclaw.turn.kept_results import kept_put
from zeroclaw.turn.machine import limit_warning
from zeroclaw.turn.model_call import ModelCall
from zeroclaw.turn.receipts import ReceiptLookup
from zeroclaw.turn.results import CallEnd
from zeroclaw.turn.session import NOTHING, Tell, Transition
from zeroclaw.turn.states import Calling, CompactionCause, Progress
from zeroclaw.turn.tool_calls import ToolCalls, refusal_result
from zeroclaw.value import replace


class EffectExecutor:
    """The tasks of one turn.

    Attributes:
        receipts: Looks receipts of its conversation up.
    """

    def __init__(self, turn: TurnContext, controls: ControlLane, tell: Tell) -> None:
        """Work for one turn; report each transition through `tell`."""
        services, session = turn.services, turn.session
        self._turn = turn
        self._services, self._session, self._opened = services, session, turn.opened
        self._controls = controls
        self._tell = tell
        self.receipts = ReceiptLookup(turn)
        self._composer = turn.composer
        self.calls = ToolCalls(turn)

    # --- the model -----------------------------------------------------------------------------

    async def ask(self, number: int) -> None:
        """Compose a request from the history and stream its answer, unless a budget is used up."""
        if await self._is_spent():
            return
        await self.receipts.refresh()
        model_call = ModelCall(turn=self._turn, lookup=self.receipts.lookup, tell=self._report)
        await model_call.ask(number, self._request)

    async def _is_spent(self) -> bool:
        """Whether a budget is used up; if so, tell the turn before it asks a model."""
        principal, conversation = self._opened.principal, self._session.conversation
        limit = await self._services.budget.exceeded(principal, conversation)
        if limit is not None:
            event = signals.BudgetReached(text=limit.to(self._turn.language))
            await self._tell(Transition(events=(event,)))
        return limit is not None

    async def _request(self) -> ModelRequest:
        session = self._session
        transcript = session.history.transcript()
        request, is_cut = await self._composer.request(transcript, self._opened.notes)
        files = await self._services.arrivals.bytes_of(files_of(request.messages))
        request = replace(request, files=files)
        if is_cut and not session.requests.is_cut:
            session.requests.is_cut = True
            note = self._turn.notice(catalogue.CUT_WITHOUT_SUMMARY.to(self._turn.language))
            await self._tell(Transition(point=DurablePoint.HOUSEKEEPING, writes=(note,)))
        return request

    async def _report(self, event: signals.RequestEvent) -> None:
        """Pass an event of a request to the turn, with its usage."""
        composer, now = self._composer, self._services.clock.now()
        transition = Transition(events=(event,))
        match event:
            case signals.ResponseReceived(message=message, usage=usage):
                composer.learn_from_answer(usage)
                input_usage = composer.take_uncharged_usage()
                # The request costs something even if the endpoint reports no usage.
                if not usage.output_tokens:
                    usage += Usage(output_tokens=of_message(message))
                if not usage.input_tokens:
                    usage += input_usage
                transition = Transition(events=(replace(event, usage=usage),))
                if message.tool_calls:
                    received = entries.AssistantReceived(
                        message=message,
                        usage=usage,
                        at=now,
                        shown=event.shown,
                        untrusted=self._turn.untrusted,
                    )
                    # The calls are recorded before the gate decides, so before any of them runs.
                    transition = replace(transition, journal=(received,))
            case signals.StreamCut(usage=usage) | signals.RequestFailed(usage=usage):
                input_usage = composer.take_uncharged_usage()
                if usage.total_tokens:
                    usage = usage if usage.input_tokens else usage + input_usage
                    transition = Transition(
                        events=(replace(event, usage=usage),),
                        point=DurablePoint.HOUSEKEEPING,
                        journal=(entries.RequestLost(usage=usage, at=now),),
                    )
            case signals.ContextOverflowed(window=window):
                composer.learn_from_overflow(window)
                composer.take_uncharged_usage()  # an endpoint that refuses a request charges nothing for it
            case _:
                pass
        await self._tell(transition)

    async def compact(self, cause: CompactionCause) -> None:
        """Replace older messages by a summary if possible, unless a budget is used up."""
        if await self._is_spent():
            return
        await self.receipts.refresh()
        await self._tell(await compact(self._turn, self.calls, cause))

    # --- the gate ------------------------------------------------------------------------------

    async def gate_batch(self, calls: tuple[ToolCall, ...]) -> None:
        """Gate a batch; its verdicts, rows and approval requests are one commit.

        Without approval requests, the commit of the calls that start includes it.
        """
        gated = await self.calls.gate(calls)
        entry = entries.Gated(verdicts=gated.verdicts, at=self._services.clock.now())
        await self._tell(
            Transition(
                events=(entry,),
                point=None if gated.starts else DurablePoint.GATED,
                journal=(entry,),
                audited=gated.audited,
                writes=(*gated.writes, *map(to_put, gated.approvals)),
            )
        )

    # --- the calls -----------------------------------------------------------------------------

    async def check(self, slots: Mapping[ActionId, batch.Slot]) -> None:
        """Check calls for the last time; all starts are recorded before the first call runs."""
        *others, last = slots.items()
        async with asyncio.TaskGroup() as group:
            checks = [group.create_task(self._check(*slot)) for slot in others]
            last_check = await self._check(*last)  # usually the only call, so it needs no task
        self.calls.gated_in = self.calls.as_gated = None
        transition = NOTHING
        for check in checks:
            transition = transition.then(check.result())
        await self._tell(transition.then(last_check))

    async def _check(self, action: ActionId, slot: batch.Slot) -> Transition:
        """Return the start of a call, or its end if it may not run after all."""
        call = slot.call
        frozen = await self._turn.frozen(action)
        verdict, writes = await self.calls.check(frozen, call, slot.approval)
        if isinstance(verdict, Stopped) and slot.started:
            # An earlier process started it.
            return await self._unknown(action, call)
        if isinstance(verdict, Stopped):
            text = f"`{call.name}` did not run: {verdict.reason}"
            for_people = catalogue.CALL_DID_NOT_RUN.to(
                self._turn.language, tool=call.name, why=verdict.for_people
            )
            refusal = refusal_result(
                self._services, frozen, text, outcome="denied", by=verdict.by, for_people=for_people
            )
            return self._end_call(refusal)
        started = entries.CallStarted(action=action, at=self._services.clock.now())
        return Transition(
            events=(started,), point=DurablePoint.CALL_STARTED, journal=(started,), writes=writes
        )

    async def run(self, action: ActionId) -> None:
        """Run a call that was cleared."""
        await self._tell(self._end_call(await self.calls.run(action)))

    async def unknown(self, action: ActionId, call: ToolCall) -> None:
        """Record a call whose outcome a restart lost, for the model and for the operators (P3)."""
        await self._tell(await self._unknown(action, call))

    async def _unknown(self, action: ActionId, call: ToolCall) -> Transition:
        for_people = catalogue.CALL_MAY_HAVE_RUN.to(self._turn.language, tool=call.name)
        principal = self._opened.principal
        line = catalogue.MAY_HAVE_RUN.about(
            tool=call.name, who=principal.label, where=self._turn.address.channel
        )
        notice = notice_row(self._services.ids.ulid(), line)
        refusal = refusal_result(
            self._services,
            await self._turn.frozen(action),
            batch.MAY_HAVE_RUN,
            outcome="unknown",
            by="restart",
            for_people=for_people,
        )
        return replace(self._end_call(refusal), writes=(notice,))

    def _end_call(self, end: CallEnd) -> Transition:
        """Return the transition of a call's end, with all records of it."""
        finished, conversation = end.finished, self._session.conversation
        writes: list[Write] = []
        if end.blob is not None:
            trusted = not finished.untrusted
            row = kept_put(conversation, end.blob, finished.at, self._opened.turn, trusted=trusted)
            writes += (end.blob, row)
        for file in end.files:
            writes += self._sent(file)
        return Transition(
            events=(finished,),
            point=DurablePoint.CALL_FINISHED,
            journal=(finished,),
            audited=(end.audited,),
            writes=tuple(writes),
        )

    def _sent(self, file: ToolFile) -> tuple[Write, Write]:
        """Return the writes that send a file to the chat: its blob, and its outbox row."""
        blob = PutBlob(digest=hashlib.sha256(file.content).hexdigest(), body=file.content)
        post = FilePost(
            address=self._turn.address,
            name=file.name,
            media_type=file.media_type,
            digest=blob.digest,
            size_bytes=len(file.content),
            turn=self._opened.turn,
            caption=file.caption,
            reply_to=self._turn.row.reply_to,
            language=self._turn.language,
        )
        return blob, outbox_row(self._services.ids.ulid(), post, self._session.conversation)

    async def append(self, results: tuple[ToolMessage, ...], progress: Progress) -> None:
        """Append the results of a batch, together with edits that arrived meanwhile.

        If the model is asked again, the person's new messages join too; else they would get no answer.
        """
        asks_again, principal = progress.asks_again, self._opened.principal
        edits, edit_writes = await self._controls.take_edits(principal)
        warning = limit_warning(progress) if asks_again else None
        warnings = () if warning is None else (as_note(warning.to(self._turn.language)),)

        async def plan(reads: Reads) -> Transition:
            # Another turn may give the same budget warning, or a person edit or delete a message.
            notes, marks = await self._turn.budget_notices(reads, skip_used_up=True)
            steering, joined = (), ()
            if asks_again:
                steering, joined = await self._controls.take_steering(reads, principal)
            additions = (*edits, *steering)
            added = (entry.user for entry in additions)
            transcript = self._session.history.transcript(*results, *added)
            complete = entries.BatchAppended(
                at=self._services.clock.now(),
                context_heavy=asks_again and await self._composer.is_heavy(transcript),
            )
            # A new message of the person gives a model that loops something new.
            complete = complete if additions else self._judged(complete)
            notices = (*map(self._turn.notice, (*warnings, *notes)), *marks)
            point = DurablePoint.HOUSEKEEPING if notices else None
            return Transition(
                events=(complete,),
                # It only combines results that are on record, so it can be made again.
                point=DurablePoint.STEERED if additions else point,
                journal=(complete, *additions),
                writes=(*edit_writes, *notices, *joined),
            )

        await self._tell(Transition(plan=plan))

    def _judged(self, complete: entries.BatchAppended) -> entries.BatchAppended:
        """Return the entry of a batch with the verdict on repeated calls (S4-04)."""
        turn = self._session.history.turn
        if turn is None or not turn.rounds or not isinstance(turn.state, Calling):
            return complete  # a first round repeats none
        calls = loop_detection.append_round(turn.rounds, turn.state.batch.slots)
        judgement = loop_detection.judge(calls, self._opened.limits, self._changes)
        return replace(complete, word=judgement.warning, loop=judgement.loop)

    def _changes(self, tool: str) -> bool:
        """Tell whether calls of a tool may change something; tools that declare nothing may."""
        found = self._services.gate.tools.get(tool)
        return found is not None and not facts_of(found.spec).effects.isdisjoint({"write", "exec"})
