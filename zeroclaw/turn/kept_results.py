"""What a call returned, to be read again: found by conversation and id.

The whole output of one whose result was cut is kept as a blob. A row stands between the two, written
in the commit of the result: without it a blob could be read by a model that knows its digest, from any
conversation. A result that was not cut stands in the conversation's journal, and its id is its
receipt: a request may hold no more of it than a line.
"""

from datetime import datetime

from zeroclaw.envelope import ConversationId, TurnId
from zeroclaw.gate.receipt import PREFIX_PLAIN, detach
from zeroclaw.store import LogKind, Put, PutBlob, RowKind, Store, read_all
from zeroclaw.table import Age, Ages, Column, Table, Whose, Words, json_codec
from zeroclaw.tools.results import WholeResult
from zeroclaw.turn import entries
from zeroclaw.turn.entries import CallFinished
from zeroclaw.value import Value

ID_CHARS = 16
"""Of the digest; what the model reads and gives back."""


class KeptResult(Value):
    """The row of a kept output.

    Attributes:
        digest: Of the blob.
        at: When the call ended.
        turn: Whose call it was, of equal outputs the newest; None where that was not noted.
        trusted: It holds no untrusted text.
    """

    digest: str
    at: datetime
    turn: TurnId | None = None
    trusted: bool = False


RESULTS = Table(
    kind=RowKind.RESULT,
    owner="turn",
    codec=json_codec(KeptResult),
    columns=frozenset({Column.CONVERSATION}),
    # Its blob may go before: then a reader of the result's id in the journal is told so.
    keeps=Ages(age=Age.MESSAGES, at=lambda row: RESULTS.of(row).at),
    words=Words.WRITER,
    whose=lambda row: Whose(turn=RESULTS.of(row).turn or ""),
    blobs=lambda row: (RESULTS.of(row).digest,),
)


def id_of(blob: PutBlob) -> str:
    """Return what a kept output is called in its conversation."""
    return blob.digest[:ID_CHARS]


def kept_put(
    conversation: ConversationId,
    blob: PutBlob,
    at: datetime,
    turn: TurnId | None = None,
    *,
    trusted: bool = False,
) -> Put:
    """Return the write that lets a conversation read a blob."""
    return RESULTS.put(
        _key(conversation, id_of(blob)),
        KeptResult(digest=blob.digest, at=at, turn=turn, trusted=trusted),
        conversation=conversation,
    )


class KeptResults:
    """Reads kept outputs; what a `ResultsStore` promises."""

    def __init__(self, store: Store) -> None:
        """Read them there."""
        self._store = store

    async def find(self, conversation: ConversationId, name: str) -> WholeResult | None:
        """Return a result by the id of its output, else by its receipt."""
        kept = await RESULTS.get(self._store, _key(conversation, name))
        if kept is not None:
            body = await self._store.blob(kept.digest)
            return WholeResult(text=None if body is None else body.decode(), trusted=kept.trusted)
        if not name.startswith(PREFIX_PLAIN):
            return None
        wanted = name.encode(errors="replace")
        async for one in read_all(self._store, LogKind.JOURNAL, conversation):
            if wanted in one.body:
                entry = entries.decode(one.body)
                if isinstance(entry, CallFinished) and entry.receipt == name:
                    text, _ = detach(entry.result.content)
                    return WholeResult(text=text, trusted=not entry.untrusted)
        return None


def _key(conversation: ConversationId, name: str) -> str:
    return f"{conversation}/{name}"
