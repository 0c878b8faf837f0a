"""Results of calls that a tool can read again, by conversation and id.

If a result was cut, a blob has its whole output, and a row that was written in the commit of the
result links the conversation to the blob: without it, a model that knows a digest could read the
blob from any conversation. A result that was not cut is in the conversation's journal, and its id is
its receipt; a request may contain only a line of it.
"""

import asyncio
from datetime import datetime

from zeroclaw.envelope import ConversationId, TurnId
from zeroclaw.gate.receipt import PREFIX_PLAIN, detach
from zeroclaw.store import LogKind, Put, PutBlob, RowKind, Store, read_all
from zeroclaw.table import Age, Ages, Column, Owner, Table, json_codec
from zeroclaw.tools.results import WholeResult
from zeroclaw.turn import entries
from zeroclaw.turn.entries import CallFinished
from zeroclaw.value import Value

ID_CHARS = 16
"""Characters of the digest that form the id; the model reads it and passes it back."""


class KeptResult(Value):
    """The row of a kept output.

    Attributes:
        digest: The blob's digest.
        at: When the call ended.
        turn: The turn of the call, the newest for equal outputs; None in rows of earlier releases.
        trusted: It contains no untrusted text.
    """

    digest: str
    at: datetime
    turn: TurnId | None = None
    trusted: bool = False


RESULTS = Table(
    kind=RowKind.RESULT,
    codec=json_codec(KeptResult),
    columns=frozenset({Column.CONVERSATION}),
    # Its blob may be deleted earlier; a reader of the result's id is then told so.
    keeps=Ages(age=Age.MESSAGES, at=lambda row: RESULTS.of(row).at),
    owner=lambda row: Owner(turn=RESULTS.of(row).turn or ""),
    blobs=lambda row: (RESULTS.of(row).digest,),
)


def id_of(blob: PutBlob) -> str:
    """Return the id of a kept output in its conversation."""
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


async def find_result(store: Store, conversation: ConversationId, key: str) -> WholeResult | None:
    """Return the result with this id or receipt, None if there is none."""
    row = await RESULTS.get(store, _key(conversation, key))
    if row is not None:
        body = await store.blob(row.digest)
        text = None if body is None else await asyncio.to_thread(body.decode)
        return WholeResult(text=text, trusted=row.trusted)
    if not key.startswith(PREFIX_PLAIN):
        return None
    receipt = key.encode(errors="replace")
    async for logged in read_all(store, LogKind.JOURNAL, conversation):
        if receipt in logged.body:
            entry = entries.decode(logged.body)
            if isinstance(entry, CallFinished) and entry.receipt == key:
                text, _ = detach(entry.result.content)
                return WholeResult(text=text, trusted=not entry.untrusted)
    return None


def _key(conversation: ConversationId, name: str) -> str:
    return f"{conversation}/{name}"
