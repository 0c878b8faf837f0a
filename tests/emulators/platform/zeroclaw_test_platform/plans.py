"""The faults that a test has planned, in order."""

from collections.abc import Callable
from dataclasses import dataclass

from zeroclaw_test_platform.backend import Call
from zeroclaw_test_platform.faults import Fault
from zeroclaw_test_platform.wire import Op


@dataclass(eq=False, kw_only=True)
class Planned:
    """A planned fault: the calls that it is for, and how many of them are left; None for no limit."""

    op: Op
    fault: Fault | None
    chat: str
    when: Callable[[Call], bool]
    remaining: int | None


def fault_of(call: Call, plans: list[Planned]) -> Fault | None:
    """Return the fault of the first plan for a call; a plan that is used up is removed."""
    for index, planned in enumerate(plans):
        is_its_chat = planned.chat in ("", call.chat)
        if planned.op == call.op and is_its_chat and planned.when(call):
            if planned.remaining is not None:
                planned.remaining -= 1
                if planned.remaining <= 0:
                    del plans[index]
            return planned.fault
    return None
