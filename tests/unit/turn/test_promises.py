"""The promises of a turn, on every way it can go, and that each of them is really checked."""

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.unit.turn.mutants import FAULTS
from tests.unit.turn.simulation import World
from tests.unit.turn.watch import BrokenPromise

ONE_CONVERSATION = settings(
    stateful_step_count=60,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
UNTIL_FOUND = settings(
    ONE_CONVERSATION,
    max_examples=20_000,  # it stops at the first that breaks the promise
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


@pytest.mark.slow
@pytest.mark.search
def test_a_turn_keeps_its_promises_in_any_order_of_events() -> None:
    """Every call has one result, nothing unapproved runs, and the journal resumes to the same.

    S0-27, S0-42, S0-44, S1-02, S1-17, S1-18, S1-19, S1-21, S1-22, S1-23, S4-03, S4-16, S4-19,
    S4-20, K1, K2, K5, K9, K15, K24.
    """
    run_state_machine_as_test(World, settings=ONE_CONVERSATION)


@pytest.mark.long("searches until the planted fault is found")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_breaks_the_promise_that_names_it(fault: str) -> None:
    """Each promise is seen to fail when the turn is wrong."""
    mutant, broken = FAULTS[fault]
    world = type("MutantWorld", (World,), {"turn": mutant, "watched": broken})
    with pytest.raises(BrokenPromise) as found:
        run_state_machine_as_test(world, settings=UNTIL_FOUND)
    assert found.value.args == (broken,)
