"""The tasks of a running turn: each asks, gates, waits, checks or runs, and reports what happened.

A task writes nothing to the conversation itself; it returns what must be stored together with
its event.
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
from zeroclaw.turn.results import Settled
from zeroclaw.turn.session import NOTHING, Tell, Transition
from zeroclaw.turn.states import Calling, CompactionCause, Progress
from zeroclaw.turn.tool_calls import ToolCalls, refusal_result
from zeroclaw.value import replace


class EffectExecutor:
    """The tasks of one turn.

    Attributes:
        receipts: Knows the receipts of its conversation.
    """

    def __init__(self, turn: TurnContext, controls: ControlLane, tell: Tell) -> None:
        """Work for one turn, reporting what happened to it through `tell`."""
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
        asking = ModelCall(turn=self._turn, lookup=self.receipts.lookup, tell=self._answered)
        await asking.ask(number, self._request)

    async def _is_spent(self) -> bool:
        """Whether a budget is used up; if so, tell the turn before any model is asked."""
        whose, here = self._opened.principal, self._session.conversation
        spent = await self._services.budget.exceeded(whose, here)
        if spent is not None:
            reached = signals.BudgetReached(text=spent.to(self._turn.language))
            await self._tell(Transition(events=(reached,)))
        return spent is not None

    async def _request(self) -> ModelRequest:
        session = self._session
        request, is_cut = await self._composer.request(session.history.spoken(), self._opened.notes)
        files = await self._services.arrivals.bytes_of(files_of(request.messages))
        request = replace(request, files=files)
        if is_cut and not session.requests.is_cut:
            session.requests.is_cut = True
            note = self._turn.says(catalogue.CUT_WITHOUT_SUMMARY.to(self._turn.language))
            await self._tell(Transition(point=DurablePoint.HOUSEKEEPING, writes=(note,)))
        return request

    async def _answered(self, event: signals.RequestEvent) -> None:
        composer, now = self._composer, self._services.clock.now()
        happened = Transition(events=(event,))
        match event:
            case signals.ResponseReceived(message=message, usage=usage):
                composer.learn_from_answer(usage)
                sent = composer.take_uncharged_usage()
                # The request costs something even if the endpoint reports no usage.
                if not usage.output_tokens:
                    usage += Usage(output_tokens=of_message(message))
                if not usage.input_tokens:
                    usage += sent
                happened = Transition(events=(replace(event, usage=usage),))
                if message.tool_calls:
                    received = entries.AssistantReceived(
                        message=message,
                        usage=usage,
                        at=now,
                        shown=event.shown,
                        untrusted=self._turn.untrusted,
                    )
                    # The calls are recorded before the gate decides, so before anything is done.
                    happened = replace(happened, journal=(received,))
            case signals.StreamCut(usage=usage) | signals.RequestFailed(usage=usage):
                sent = composer.take_uncharged_usage()
                if usage.total_tokens:
                    usage = usage if usage.input_tokens else usage + sent
                    happened = Transition(
                        events=(replace(event, usage=usage),),
                        point=DurablePoint.HOUSEKEEPING,
                        journal=(entries.RequestLost(usage=usage, at=now),),
                    )
            case signals.ContextOverflowed(window=window):
                composer.learn_from_overflow(window)
                composer.take_uncharged_usage()  # an endpoint that refuses a request charges nothing for it
            case _:
                pass
        await self._tell(happened)

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
        spoken = entries.Gated(verdicts=gated.verdicts, at=self._services.clock.now())
        await self._tell(
            Transition(
                events=(spoken,),
                point=None if gated.starts else DurablePoint.GATED,
                journal=(spoken,),
                audited=gated.audited,
                writes=(*gated.writes, *map(to_put, gated.approvals)),
            )
        )

    # --- the calls -----------------------------------------------------------------------------

    async def check(self, slots: Mapping[ActionId, batch.Slot]) -> None:
        """Check calls for the last time; all starts are recorded before the first call runs."""
        *others, last = slots.items()
        async with asyncio.TaskGroup() as group:
            checks = [group.create_task(self._check(*one)) for one in others]
            ended = await self._check(*last)  # usually the only one, so it needs no task
        self.calls.gated_in = self.calls.as_gated = None
        happened = NOTHING
        for one in (*(one.result() for one in checks), ended):
            happened = happened.then(one)
        await self._tell(happened)

    async def _check(self, action: ActionId, slot: batch.Slot) -> Transition:
        """Return the start of a call, or its end if it may not run after all."""
        call = slot.call
        frozen = await self._turn.frozen(action)
        stopped, writes = await self.calls.check(frozen, call, slot.approval)
        if isinstance(stopped, Stopped) and slot.started:
            # An earlier process started it.
            return await self._unknown(action, call)
        if isinstance(stopped, Stopped):
            reason = f"`{call.name}` did not run: {stopped.reason}"
            people = catalogue.CALL_DID_NOT_RUN.to(
                self._turn.language, tool=call.name, why=stopped.for_people
            )
            ended = refusal_result(
                self._services, frozen, reason, outcome="denied", by=stopped.by, for_people=people
            )
            return self._call_ended(ended)
        started = entries.CallStarted(action=action, at=self._services.clock.now())
        return Transition(
            events=(started,), point=DurablePoint.CALL_STARTED, journal=(started,), writes=writes
        )

    async def run(self, action: ActionId) -> None:
        """Run a call that was cleared."""
        await self._tell(self._call_ended(await self.calls.run(action)))

    async def unknown(self, action: ActionId, call: ToolCall) -> None:
        """Record a call whose outcome a restart lost, for the model and for the operators (P3)."""
        await self._tell(await self._unknown(action, call))

    async def _unknown(self, action: ActionId, call: ToolCall) -> Transition:
        people = catalogue.CALL_MAY_HAVE_RUN.to(self._turn.language, tool=call.name)
        whose = self._opened.principal
        says = catalogue.MAY_HAVE_RUN.about(
            tool=call.name, who=whose.label, where=self._turn.address.channel
        )
        told = notice_row(self._services.ids.ulid(), says)
        ended = refusal_result(
            self._services,
            await self._turn.frozen(action),
            batch.MAY_HAVE_RUN,
            outcome="unknown",
            by="restart",
            for_people=people,
        )
        return replace(self._call_ended(ended), writes=(told,))

    def _call_ended(self, settled: Settled) -> Transition:
        """Return the end of a call, with everything that is recorded about it."""
        finished, here = settled.finished, self._session.conversation
        writes: list[Write] = []
        if settled.blob is not None:
            trusted = not finished.untrusted
            row = kept_put(here, settled.blob, finished.at, self._opened.turn, trusted=trusted)
            writes += (settled.blob, row)
        for one in settled.files:
            blob, file = self._sent(one)
            writes += (blob, outbox_row(self._services.ids.ulid(), file, here))
        return Transition(
            events=(finished,),
            point=DurablePoint.CALL_FINISHED,
            journal=(finished,),
            audited=(settled.audited,),
            writes=tuple(writes),
        )

    def _sent(self, file: ToolFile) -> tuple[PutBlob, FilePost]:
        """Return the blob of a file for the chat, and the file as the outbox sends it."""
        blob = PutBlob(digest=hashlib.sha256(file.content).hexdigest(), body=file.content)
        return blob, FilePost(
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

    async def append(self, results: tuple[ToolMessage, ...], progress: Progress) -> None:
        """Append the results of a batch, together with edits that arrived meanwhile.

        If the model is asked again, the person's new messages join too; otherwise they would get no
        answer.
        """
        steered, language = progress.asks_again, self._turn.language
        edits, edited = await self._controls.take_held(self._opened.principal)
        near = limit_warning(progress) if steered else None
        told = () if near is None else (self._turn.says(as_note(near.to(language))),)

        async def planned(reads: Reads) -> Transition:
            # Another turn may give the same budget warning, or a message be edited or deleted.
            notes, marks = await self._turn.of_budgets(reads, but_over=True)
            whose = self._opened.principal
            words, joined = await self._controls.steering(reads, whose) if steered else ((), ())
            news = (*edits, *words)
            spoken = self._session.history.spoken(*results, *(one.user for one in news))
            complete = entries.BatchAppended(
                at=self._services.clock.now(),
                context_heavy=steered and await self._composer.is_heavy(spoken),
            )
            # A new message of the person is news for a model that loops.
            complete = complete if news else self._judged(complete)
            said = (*told, *map(self._turn.says, notes), *marks)
            point = DurablePoint.HOUSEKEEPING if said else None
            return Transition(
                events=(complete,),
                # It only combines results that are on record, so it can be made again.
                point=DurablePoint.STEERED if news else point,
                journal=(complete, *news),
                writes=(*edited, *said, *joined),
            )

        await self._tell(Transition(plan=planned))

    def _judged(self, complete: entries.BatchAppended) -> entries.BatchAppended:
        """Return the entry of a batch with the verdict on repeated calls (S4-04)."""
        turn = self._session.history.turn
        if turn is None or not turn.calls or not isinstance(turn.state, Calling):
            return complete  # a first round repeats none
        calls = loop_detection.extended(turn.calls, turn.state.batch.slots)
        limits = self._opened.limits
        found = loop_detection.judged(
            calls, most=limits.max_repeats, warn=limits.warn_repeats, changes=self._changes
        )
        return replace(complete, word=found.word, loop=found.loop)

    def _changes(self, tool: str) -> bool:
        """Tell whether calls of a tool may change something; tools that declare nothing may."""
        known = self._services.gate.tools.get(tool)
        return known is not None and not facts_of(known.spec).effects.isdisjoint({"write", "exec"})
