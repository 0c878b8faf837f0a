"""The slots of one batch of tool calls: one for each call, in request order.

    waiting ──gated──► asked ──granted──► allowed ──launched──► checking ──cleared──► running
       │                 │                                         │                     │
       └─────denied──────┴────refused──────────► ended ◄───────────┴───────ended─────────┘

Slots are allocated before anything is decided and filled in place, so a result belongs to its
call by position; the model's own ids may collide (S1-17, S1-18). Events find a slot by the
action's or the approval's id, never by the model's (K9). Each function returns the batch
unchanged if its id belongs to no slot, or to one past that step: late events are legal.
"""

from collections.abc import Callable, Iterable
from typing import Literal, assert_never

from zeroclaw.channel import ToolProgress
from zeroclaw.envelope import ActionId, ApprovalId
from zeroclaw.gate.verdict import Allowed, Asked, Denied, Verdict
from zeroclaw.message import ToolCall, ToolMessage, ToolOutcome
from zeroclaw.value import Value, replace

Status = Literal["waiting", "asked", "allowed", "checking", "running", "ended"]

DID_NOT_RUN = "this call did not run: the turn ended before it started"
MAY_HAVE_RUN = "interrupted: this call had started and may have run; its outcome is unknown"


class Slot(Value):
    """The state of one call.

    Attributes:
        call: As the model wrote it.
        status: The step in the drawing above.
        action: None before the gate; a malformed call may never get one.
        approval: The approval of the call, if one was requested.
        sequential: From the gate's verdict.
        started: The call began to run at least once, perhaps before a restart.
        result: Set exactly when the slot has ended.
        outcome: Set exactly when the slot has ended.
    """

    call: ToolCall
    status: Status = "waiting"
    action: ActionId | None = None
    approval: ApprovalId | None = None
    sequential: bool = False
    started: bool = False
    result: ToolMessage | None = None
    outcome: ToolOutcome | None = None


class Batch(Value):
    """The calls of one answer; their positions never change."""

    slots: tuple[Slot, ...]


class Fill(Value):
    """The result of a call that the end of its turn cut short.

    Attributes:
        position: The position of its slot, from 0.
        action: None for a call that was never gated, or too malformed.
        outcome: `cancelled` if it did not run, `unknown` if it may have.
        result: The text that the model reads later.
        receipt: The token at the end of the result, or empty.
    """

    position: int
    action: ActionId | None
    outcome: Literal["cancelled", "unknown"]
    result: ToolMessage
    receipt: str = ""


def allocate(calls: Iterable[ToolCall]) -> Batch:
    """Make one waiting slot for each call, in the model's order."""
    return Batch(slots=tuple(Slot(call=call) for call in calls))


def gated(batch: Batch, verdicts: tuple[Verdict, ...]) -> Batch:
    """Enter the gate's verdicts, one for each call in request order; denied calls end at once.

    Raises:
        ValueError: There are more or fewer verdicts than calls.
    """
    if is_gated(batch):
        return batch
    pairs = zip(batch.slots, verdicts, strict=True)
    return Batch(slots=tuple(_decided(slot, verdict) for slot, verdict in pairs))


def answered(batch: Batch, approval: ApprovalId, denial: ToolMessage | None) -> Batch:
    """Let the call of this approval run, or end it with its denial; no other call changes (K2)."""
    return _changed(
        batch,
        lambda slot: slot.approval == approval and slot.status == "asked",
        lambda slot: (
            replace(slot, status="allowed") if denial is None else _ended(slot, denial, "denied")
        ),
    )


def cleared(batch: Batch, action: ActionId) -> Batch:
    """Mark a call that passed its last check as running."""
    return _changed(
        batch, _at(action, "checking"), lambda slot: replace(slot, status="running", started=True)
    )


def ended(batch: Batch, action: ActionId, result: ToolMessage, outcome: ToolOutcome) -> Batch:
    """Fill the slot of a call that was being checked or run."""
    busy = _at(action, "checking", "running")
    return _changed(batch, busy, lambda slot: _ended(slot, result, outcome))


def launched(batch: Batch) -> tuple[Batch, tuple[ActionId, ...]]:
    """Mark the calls that start now as checking, and return them in request order.

    All start at once, or one by one if any is sequential. None starts while an approval is open.
    """
    ready = [slot for slot in batch.slots if slot.status == "allowed"]
    one_by_one = _one_by_one(batch)
    if pending(batch) or (one_by_one and active(batch)):
        ready = []
    elif one_by_one:
        ready = ready[:1]
    actions = tuple(slot.action for slot in ready if slot.action is not None)
    return _changed(
        batch,
        lambda slot: slot.status == "allowed" and slot.action in actions,
        lambda slot: replace(slot, status="checking"),
    ), actions


def closed(batch: Batch) -> tuple[tuple[ToolMessage, ...], tuple[Fill, ...]]:
    """Return a result for every call, and the fills among them.

    A call that started "may have run"; one that did not "did not run" (K24).
    """
    results: list[ToolMessage] = []
    fills: list[Fill] = []
    for position, slot in enumerate(batch.slots):
        result = slot.result
        if result is None:
            text = MAY_HAVE_RUN if slot.started else DID_NOT_RUN
            result = _echo(slot.call, ToolMessage(content=text, tool_call_id="", is_error=True))
            outcome = "unknown" if slot.started else "cancelled"
            fill = Fill(position=position, action=slot.action, outcome=outcome, result=result)
            fills.append(fill)
        results.append(result)
    return tuple(results), tuple(fills)


def revived(batch: Batch, rerun: frozenset[ActionId]) -> tuple[Batch, tuple[ActionId, ...]]:
    """Return the batch after a restart, and the calls whose outcome is unknown.

    A call that was being checked goes back to allowed; so does a running one in `rerun`. Other
    running ones stay until they are ended as unknown.
    """

    def may_run_again(slot: Slot) -> bool:
        return slot.status == "checking" or (slot.status == "running" and slot.action in rerun)

    batch = _changed(batch, may_run_again, lambda slot: replace(slot, status="allowed"))
    return batch, active(batch)


def is_gated(batch: Batch) -> bool:
    """Tell whether the gate has decided; it decides on all calls at once (S1-19)."""
    return all(slot.status != "waiting" for slot in batch.slots)


def is_complete(batch: Batch) -> bool:
    """Tell whether every slot has its result."""
    return all(slot.status == "ended" for slot in batch.slots)


def progress(batch: Batch) -> tuple[ToolProgress, ...]:
    """Return the progress of the calls that began to run, in request order, for people."""
    return tuple(
        ToolProgress(
            key=slot.action,
            tool=slot.call.name,
            state="running" if slot.outcome is None else "ok" if slot.outcome == "ok" else "failed",
        )
        for slot in batch.slots
        if slot.started and slot.action is not None
    )


def pending(batch: Batch) -> tuple[ApprovalId, ...]:
    """Return the approvals that have not ended, in request order."""
    approvals = (slot.approval for slot in batch.slots if slot.status == "asked")
    return tuple(filter(None, approvals))


def active(batch: Batch) -> tuple[ActionId, ...]:
    """Return the calls that are being checked or run, in request order."""
    actions = (slot.action for slot in batch.slots if slot.status in {"checking", "running"})
    return tuple(filter(None, actions))


def results(batch: Batch) -> tuple[ToolMessage, ...]:
    """Return the results so far, in request order; complete once the batch is (S1-23)."""
    return tuple(slot.result for slot in batch.slots if slot.result is not None)


def _one_by_one(batch: Batch) -> bool:
    return any(slot.sequential and slot.outcome != "denied" for slot in batch.slots)


def _at(action: ActionId, *steps: Status) -> Callable[[Slot], bool]:
    return lambda slot: slot.action == action and slot.status in steps


def _changed(batch: Batch, fits: Callable[[Slot], bool], change: Callable[[Slot], Slot]) -> Batch:
    slots = tuple(change(slot) if fits(slot) else slot for slot in batch.slots)
    return Batch(slots=slots)


def _decided(slot: Slot, verdict: Verdict) -> Slot:
    match verdict:
        case Denied():
            gated_slot = replace(slot, action=verdict.action)
            return _ended(gated_slot, verdict.result, verdict.outcome)
        case Asked() | Allowed():
            is_asked = isinstance(verdict, Asked)
            return replace(
                slot,
                status="asked" if is_asked else "allowed",
                action=verdict.action,
                approval=verdict.approval if is_asked else None,
                sequential=verdict.sequential,
            )
        case _:
            assert_never(verdict)


def _ended(slot: Slot, result: ToolMessage, outcome: ToolOutcome) -> Slot:
    return replace(slot, status="ended", result=_echo(slot.call, result), outcome=outcome)


def _echo(call: ToolCall, result: ToolMessage) -> ToolMessage:
    # INVARIANT: a result has its own call's id and name, whichever module made it (S1-15).
    return replace(result, tool_call_id=call.id, tool_name=call.name)
