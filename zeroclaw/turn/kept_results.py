"""The whole output of a call whose result was cut: kept as a blob, found by conversation and id.

A row stands between the two, written in the commit of the result: without it a blob could be read
by whoever knows its digest, from any conversation.
"""

from datetime import datetime

from zeroclaw.envelope import ConversationId, TurnId
from zeroclaw.store import Put, PutBlob, RowKind, Store
from zeroclaw.table import Age, Ages, Column, Table, Whose, Words, json_codec
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
    # Its blob may go before: then whoever reads the result's id in the journal is told so.
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

    async def has(self, conversation: ConversationId, name: str) -> bool:
        """Tell whether a result of this conversation is called so, its text kept or gone."""
        return await self._store.get(RowKind.RESULT, _key(conversation, name)) is not None

    async def text(self, conversation: ConversationId, name: str) -> str | None:
        """Return the whole output, None when this conversation has none of that id any more."""
        kept = await RESULTS.get(self._store, _key(conversation, name))
        body = None if kept is None else await self._store.blob(kept.digest)
        return None if body is None else body.decode()

    async def is_trusted(self, conversation: ConversationId, name: str) -> bool:
        """Tell whether it was known to hold no untrusted text when it was kept."""
        kept = await RESULTS.get(self._store, _key(conversation, name))
        return kept is not None and kept.trusted


def _key(conversation: ConversationId, name: str) -> str:
    return f"{conversation}/{name}"
