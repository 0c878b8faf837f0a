"""The slots of a batch: one for each call, filled in place."""

import pytest

from tests.unit.turn.parts import action, allowed, approval, asked, call, calls, denied, result
from zeroclaw.gate.verdict import Verdict
from zeroclaw.turn import batch as slots
from zeroclaw.turn.batch import Batch, Slot


def gated(*verdicts: Verdict) -> Batch:
    return slots.gated(slots.allocate(calls(len(verdicts))), verdicts)


def statuses(batch: Batch) -> list[str]:
    return [slot.status for slot in batch.slots]


def test_every_call_has_a_slot_before_anything_is_decided() -> None:
    """Slots are allocated up front, in request order (S1-17)."""
    made = (call("a", "x"), call("b", "x"))
    assert slots.allocate(made) == Batch(slots=(Slot(call=made[0]), Slot(call=made[1])))


@pytest.mark.parametrize(
    ("verdict", "status"),
    [(allowed("a"), "allowed"), (asked("a"), "asked"), (denied("a"), "ended")],
)
def test_a_verdict_moves_its_slot(verdict: Verdict, status: str) -> None:
    """Denied slots are filled at once, the others wait (S1-17)."""
    assert statuses(gated(verdict)) == [status]


def test_an_asked_slot_knows_its_approval() -> None:
    """Approvals are found by their own id and carry their deadline (K9)."""
    slot = gated(asked("a", delegated=True)).slots[0]
    verdict = asked("a")
    found = (slot.action, slot.approval, slot.deadline_at, slot.delegated)
    assert found == (verdict.action, verdict.approval, verdict.deadline_at, True)


def test_a_batch_is_gated_once() -> None:
    """The second word of the gate is not heard (S1-19)."""
    once = gated(allowed("a"))
    assert slots.gated(once, (denied("a"),)) == once


def test_people_are_told_of_calls_that_began_to_run_and_of_nothing_else() -> None:
    """A name and how it stands; what was denied, asked or only checked did not run."""
    batch, _ = slots.launched(gated(allowed("a"), allowed("b"), allowed("c"), denied("d")))
    assert slots.progress(batch) == ()
    for name in ("a", "b", "c"):
        batch = slots.cleared(batch, action(name))
    batch = slots.ended(batch, action("b"), result("fine"), "ok")
    batch = slots.ended(batch, action("c"), result("no"), "failed")
    states = {"a": "running", "b": "ok", "c": "failed"}
    assert [(one.key, one.tool, one.state) for one in slots.progress(batch)] == [
        (key, f"tool_{at}", state) for at, (key, state) in enumerate(states.items())
    ]


def test_a_result_takes_the_id_and_name_of_its_call() -> None:
    """Whoever made it, it echoes its own call (S1-15)."""
    batch = slots.gated(slots.allocate((call("shell", "call_7"),)), (denied("a"),))
    assert slots.results(batch) == (result("a: no", "call_7", "shell"),)


def test_results_with_one_id_land_at_their_own_calls() -> None:
    """Two calls named alike, ended in the other order (S1-18, K9)."""
    batch, _ = slots.launched(gated(allowed("a"), allowed("b")))
    later = slots.ended(batch, action("b"), result("second"), "ok")
    assert [slot.result and slot.result.content for slot in later.slots] == [None, "second"]
    both = slots.ended(later, action("a"), result("first"), "ok")
    assert [message.content for message in slots.results(both)] == ["first", "second"]
    assert slots.is_complete(both)


def test_nothing_starts_while_a_question_is_open() -> None:
    """The allowed call is not even checked (S1-19)."""
    batch = gated(allowed("a"), asked("b"))
    assert slots.launched(batch) == (batch, ())
    assert slots.pending(batch) == (approval("b"),)


def test_a_started_batch_does_not_start_again() -> None:
    """Nothing is left to launch."""
    batch, actions = slots.launched(gated(allowed("a"), allowed("b")))
    assert actions == (action("a"), action("b"))
    assert slots.launched(batch) == (batch, ())


def test_a_busy_batch_keeps_its_sub_agents_waiting() -> None:
    """Delegated calls come last, alone."""
    batch, actions = slots.launched(gated(allowed("a"), allowed("b", delegated=True)))
    assert actions == (action("a"),)
    assert slots.launched(batch) == (batch, ())
    assert slots.is_delegated(batch, action("b"))
    assert not slots.is_delegated(batch, action("a"))


def test_a_restart_forgets_checks_and_keeps_what_ran() -> None:
    """Checked calls are checked again; running ones stay unless they may be rerun."""
    batch, _ = slots.launched(gated(allowed("a"), allowed("b"), allowed("c")))
    ran = slots.cleared(slots.cleared(batch, action("a")), action("b"))
    left, unknown = slots.revived(ran, frozenset({action("b")}))
    assert statuses(left) == ["running", "allowed", "allowed"]
    assert unknown == (action("a"),)
    assert [slot.started for slot in left.slots] == [True, True, False]
