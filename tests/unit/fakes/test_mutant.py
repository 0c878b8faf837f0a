"""A fault is planted only where the product comes by."""

from types import ModuleType

import pytest

from tests.fakes import mutant as room
from tests.fakes.mutant import mutant, reached

LEFT_BEHIND = """
LIMIT = _limit()
def step(at): return _wait(at)
def _wait(at): return at + LIMIT
def _limit(): return 1
def _old(at): return _older(at)
def _older(at): return _old(at)
"""


def test_a_function_that_only_its_own_kind_calls_is_not_reached() -> None:
    """From what others call, and from what is loaded, down to what that calls."""
    assert reached(LEFT_BEHIND, {"step", "_old"}) == {"step", "_wait", "_limit"}
    assert reached(LEFT_BEHIND, set()) == {"_limit"}


def test_a_fault_in_what_nothing_calls_is_not_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for it would never end."""
    module = ModuleType("zeroclaw.left_behind")

    def source_of(_module: ModuleType) -> str:
        return LEFT_BEHIND

    monkeypatch.setattr(room.inspect, "getsource", source_of)
    with pytest.raises(AssertionError, match="nothing calls _old"):
        mutant(module, "return _older(at)", "return at")
    with pytest.raises(AssertionError, match="in no function"):
        mutant(module, "LIMIT = _limit()", "LIMIT = 2")
