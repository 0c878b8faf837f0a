"""A whole output is read by the conversation whose call it was of, and by no other."""

import hashlib

import pytest

from tests.fakes.manual_clock import EPOCH
from tests.fakes.memory_store import MemoryStore
from zeroclaw.envelope import ActionId, ConversationId
from zeroclaw.message import ToolMessage
from zeroclaw.store import Append, Commit, DurablePoint, LogKind, PutBlob
from zeroclaw.tools.results import WholeResult
from zeroclaw.turn.entries import CallFinished, Noted, encode
from zeroclaw.turn.kept_results import KeptResults, id_of, kept_put

OURS, THEIRS = ConversationId("01OURS"), ConversationId("01THEIRS")
BLOB = PutBlob(digest=hashlib.sha256(b"all of it").hexdigest(), body=b"all of it")


async def kept(*, blob: bool = True) -> KeptResults:
    """A store in which our conversation has a result."""
    store = MemoryStore()
    writes = (*((BLOB,) if blob else ()), kept_put(OURS, BLOB, EPOCH))
    fence = await store.lease(OURS)
    await store.commit(
        Commit(point=DurablePoint.CALL_FINISHED, writes=writes, conversation=OURS, fence=fence)
    )
    return KeptResults(store)


async def test_the_conversation_of_a_call_reads_its_whole_output() -> None:
    results = await kept()
    assert await results.find(OURS, id_of(BLOB)) == WholeResult(text="all of it", trusted=False)


@pytest.mark.parametrize(
    "name", [id_of(BLOB), BLOB.digest, f"../{OURS}/{id_of(BLOB)}", f"{OURS}/{id_of(BLOB)}", ""]
)
async def test_no_other_conversation_reads_it_or_learns_that_it_exists(name: str) -> None:
    """Who knows an id, or the digest of a blob, knows nothing more by it."""
    results = await kept()
    assert await results.find(THEIRS, name) is None


async def test_a_blob_that_is_gone_is_told_from_one_that_never_was() -> None:
    results = await kept(blob=False)
    assert await results.find(OURS, id_of(BLOB)) == WholeResult(text=None, trusted=False)
    assert await results.find(OURS, "other") is None


async def test_a_result_that_was_not_cut_is_read_again_by_its_receipt() -> None:
    """Out of the journal, of this conversation alone; the receipt is no part of the text."""
    store = MemoryStore()
    token = "zc-receipt-1700000000-" + "A" * 43
    told = f"`peek` returned:\nthe sky\n[receipt: {token}]"
    ended = CallFinished(
        action=ActionId("a"),
        result=ToolMessage(content=told, tool_call_id="call_0", tool_name="peek"),
        outcome="ok",
        at=EPOCH,
        receipt=token,
    )
    # A text that only speaks of the receipt is none of its results.
    about = Noted(text=f"what is {token}?", why="edit", at=EPOCH)
    fence = await store.lease(OURS)
    journal = tuple(
        Append(log=LogKind.JOURNAL, stream=OURS, body=encode(entry)) for entry in (about, ended)
    )
    await store.commit(
        Commit(point=DurablePoint.CALL_FINISHED, writes=journal, conversation=OURS, fence=fence)
    )
    results = KeptResults(store)
    whole = WholeResult(text="`peek` returned:\nthe sky", trusted=True)
    assert await results.find(OURS, token) == whole
    assert await results.find(THEIRS, token) is None
    assert await results.find(OURS, token.replace("A", "B")) is None
