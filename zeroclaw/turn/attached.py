"""The row of a file that came with a message, or should have.

It stands between a conversation and a blob, written in the commit of the bytes: without it a blob
could be read by whoever knows its digest, from any conversation.
"""

from datetime import datetime

from zeroclaw.envelope import Attachment, ConversationId, ItemId
from zeroclaw.store import Put, Row, RowKind
from zeroclaw.table import Age, Ages, Column, Table, Whose, Words, json_codec
from zeroclaw.value import Value

_DIGITS = 8


class Attached(Value):
    """What became of a file, once that is known.

    Attributes:
        number: What people and the model call it; counts from 1 in each conversation.
        item: The message that it came with.
        place: Its place among that message's files, from 0.
        principal: Who sent it.
        attachment: As the message told of it; untrusted.
        at: When it was fetched, or given up.
        label: What it is by its bytes, such as `PDF`; empty for one that did not come.
        digest: Of its blob, empty for one that did not come.
        size_bytes: As it came.
        failed: Why it did not come, empty for one that did.
    """

    number: int
    item: ItemId
    place: int
    principal: str
    attachment: Attachment
    at: datetime
    label: str = ""
    digest: str = ""
    size_bytes: int = 0
    failed: str = ""


ATTACHMENTS = Table(
    kind=RowKind.ATTACHMENT,
    owner="turn",
    codec=json_codec(Attached),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.PLACE}),
    keeps=Ages(age=Age.MESSAGES, at=lambda row: attached_of(row).at),
    words=Words.WRITER,
    whose=lambda row: Whose(person=attached_of(row).principal),
    blobs=lambda row: (attached_of(row).digest,) if row.state == "kept" else (),
)


def attached_put(conversation: ConversationId, attached: Attached) -> Put:
    """Return the write that records what became of a file, once."""
    return ATTACHMENTS.put(
        attached_key(conversation, attached.number),
        attached,
        conversation=conversation,
        state="failed" if attached.failed else "kept",
        place=attached.item,
        expect=0,
    )


def attached_of(row: Row) -> Attached:
    """Read a file's row."""
    return ATTACHMENTS.of(row)


def attached_key(conversation: ConversationId, number: int) -> str:
    """Return the key of a file's row; keys of a conversation sort as numbers do."""
    return f"{conversation}/{number:0{_DIGITS}d}"
