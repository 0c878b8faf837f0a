"""The loop of one running turn: it commits each transition, steps the machine, performs the effects.

    tasks ──Transition──► queue ──► commit ──► machine.step ──► effects ──► tasks

The loop is the only writer of the conversation. It ends when the machine is done; then it stops
everything that still runs for the turn.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal, assert_never

from zeroclaw.context.tokens import of_text
from zeroclaw.conversation.inbox import Item, PersonMessage
from zeroclaw.delivery.live import DraftHandle
from zeroclaw.delivery.split import BREAK
from zeroclaw.envelope import ActionId, ApprovalId, ConversationId
from zeroclaw.events import StageEntered, TextStreamed, ToolDecided, ToolEnded, ToolStarted
from zeroclaw.gate.verdict import Allowed, Asked, Denied, Verdict
from zeroclaw.message import NO_USAGE, ToolCall, Usage
from zeroclaw.store import Write
from zeroclaw.text.language import Localized
from zeroclaw.turn import batch, entries, signals
from zeroclaw.turn.context import TurnContext
from zeroclaw.turn.control import ControlLane
from zeroclaw.turn.executor import EffectExecutor
from zeroclaw.turn.machine import Step, step
from zeroclaw.turn.session import NOTHING, Transition
from zeroclaw.turn.signals import AbortRequested, Effect, Event
from zeroclaw.turn.states import STAGES, Calling, Done, State, Streaming
from zeroclaw.value import Value, replace

MAX_WAITING = 256
"""Events that may be queued for the turn; a faster stream waits before adding its next."""


class LoopResult(Value):
    """The result of the loop.

    Attributes:
        done: The machine's final state.
        approvals: The approvals that were open when the turn ended.
        writes: Writes of the control item that ended it, for the final commit.
        by: Who ended it; empty if no person did.
    """

    done: Done
    approvals: tuple[ApprovalId, ...] = ()
    writes: tuple[Write, ...] = ()
    by: str = ""


class TurnLoop:
    """Runs one turn; each turn gets a new loop.

    Attributes:
        draft: Shows the turn's text.
    """

    def __init__(
        self, turn: TurnContext, draft: DraftHandle, on_parked: Callable[[], Awaitable[None]]
    ) -> None:
        """Begin with no task running.

        Args:
            turn: The turn to run.
            draft: As above.
            on_parked: Called whenever a step leaves the turn parked.
        """
        self._turn = turn
        self._services, self._session, self._opened = turn.services, turn.session, turn.opened
        self._controls = ControlLane(turn.services, turn.session)
        self.draft = draft
        self._on_parked = on_parked
        self._queue: asyncio.Queue[Transition] = asyncio.Queue(MAX_WAITING)
        self._tasks = EffectExecutor(turn, self._controls, self._queue.put)
        self._started: list[tuple[asyncio.Task[None], ActionId | None]] = []
        self._state: State | None = None
        self._counted = NO_USAGE
        self._abort = NOTHING

    @property
    def conversation(self) -> ConversationId:
        """The conversation of this turn."""
        return self._session.conversation

    @property
    def is_parked(self) -> bool:
        """Whether it waits for a person, and has no other work."""
        return bool(open_approvals(self._state)) and self._queue.empty()

    @property
    def awaited_tools(self) -> tuple[str, ...]:
        """The tools whose calls wait for an approval."""
        return tuple(slot.call.name for slot in self._slots() if slot.status == "asked")

    def ends_with(self, item: Item) -> bool:
        """Tell whether a message interrupts this turn; only its own person's can."""
        return (
            isinstance(item.content, PersonMessage)
            and item.content.while_busy == "interrupt"
            and item.principal.id == self._opened.principal.id
        )

    def show_note(self, note: Localized) -> None:
        """Show a note below the draft's last message, if there is one; the note survives a restart."""
        if self.draft.text and not self.draft.text.endswith(BREAK):
            self.draft.show(f"{self.draft.text}\n\n{note.to(self._turn.language)}")
            self.draft.demand_messages()

    async def halt(self, by: str) -> None:
        """End the turn, as part of a halt of everything."""
        await self._queue.put(Transition(events=(AbortRequested(cause="halt", by=by),)))

    async def drive(
        self, state: State, effects: tuple[Effect, ...], *, first: Event | None = None
    ) -> LoopResult:
        """Run the turn to its end; everything it started has ended when this returns.

        Args:
            state: The state it begins with, or was found in.
            effects: The effects to perform in that state.
            first: An event to process before any effect, for a turn that must not continue.
        """
        previous: State | None = None
        if first is not None:
            previous = state
            state, effects = await self._after(state, Transition(events=(first,)))
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(
                self._controls.watch(
                    self._turn, lambda: open_approvals(self._state), self._queue.put
                )
            )
            while True:
                self._state = state
                self._count(state)
                self._publish_stages(previous, state)
                if isinstance(state, Calling):
                    self.draft.show_tools(batch.progress(state.batch))
                for effect in effects:
                    self._perform(effect, group)
                if isinstance(state, Done):
                    break
                was_parked, self.draft.is_parked = self.draft.is_parked, self.is_parked
                if self.is_parked:
                    await self._on_parked()
                elif was_parked:
                    self.draft.begin()
                previous = state
                state, effects = await self._after(state, await self._queue.get())
            watch.cancel()
            self._stop()
        abort = self._abort
        return LoopResult(
            done=state,
            approvals=open_approvals(previous),
            writes=abort.writes,
            by=next((event.by for event in abort.events if isinstance(event, AbortRequested)), ""),
        )

    async def _after(self, state: State, transition: Transition) -> Step:
        """Commit a transition, then step the machine with its events."""
        if isinstance(event := next(iter(transition.events), None), AbortRequested):
            self._abort = transition
            # Usage of the request that is cut off; of its answer, only the shown part.
            usage = self._turn.composer.take_uncharged_usage()
            if usage.total_tokens and isinstance(state, Streaming):
                usage += Usage(output_tokens=of_text(state.shown))
            transition = Transition(events=(replace(event, usage=usage),))
        else:
            transition = await self._session.transact(transition)
            self._services.outbox.announce_written(transition.writes)
        effects: list[Effect] = []
        for event in transition.events:
            self._publish(state, event)
            state, new_effects = step(state, event)
            effects += new_effects
        return state, tuple(effects)

    def _count(self, state: State) -> None:
        """Report the turn's usage so far to the budgets, whenever it has grown."""
        usage = state.usage if isinstance(state, Done) else state.progress.usage
        if usage != self._counted:
            self._services.budget.record(self._turn.row, usage)
            self._counted = usage

    def _stop(self) -> None:
        """Cancel what still runs, except calls that can't be cancelled, which are awaited."""
        for task, action in self._started:  # cancelling a finished task does nothing
            if action is None or self._tasks.calls.is_cancellable(action):
                task.cancel()
        # The loop reads no more events: empty the queue, so that no task blocks on it.
        while not self._queue.empty():
            self._queue.get_nowait()

    # --- effects -------------------------------------------------------------------------------

    # One branch for each effect; none of them decides anything.
    def _perform(self, effect: Effect, group: asyncio.TaskGroup) -> None:  # noqa: C901
        tasks, start = self._tasks, partial(self._start, group, effect)
        match effect:
            case signals.SendRequest(request=request):
                start(partial(tasks.ask, request))
            case signals.ShowText(text=text, is_last=is_last):
                self.draft.show(tasks.receipts.without_receipts(text), is_last=is_last)
            case signals.GateBatch(calls=calls):
                # People read the text while the turn waits; the card of a request comes below it.
                self.draft.demand_messages()
                start(partial(self._gate, calls))
            case signals.AwaitAnswers():
                self.draft.demand_messages(is_read_now=True)
            case signals.CheckCalls(actions=actions):
                slots = {action: self._slot(action) for action in actions}
                start(partial(tasks.calls.check, slots))
            case signals.RunCall(action=action):
                start(partial(tasks.calls.run, action))
            case signals.RecordUnknown(action=action):
                start(partial(tasks.calls.unknown, action, self._slot(action).call))
            case signals.AppendBatch(results=results):
                state = self._state
                if isinstance(state, Calling):  # INVARIANT: only a batch is appended
                    start(partial(tasks.append, results, state.progress))
            case signals.Compact(cause=cause):
                start(partial(tasks.compact, cause))
            case _:
                assert_never(effect)

    async def _gate(self, calls: tuple[ToolCall, ...]) -> Transition:
        await self.draft.wait_for_messages()
        return await self._tasks.calls.gate(calls)

    def _start(
        self,
        group: asyncio.TaskGroup,
        effect: Effect,
        work: Callable[[], Awaitable[Transition | None]],
    ) -> None:
        async def tell() -> None:
            if (transition := await work()) is not None:
                await self._queue.put(transition)

        task = group.create_task(tell(), name=f"{type(effect).__name__} of {self._opened.turn}")
        self._started.append((task, effect.action if isinstance(effect, signals.RunCall) else None))

    def _slots(self) -> tuple[batch.Slot, ...]:
        return self._state.batch.slots if isinstance(self._state, Calling) else ()

    def _slot(self, action: ActionId) -> batch.Slot:
        return next(slot for slot in self._slots() if slot.action == action)

    # --- observers -----------------------------------------------------------------------------

    def _publish_stages(self, previous: State | None, state: State) -> None:
        earlier = STAGES[type(previous)] if previous is not None else ()
        for stage in STAGES[type(state)]:
            if stage not in earlier:
                self._turn.publish(StageEntered(stage=stage))

    def _publish(self, state: State, event: Event) -> None:
        publish = self._turn.publish
        match event:
            case signals.TextArrived(text=text):
                publish(TextStreamed(text=text))
            case entries.Gated(verdicts=verdicts) if isinstance(state, Calling):
                for slot, verdict in zip(state.batch.slots, verdicts, strict=True):
                    action, decision = verdict.action or ActionId(""), _DECISIONS[type(verdict)]
                    publish(ToolDecided(action=action, tool=slot.call.name, verdict=decision))
            case entries.CallStarted(action=action):
                publish(ToolStarted(action=action, tool=self._slot(action).call.name))
            case entries.CallFinished(action=action, outcome=outcome):
                tool = self._slot(action).call.name
                publish(ToolEnded(action=action, tool=tool, outcome=outcome))
            case _:
                return


_DECISIONS: dict[type[Verdict], Literal["allow", "ask", "deny"]] = {
    Allowed: "allow",
    Asked: "ask",
    Denied: "deny",
}


def open_approvals(state: State | None) -> tuple[ApprovalId, ...]:
    """Return the open approvals of the batch; the turn waits for a person while there are any."""
    return batch.pending(state.batch) if isinstance(state, Calling) else ()
