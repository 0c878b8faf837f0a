"""Which states there are, and where the stages of a message lie in them."""

from typing import get_args

import pytest

from tests.unit.turn.parts import LIMITS, action
from zeroclaw.message import Usage
from zeroclaw.turn.batch import Batch
from zeroclaw.turn.states import (
    Calling,
    Compacting,
    Confirming,
    Dispatching,
    Done,
    Executing,
    Progress,
    State,
    Streaming,
    Thinking,
    stages,
)

PROGRESS = Progress(limits=LIMITS)
BATCH = Batch(slots=())


def test_there_are_seven_states_and_no_others() -> None:
    """A turn is always in one of seven states (S4-01, S4-03)."""
    seven = {Thinking, Streaming, Confirming, Executing, Dispatching, Compacting, Done}
    assert set(get_args(State)) == seven


@pytest.mark.parametrize(
    ("state", "inside"),
    [
        (Thinking(progress=PROGRESS), ("compose_request", "send_request")),
        (Streaming(progress=PROGRESS), ("stream_response",)),
        (Confirming(progress=PROGRESS, batch=BATCH), ("tool_call",)),
        (Executing(progress=PROGRESS, batch=BATCH), ("tool_call",)),
        (Dispatching(progress=PROGRESS, batch=BATCH, action=action("a")), ("tool_call",)),
        (Compacting(progress=PROGRESS, cause="heavy"), ("compose_request",)),
        (Done(reason="model_stop", usage=Usage()), ("render",)),
    ],
)
def test_each_stage_lies_in_a_state(state: State, inside: tuple[str, ...]) -> None:
    """The six stages keep their order inside the states (S0-01)."""
    assert stages(state) == inside


@pytest.mark.parametrize("kind", get_args(Calling))
def test_a_state_carries_its_own_data_only(kind: type[State]) -> None:
    """Outside a batch no state holds calls; inside one it holds nothing of the stream (S4-14, S4-15)."""
    assert "batch" in kind.__struct_fields__
    assert "shown" not in kind.__struct_fields__
    assert "batch" not in Thinking.__struct_fields__
    assert "batch" not in Streaming.__struct_fields__
    assert "progress" not in Done.__struct_fields__
