"""The tasks of a running turn: each performs one effect, and returns its outcome as a transition.

A task writes nothing to the conversation itself; the transition carries the entries and writes that
must be stored together with its event. Only a request to the model tells the turn of several.
"""

from zeroclaw.context.history import files_of
from zeroclaw.context.tokens import of_message
from zeroclaw.gate.conditions import facts_of
from zeroclaw.message import ToolMessage, Usage
from zeroclaw.provider import ModelRequest
from zeroclaw.store import DurablePoint, Reads
from zeroclaw.text import catalogue
from zeroclaw.turn import entries, loop_detection, signals
from zeroclaw.turn.compactor import compact
from zeroclaw.turn.context import TurnContext, as_note
from zeroclaw.turn.control import ControlLane
from zeroclaw.turn.machine import limit_warning
from zeroclaw.turn.model_call import ModelCall
from zeroclaw.turn.receipts import ReceiptLookup
from zeroclaw.turn.session import Tell, Transition
from zeroclaw.turn.states import Calling, CompactionCause, Progress
from zeroclaw.turn.tool_calls import ToolCalls
from zeroclaw.value import replace


class EffectExecutor:
    """The tasks of one turn.

    Attributes:
        receipts: Looks receipts of its conversation up.
    """

    def __init__(self, turn: TurnContext, controls: ControlLane, tell: Tell) -> None:
        """Work for one turn; pass what a request tells on through `tell`."""
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
        if (spent := await self._spent()) is not None:
            await self._tell(spent)
            return
        await self.receipts.refresh()
        model_call = ModelCall(turn=self._turn, lookup=self.receipts.lookup, tell=self._report)
        await model_call.ask(number, self._request)

    async def _spent(self) -> Transition | None:
        """Return the end of a turn that has used up a budget, before it asks a model; else None."""
        principal, conversation = self._opened.principal, self._session.conversation
        limit = await self._services.budget.exceeded(principal, conversation)
        if limit is None:
            return None
        event = signals.BudgetReached(text=limit.to(self._turn.language))
        return Transition(events=(event,))

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

    async def compact(self, cause: CompactionCause) -> Transition:
        """Replace older messages by a summary if possible, unless a budget is used up."""
        if (spent := await self._spent()) is not None:
            return spent
        await self.receipts.refresh()
        return await compact(self._turn, self.calls, cause)

    # --- the results ---------------------------------------------------------------------------

    async def append(self, results: tuple[ToolMessage, ...], progress: Progress) -> Transition:
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

        return Transition(plan=plan)

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
