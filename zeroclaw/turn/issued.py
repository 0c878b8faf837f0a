"""The receipts that a journal shows to have been given out."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from zeroclaw.envelope import ActionId
from zeroclaw.turn import entries
from zeroclaw.turn.batch import Denied, Outcome, Slot
from zeroclaw.turn.entries import Entry
from zeroclaw.turn.states import Calling, State
from zeroclaw.value import Value

Given = tuple[str, str, Outcome, ActionId | None]


class Issued(Value):
    """A receipt that was given out in this conversation.

    Attributes:
        token: As it stands in the result.
        action: None for a call too malformed to become an action.
    """

    token: str
    tool: str
    outcome: Outcome
    at: datetime
    action: ActionId | None


def issued(state: State, entry: Entry) -> tuple[Issued, ...]:
    """Return the receipts that an entry brought, in request order.

    Args:
        state: Of the turn before the entry.
        entry: The newest of the journal.
    """
    slots = state.batch.slots if isinstance(state, Calling) else ()
    return tuple(
        Issued(token=token, tool=tool, outcome=outcome, at=entry.at, action=action)
        for token, tool, outcome, action in _given(slots, entry)
        if token
    )


def _given(slots: tuple[Slot, ...], entry: Entry) -> Iterator[Given]:
    match entry:
        case entries.Gated():
            for slot, verdict in zip(slots, entry.verdicts, strict=False):
                if isinstance(verdict, Denied):
                    yield verdict.receipt, slot.call.name, verdict.outcome, verdict.action
        case entries.AnswerTaken():
            named = (slot for slot in slots if slot.approval == entry.approval)
            yield from _each(named, entry.receipt, "denied")
        case entries.CallFinished():
            named = (slot for slot in slots if slot.action == entry.action)
            yield from _each(named, entry.receipt, entry.outcome)
        case entries.TurnFinished():
            for fill in entry.fills:
                yield fill.receipt, fill.result.tool_name, fill.outcome, fill.action
        case _:
            pass


def _each(slots: Iterable[Slot], receipt: str, outcome: Outcome) -> Iterator[Given]:
    for slot in slots:
        yield receipt, slot.call.name, outcome, slot.action
