"""Fences are remembered for as long as they are worth anything."""

from zeroclaw.envelope import ConversationId
from zeroclaw.stores.sqlite.writer import Fences


def test_only_fences_that_somebody_holds_are_remembered() -> None:
    """A process that lives for months has leased more conversations than it has memory for."""
    fences = Fences(epoch=1)
    held = [fences.lease(ConversationId(f"held {number}")) for number in range(3)]
    for number in range(1000):
        fences.lease(ConversationId(f"left {number}"))
    assert len(fences) == len(held)
