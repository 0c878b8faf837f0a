"""What is asked of every turn: the world's half that looks at effects, and the promises."""

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis.stateful import RuleBasedStateMachine

from tests.unit.turn import parts
from zeroclaw.envelope import ActionId, ApprovalId
from zeroclaw.gate.verdict import Allowed, Verdict
from zeroclaw.message import AssistantMessage, Message, ToolCall, ToolMessage, Usage
from zeroclaw.turn import entries, journal, machine, signals
from zeroclaw.turn.batch import DID_NOT_RUN, MAY_HAVE_RUN, pending
from zeroclaw.turn.entries import Entry
from zeroclaw.turn.machine import Step
from zeroclaw.turn.signals import Effect, Event
from zeroclaw.turn.states import Asking, Confirming, Done, State, TurnLimits
from zeroclaw.value import replace


class BrokenPromise(AssertionError):
    """Names the promise that did not hold."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The services under test, so that a mutant can take the place of one."""

    begin: Callable[[TurnLimits], Step] = machine.begin
    begin_tool: Callable[[ToolCall, TurnLimits], Step] = machine.begin_tool
    step: Callable[[State, Event], Step] = machine.step
    resume: Callable[[State, frozenset[ActionId]], Step] = lambda state, rerun: machine.resume(
        state, rerun=rerun
    )
    extend: Callable[[journal.History, Entry], journal.History] = journal.extend
    reload: Callable[[State], State] = parts.stored


def is_paired(messages: tuple[Message, ...]) -> bool:
    """Whether each call is answered exactly once, right behind its message, in order."""
    due: list[ToolCall] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if not due or due.pop(0).id != message.tool_call_id:
                return False
        elif due:
            return False
        elif isinstance(message, AssistantMessage):
            due = list(message.tool_calls)
    return not due


def durable(stepped: Step) -> tuple[object, object]:
    """The part of a resumed state that must be the same after a restart.

    Not so: how often a request was tried, what was on the screen, and whether a compaction that
    changes nothing is to be tried again.
    """
    state, effects = stepped
    if isinstance(state, Done):
        return state, effects
    progress = replace(state.progress, requests=0, retried=False, overflowed=False)
    if isinstance(state, Asking):
        return progress, None
    return (type(state), progress, state.batch), effects


class Watch(RuleBasedStateMachine):
    """Performs effects, and looks at each as it comes."""

    turn = Turn()
    watched = ""
    """The one promise that a mutant is watched for; the general ones would see most faults."""

    def __init__(self) -> None:
        super().__init__()
        self.state: State | None = None
        self.entries: list[Entry] = []
        self.history = journal.History()
        self.limits = TurnLimits()
        self.names = 0
        self.late: list[Event] = []
        self.end: Done | None = None
        self._forget_batch()
        self._forget_outstanding()
        self.reported = self.recorded = Usage()
        self.appended = 0
        self.shown = ""

    def _forget_batch(self) -> None:
        self.calls: tuple[ToolCall, ...] = ()
        self.verdicts: tuple[Verdict, ...] = ()
        self.approved: set[ActionId] = set()
        self.started: set[ActionId] = set()
        self.stopped: set[ActionId] = set()
        self.idempotent: set[ActionId] = set()
        self.texts: dict[int, str] = {}

    def _forget_outstanding(self) -> None:
        self.request = 0
        self.sent = False
        self.gate = self.append = self.compact = False
        self.approvals: list[ApprovalId] = []
        self.checks: list[ActionId] = []
        self.runs: list[ActionId] = []

    # --- what the machine asks for ---------------------------------------------------------------

    def is_watched(self, name: str) -> bool:
        """Whether a promise is watched; expensive checks are skipped otherwise."""
        return self.watched in {"", name}

    def promise(self, name: str, *, kept: bool) -> None:
        if not kept and self.is_watched(name):
            raise BrokenPromise(name)

    def handle(self, event: Event, entry: Entry | None = None) -> None:
        assert self.state is not None
        if entry is not None:
            self.write(entry)
        state, effects = self.turn.step(self.state, event)
        self.take(state, effects)

    def write(self, entry: Entry) -> None:
        self.entries.append(entries.decode(entries.encode(entry)))
        self.history = self.turn.extend(self.history, self.entries[-1])

    def take(self, state: State, effects: tuple[Effect, ...]) -> None:
        self.state = state
        for effect in effects:
            self.perform(effect)
        if isinstance(state, Done) and self.end is None:
            self.check_end(state)
            self.end = state
            self.late += self.unheard()
            self._forget_outstanding()

    def perform(self, effect: Effect) -> None:
        self.promise("after done nothing happens", kept=self.end is None)
        match effect:
            case signals.SendRequest():
                self.ask(effect.request)
            case signals.ShowText():
                self.shown = effect.text
            case signals.GateBatch():
                self.promise("a gated batch is never gated again", kept=not self.verdicts)
                self.gate = True
            case signals.AwaitAnswers():
                assert isinstance(self.state, Confirming)
                self.approvals = list(pending(self.state.batch))
            case signals.CheckCalls():
                self.check(effect.actions)
            case signals.RunCall():
                self.run(effect.action)
            case signals.RecordUnknown():
                self.runs.append(effect.action)
            case _:
                self.conclude(effect)

    def conclude(self, effect: Effect) -> None:
        match effect:
            case signals.AppendBatch():
                self.check_results(effect.results)
                self.append = True
            case _:
                self.compact = True

    def ask(self, request: int) -> None:
        self.promise("the budget is kept", kept=not self.is_spent(self.reported))
        self.promise("rounds stay in bounds", kept=self.appended < self.limits.max_rounds)
        self.promise("a batch is whole before the next request", kept=not self.calls)
        self.request, self.sent = request, False

    def check(self, names: tuple[ActionId, ...]) -> None:
        self.promise("nothing runs before every ask ended", kept=not self.approvals)
        for name in names:
            self.promise("nothing runs that is not approved", kept=name in self.approved)
        self.checks += names

    def unheard(self) -> list[Event]:
        """The late events that a finished turn may still get."""
        answer = AssistantMessage(content="late")
        return [
            signals.ResponseReceived(request=self.request, message=answer, usage=parts.USED),
            entries.BatchAppended(at=parts.AT),
            entries.Compacted(at=parts.AT, summary="", kept=0, usage=parts.USED),
            *(
                entries.AnswerTaken(at=parts.AT, how="approved", approval=approval)
                for approval in self.approvals
            ),
            *(self.late_end(verdict) for verdict in self.verdicts if verdict.action),
        ]

    def late_end(self, verdict: Verdict) -> Event:
        name = verdict.action or ActionId("")
        result = parts.result("late")
        return entries.CallFinished(
            at=parts.AT, action=name, result=result, outcome="ok", usage=parts.USED
        )

    def run(self, name: ActionId) -> None:
        self.promise("nothing runs before every ask ended", kept=not self.approvals)
        self.promise("nothing runs that is not approved", kept=name in self.approved)
        again = name in self.started and name not in self.idempotent
        self.promise("nothing runs twice unless idempotent", kept=not again)
        # One that the last check stopped never ran, and slows no other.
        one_by_one = any(
            isinstance(verdict, Allowed) and verdict.sequential
            for verdict in self.verdicts
            if verdict.action not in self.stopped
        )
        self.promise("a sequential batch runs one by one", kept=not (one_by_one and self.runs))
        self.started.add(name)
        self.runs.append(name)

    def is_spent(self, usage: Usage) -> bool:
        cap = self.limits.max_tokens
        return cap is not None and usage.total_tokens >= cap

    def check_results(self, results: tuple[ToolMessage, ...]) -> None:
        self.promise("one result for each call", kept=len(results) == len(self.calls))
        for position, (made, result) in enumerate(zip(self.calls, results, strict=False)):
            own = result.tool_call_id == made.id and result.tool_name == made.name
            self.promise("a result stands at its own call", kept=own)
            expected = self.texts.get(position) or self.cut_short(position)
            self.promise("a result stands at its own call", kept=result.content == expected)

    def cut_short(self, position: int) -> str:
        name = self.verdicts[position].action if self.verdicts else None
        return MAY_HAVE_RUN if name in self.started else DID_NOT_RUN

    def check_end(self, done: Done) -> None:
        self.promise("usage is the sum of what was reported", kept=done.usage == self.reported)
        self.promise("shown text stays", kept=self.shown in done.text)
        spent = self.is_spent(done.usage)
        self.promise("the budget is kept", kept=spent or done.reason != "budget_exceeded")
        if self.calls:
            self.check_results(done.results)
        else:
            self.promise("one result for each call", kept=done.results == ())
