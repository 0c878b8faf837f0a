"""One thing that happened to a running turn, and what has to be durable before it counts.

Tasks of a turn decide nothing and write nothing: they hand such values to the turn, which commits
them one at a time, steps its machine, and performs what follows. So the journal holds exactly what
the machine saw, in the order it saw it.
"""

from zeroclaw.gate import audit
from zeroclaw.store import DurablePoint, Write
from zeroclaw.turn.entries import Entry
from zeroclaw.turn.signals import Event
from zeroclaw.value import Value


class Happened(Value):
    """An event, and the commit that goes before it.

    Attributes:
        event: For the machine; None when there is something to write and nothing to decide.
        point: What the commit makes durable; None for nothing to write.
        journal: Entries of the journal.
        audited: Entries of the audit.
        writes: Everything else.
        optional: A `Conflict` drops it, because somebody else was first and says so too.
        otherwise: What happened instead when a `Conflict` takes the writes' ground; None: a
            fault, unless it is optional.
    """

    event: Event | None = None
    point: DurablePoint | None = None
    journal: tuple[Entry, ...] = ()
    audited: tuple[audit.Entry, ...] = ()
    writes: tuple[Write, ...] = ()
    optional: bool = False
    otherwise: "Happened | None" = None
