"""Which fault the next call runs into: the plans of a test, in the order it made them."""

from collections.abc import Callable
from dataclasses import dataclass

from zeroclaw_test_platform.desk import Call
from zeroclaw_test_platform.faults import Fault
from zeroclaw_test_platform.wire import Op


@dataclass(eq=False, kw_only=True)
class Planned:
    """One plan: which calls it is for, and how many of them it has left, None for ever."""

    op: Op
    fault: Fault | None
    chat: str
    when: Callable[[Call], bool]
    left: int | None


def fault_of(call: Call, plans: list[Planned]) -> Fault | None:
    """Return what the first plan for a call says; a plan that is used up leaves the list."""
    for place, planned in enumerate(plans):
        is_here = planned.chat in ("", call.chat)
        if planned.op == call.op and is_here and planned.when(call):
            if planned.left is not None:
                planned.left -= 1
                if planned.left <= 0:
                    del plans[place]
            return planned.fault
    return None
