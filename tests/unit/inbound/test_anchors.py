"""What is remembered of chains that were noted."""

from tests.fakes.manual_clock import EPOCH, ManualClock
from tests.fakes.memory_store import MemoryStore
from zeroclaw.gate import audit
from zeroclaw.inbound.anchors import Anchors
from zeroclaw.store import Append, Commit, DurablePoint, LogKind, Trim

HERE, THERE = "01HERE", "01THERE"


async def test_a_chain_that_is_gone_is_forgotten() -> None:
    """Retention takes away chains by their age; what is remembered goes with them."""
    store = MemoryStore()
    anchors = Anchors(store, ManualClock())
    body, _ = audit.link(audit.GENESIS, audit.Entry(kind=audit.Kind.HALTED, at=EPOCH))
    both = [Append(log=LogKind.AUDIT, stream=stream, body=body) for stream in (HERE, THERE)]
    await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=tuple(both)))
    await anchors.anchor()
    assert len(anchors) == 2
    gone = Trim(log=LogKind.AUDIT, stream=HERE, before=2)
    await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(gone,)))
    await anchors.anchor()
    assert len(anchors) == 1
