"""Every table that there is: what retention, export and erasure walk.

A kind of row that no table declares would be neither kept nor erased by any rule; a test holds this
list against `RowKind`.
"""

from collections.abc import Mapping

from zeroclaw.context.notes import NOTES
from zeroclaw.conversation.attachments import ATTACHMENTS
from zeroclaw.conversation.inbox import INBOX
from zeroclaw.conversation.numbers import COUNTERS
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.delivery.rows import NOTICES, OUTBOX
from zeroclaw.gate.action import ACTIONS
from zeroclaw.gate.approval import APPROVALS
from zeroclaw.gate.grant import GRANTS
from zeroclaw.inbound.commands.forget import WISHES
from zeroclaw.inbound.commands.halt import HALTS
from zeroclaw.inbound.conversations import CONVERSATIONS, POINTERS
from zeroclaw.inbound.identity import LANGUAGE_CHOICES, PEOPLE
from zeroclaw.inbound.ingress import POSITIONS
from zeroclaw.inbound.limiter import ALLOWANCES
from zeroclaw.inbound.pairing import STRANGERS
from zeroclaw.limits.budget import MARKS
from zeroclaw.store import RowKind
from zeroclaw.table import Column, Declaration, Words
from zeroclaw.turn.kept_results import RESULTS
from zeroclaw.turn.titles import TITLES
from zeroclaw.turn.tool_calls import PROCESSES, WORKSPACES

TABLES: Mapping[RowKind, Declaration] = {
    table.kind: table
    for table in (
        CONVERSATIONS,
        POINTERS,
        INBOX,
        TURNS,
        OUTBOX,
        ACTIONS,
        APPROVALS,
        GRANTS,
        PEOPLE,
        STRANGERS,
        POSITIONS,
        COUNTERS,
        ALLOWANCES,
        MARKS,
        HALTS,
        PROCESSES,
        NOTES,
        RESULTS,
        ATTACHMENTS,
        WISHES,
        LANGUAGE_CHOICES,
        WORKSPACES,
        TITLES,
        NOTICES,
    )
}
OF_CONVERSATIONS = tuple(table for table in TABLES.values() if Column.CONVERSATION in table.columns)
"""What goes when a whole conversation is erased."""
OF_WRITERS = tuple(
    (table, table.whose)
    for table in TABLES.values()
    if table.words is Words.WRITER and table.whose is not None
)
"""What goes of a shared conversation when one of its people is erased, and what tells whose it is."""
OF_PERSONS = tuple((table, table.own) for table in TABLES.values() if table.own is not None)
"""What is one person's alone and goes with them, and what tells whose it is."""
WITH_BLOBS = tuple((table, table.blobs) for table in TABLES.values() if table.blobs is not None)
"""What leads to blobs, and to which."""
BUSY = tuple((table, state) for table in TABLES.values() for state in sorted(table.busy))
"""The rows that say that something is under way in a conversation, which is then left alone."""
