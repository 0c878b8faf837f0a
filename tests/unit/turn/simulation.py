"""Every way a turn can go, with the promises that hold on each of them.

`World` plays all that is around the machine: the model, the gate, people, tools, the journal, and
the crash. It hands in events only as answers to effects (and late ones), in any order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tests.unit.turn import parts
from tests.unit.turn.watch import Watch, durable, is_paired
from zeroclaw.envelope import ActionId, ApprovalId
from zeroclaw.gate.verdict import Allowed, Asked, Denied, Verdict
from zeroclaw.message import AssistantMessage, ToolOutcome, Usage
from zeroclaw.turn import entries, journal, signals
from zeroclaw.turn.states import Calling, Done, State, TurnLimits
from zeroclaw.value import replace

USAGES = st.builds(Usage, input_tokens=st.integers(0, 20), output_tokens=st.integers(0, 5))
CALL_IDS = st.sampled_from(["call_0", "call_1"])
KINDS = st.sampled_from(["allow", "allow", "ask", "deny", "malformed"])
PICKS = st.integers(0, 99)
# For each position: idempotent, sequential (10 more).
FLAGS = st.sampled_from([*range(4), *range(10, 14)])


def rarely(*what: str) -> st.SearchStrategy[str]:
    """Mostly nothing, so that turns come far."""
    return st.sampled_from([*[""] * (9 * len(what)), *what])


@dataclass(frozen=True, kw_only=True)
class Luck:
    """The random values of one step; each step uses those it needs."""

    pick: int
    choice: int
    yes: bool
    usage: Usage
    ids: list[str]
    kinds: list[str]
    flags: set[int]


LUCK = st.builds(
    Luck,
    pick=PICKS,
    choice=PICKS,
    yes=st.booleans(),
    usage=USAGES,
    ids=st.lists(CALL_IDS, min_size=1, max_size=4),
    kinds=st.lists(KINDS, min_size=4, max_size=4),
    flags=st.sets(FLAGS, max_size=6),
)


class World(Watch):
    """One conversation, turn after turn."""

    @initialize(rounds=st.integers(1, 3), tokens=st.sampled_from([None, None, 25, 60]))
    def configured(self, rounds: int, tokens: int | None) -> None:
        self.limits = TurnLimits(max_rounds=rounds, max_tokens=tokens)

    @rule(luck=LUCK)
    def something_happens(self, luck: Luck) -> None:
        """One of the answers that are due; several rules would be switched off too often."""
        due = [*self.due_from_the_model(), *self.due_from_the_batch()]
        if self.state is None:
            due = [self.a_turn_begins]
        elif self.end is not None:
            due = [self.the_end_is_recorded]
        self.promise("a turn never waits for nothing", kept=bool(due))
        if due:  # a fault that is watched for another promise may get stuck
            due[luck.choice % len(due)](luck)

    def due_from_the_model(self) -> list[Callable[[Luck], None]]:
        if self.compact:
            return [self.compaction_ends]
        if not self.request:
            return []
        if not self.sent:
            return [*[self.the_request_leaves] * 9, self.the_request_fails]
        tool_calls = [self.the_model_asks_for_tools] * 5
        text = [self.text_arrives] * 2
        return [*tool_calls, *text, self.the_model_finishes, self.the_stream_is_cut]

    def due_from_the_batch(self) -> list[Callable[[Luck], None]]:
        due: list[Callable[[Luck], None]] = []
        if self.gate:
            due.append(self.the_gate_speaks)
        if self.approvals:
            due.append(self.a_person_answers)
        if self.checks:
            due += [self.a_call_is_cleared] * 3
        if self.checks or self.runs:
            due.append(self.a_call_ends)
        if self.append:
            due.append(self.the_batch_is_appended)
        return due

    def a_turn_begins(self, luck: Luck) -> None:
        opened = parts.opened(limits=self.limits)
        made = parts.call("shell", luck.ids[0])
        direct = luck.pick < 15
        self.calls = (made,) if direct else ()
        self.write(replace(opened, call=made if direct else None))
        if direct:
            self.take(*self.turn.begin_tool(made, self.limits))
        else:
            self.take(*self.turn.begin(self.limits))

    def the_request_leaves(self, luck: Luck) -> None:
        self.sent = True
        self.handle(signals.RequestSent(request=self.request))

    def text_arrives(self, luck: Luck) -> None:
        self.handle(signals.TextArrived(request=self.request, text=luck.ids[0]))

    def the_model_asks_for_tools(self, luck: Luck) -> None:
        made = tuple(parts.call(f"tool_{at}", call_id) for at, call_id in enumerate(luck.ids))
        self.calls = made
        self.recorded += luck.usage
        message = AssistantMessage(content="so far", tool_calls=made)
        self.answered(message, luck.usage, keep=True)

    def the_model_finishes(self, luck: Luck) -> None:
        self.answered(AssistantMessage(content="an answer"), luck.usage, keep=False)

    def answered(self, message: AssistantMessage, usage: Usage, *, keep: bool) -> None:
        self.reported += usage
        self.shown = ""
        event = signals.ResponseReceived(request=self.request, message=message, usage=usage)
        self.request_over()
        entry = entries.AssistantReceived(message=message, usage=usage, at=parts.AT)
        self.handle(event, entry if keep else None)

    def request_over(self) -> None:
        self.late.append(signals.TextArrived(request=self.request, text="late"))
        self.late.append(signals.StreamCut(request=self.request))
        self.request = 0

    def the_stream_is_cut(self, luck: Luck) -> None:
        event = signals.StreamCut(request=self.request)
        self.request_over()
        self.handle(event)

    def the_request_fails(self, luck: Luck) -> None:
        number = self.request
        self.request_over()
        failed = signals.RequestFailed(request=number, text="refused")
        overflowed = signals.ContextOverflowed(request=number)
        self.handle(failed if luck.pick < 20 else overflowed)

    def compaction_ends(self, luck: Luck) -> None:
        self.compact = False
        if luck.pick < 20:
            self.handle(signals.CompactionFailed(text="no summary"))
            return
        self.reported += luck.usage
        self.recorded += luck.usage
        entry = entries.Compacted(summary="before", kept=3, usage=luck.usage, at=parts.AT)
        self.handle(entry, entry)

    def the_gate_speaks(self, luck: Luck) -> None:
        self.gate = False
        self.verdicts = tuple(
            self.verdict(position, luck.kinds[position], luck.flags)
            for position in range(len(self.calls))
        )
        entry = entries.Gated(verdicts=self.verdicts, at=parts.AT)
        self.handle(entry, entry)

    def verdict(self, position: int, kind: str, flags: set[int]) -> Verdict:
        self.names += 1
        name = ActionId(f"action-{self.names}")
        if position in flags:
            self.idempotent.add(name)
        if kind == "allow":
            self.approved.add(name)
            return Allowed(action=name, sequential=position + 10 in flags)
        if kind == "ask":
            return parts.asked(name)
        self.texts[position] = f"{name} denied"
        result = parts.result(self.texts[position])
        return Denied(action=name if kind == "deny" else None, result=result)

    def a_person_answers(self, luck: Luck) -> None:
        approval = self.approvals.pop(luck.pick % len(self.approvals))
        position, name = next(
            (at, verdict.action)
            for at, verdict in enumerate(self.verdicts)
            if isinstance(verdict, Asked) and verdict.approval == approval
        )
        refusal = parts.result(f"{name} refused")
        refused = entries.AnswerTaken(
            approval=approval, how="denied", at=parts.AT, result=refusal, by="Sam"
        )
        if luck.yes:
            self.approved.add(name)
            self.late.append(refused)
            entry = entries.AnswerTaken(approval=approval, how="approved", at=parts.AT)
            self.handle(entry, entry)
            return
        self.texts[position] = refusal.content
        self.late.append(entries.AnswerTaken(at=parts.AT, how="approved", approval=approval))
        self.handle(refused, refused)

    def a_call_is_cleared(self, luck: Luck) -> None:
        name = self.checks.pop(luck.pick % len(self.checks))
        entry = entries.CallStarted(action=name, at=parts.AT)
        self.handle(entry, entry)

    def a_call_ends(self, luck: Luck) -> None:
        where = self.runs or self.checks
        name = where.pop(luck.pick % len(where))
        outcome: ToolOutcome = "denied" if where is self.checks else "ok" if luck.yes else "failed"
        if outcome == "denied":
            self.stopped.add(name)
        position = [verdict.action for verdict in self.verdicts].index(name)
        self.texts[position] = f"{name} {outcome}"
        result = parts.result(self.texts[position])
        self.reported += luck.usage
        self.recorded += luck.usage
        entry = entries.CallFinished(
            action=name, result=result, outcome=outcome, usage=luck.usage, at=parts.AT
        )
        self.late.append(replace(entry, result=parts.result("late")))
        self.late.append(entries.CallStarted(action=name, at=parts.AT))
        self.handle(entry, entry)

    def the_batch_is_appended(self, luck: Luck) -> None:
        heavy, goes_round = luck.pick < 25, luck.pick >= 95
        self.append = False
        self.appended += 1
        self._forget_batch()
        entry = entries.BatchAppended(
            at=parts.AT,
            context_heavy=heavy,
            word="again" if luck.yes else "",
            loop=("shell",) if goes_round else (),
        )
        self.handle(entry, entry)

    def the_end_is_recorded(self, luck: Luck) -> None:
        done = self.end
        assert done is not None
        self.promise("done is the last state", kept=self.state == done)
        entry = entries.TurnFinished(
            reason=done.reason,
            usage=done.usage,
            at=parts.AT,
            message=done.message,
            fills=done.fills,
            note=done.note,
        )
        self.write(entry)
        self.state = self.end = None
        self.late = []
        self.reported = self.recorded = Usage()
        self.appended, self.shown = 0, ""
        self._forget_batch()
        self._forget_outstanding()

    @precondition(lambda self: self.state is not None and self.end is None)
    @rule(cause=rarely("stop", "new", "halt", "interrupt", "fault"))
    def the_turn_is_ended(self, cause: str) -> None:
        match cause:
            case "":
                return
            case "stop" | "new" | "halt" | "interrupt":
                self.handle(signals.AbortRequested(cause=cause, by="Sam"))
            case _:
                self.handle(signals.TurnFailed(text="resumed too often"))
        self.promise("an abort ends the turn", kept=self.end is not None)

    @precondition(lambda self: self.state is not None and self.late)
    @rule(pick=PICKS)
    def late_news_comes(self, pick: int) -> None:
        assert self.state is not None
        stepped = self.turn.step(self.state, self.late[pick % len(self.late)])
        self.promise("late news changes nothing", kept=stepped == (self.state, ()))

    @precondition(lambda self: self.state is not None)
    @rule()
    def the_process_is_killed(self) -> None:
        self.end = None
        self.late, self.shown = [], ""
        self.reported = self.recorded
        self._forget_outstanding()
        whole = reduce(self.turn.extend, self.entries, journal.History())
        self.promise("folding again changes nothing", kept=whole == self.history)
        turn = whole.turn
        self.promise("an unrecorded turn is found again", kept=turn is not None)
        assert turn is not None
        if isinstance(turn.state, Calling | Done) and not self.calls:
            self.promise("a finished batch is finished", kept=isinstance(turn.state, Done))
        self.approvals = self.open_asks(turn.state)
        self.take(*self.turn.resume(turn.state, frozenset(self.idempotent)))

    def open_asks(self, state: State) -> list[ApprovalId]:
        slots = state.batch.slots if isinstance(state, Calling) else ()
        return [s.approval for s in slots if s.status == "asked" and s.approval is not None]

    # --- what always holds -----------------------------------------------------------------------

    @invariant()
    def every_call_has_its_result(self) -> None:
        if not self.is_watched("every call has one result, adjacent and in order"):
            return
        whole = self.history.messages
        if self.history.turn is not None and self.calls and isinstance(whole[-1], AssistantMessage):
            whole = whole[:-1]
        self.promise("every call has one result, adjacent and in order", kept=is_paired(whole))

    @invariant()
    def a_reloaded_state_is_the_same(self) -> None:
        if self.state is not None and self.is_watched("a state survives being stored"):
            same = self.turn.reload(self.state) == self.state
            self.promise("a state survives being stored", kept=same)

    @invariant()
    def the_journal_resumes_the_same(self) -> None:
        if self.state is None or isinstance(self.state, Done):
            return
        if not self.is_watched("the journal resumes to the same"):
            return
        turn = self.history.turn
        rerun = frozenset(self.idempotent)
        live = durable(self.turn.resume(self.state, rerun))
        found = turn and durable(self.turn.resume(turn.state, rerun))
        self.promise("the journal resumes to the same", kept=live == found)
