"""All tables, for retention, export and erasure.

Retention and erasure would miss a kind of row without a table here; a test compares this list with
`RowKind`.
"""

from collections.abc import Mapping

from zeroclaw.context.notes import NOTES
from zeroclaw.conversation.attachments import ATTACHMENTS
from zeroclaw.conversation.inbox import INBOX
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.delivery.rows import NOTICES, OUTBOX
from zeroclaw.gate.action import ACTIONS
from zeroclaw.gate.approval import APPROVALS
from zeroclaw.gate.grant import GRANTS
from zeroclaw.inbound.approvals import COUNTERS
from zeroclaw.inbound.commands.forget import ERASURE_REQUESTS
from zeroclaw.inbound.conversations import CONVERSATIONS, POINTERS
from zeroclaw.inbound.identity import LANGUAGE_CHOICES, PEOPLE
from zeroclaw.inbound.ingress import POSITIONS
from zeroclaw.inbound.limiter import ALLOWANCES
from zeroclaw.inbound.live_config import HALTS
from zeroclaw.inbound.pairing import PAIRINGS
from zeroclaw.limits.budget import MARKS
from zeroclaw.store import RowKind
from zeroclaw.table import Column, Declaration
from zeroclaw.turn.kept_results import RESULTS
from zeroclaw.turn.titles import TITLES
from zeroclaw.turn.tool_calls import PROCESSES, WORKSPACES

TABLES: Mapping[RowKind, Declaration] = {
    table.kind: table
    for table in (
        CONVERSATIONS, POINTERS, INBOX, TURNS, OUTBOX, ACTIONS, APPROVALS, GRANTS, PEOPLE,
        PAIRINGS, POSITIONS, COUNTERS, ALLOWANCES, MARKS, HALTS, PROCESSES, NOTES, RESULTS,
        ATTACHMENTS, ERASURE_REQUESTS, LANGUAGE_CHOICES, WORKSPACES, TITLES, NOTICES,
    )
}  # fmt: skip
OF_CONVERSATIONS = tuple(table for table in TABLES.values() if Column.CONVERSATION in table.columns)
"""Tables to erase with a whole conversation."""
OF_WRITERS = tuple((table, table.owner) for table in TABLES.values() if table.owner is not None)
"""Tables with rows to erase for one person in a shared conversation, and each row's owner."""
OF_PERSONS = tuple((table, table.person) for table in TABLES.values() if table.person is not None)
"""Tables with rows that belong to one person alone, and each row's owner."""
WITH_BLOBS = tuple((table, table.blobs) for table in TABLES.values() if table.blobs is not None)
"""Tables whose rows refer to blobs, and each row's blobs."""
BUSY = tuple((table, state) for table in TABLES.values() for state in sorted(table.busy))
"""Rows that mark a conversation as busy; retention then leaves it alone."""
