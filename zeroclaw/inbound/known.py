"""People who were let in, or put out, while the daemon ran: their rows.

    (nobody) ──▶ admitted ◀──▶ revoked

The configuration says who people are; these rows say what operators decided since. Being put out
beats whatever the configuration says.
"""

from datetime import datetime
from typing import Literal

from zeroclaw.codec import decode, encode
from zeroclaw.store import Delete, Put, Row, RowKind
from zeroclaw.value import Value


class Known(Value):
    """One person, and what was decided about them.

    Attributes:
        id: As `Principal.id`; also the row's key.
        display: The name people see.
        state: `admitted` is always about one sender of one channel, `<channel>:<sender id>`;
            `revoked` may be about a person of the configuration with all their ids.
        by: Who decided, for people.
        at: When.
        roles: What they may be called in the policy, `operator` for the first one.
        ids: The ids that were theirs when somebody of the configuration was put out: they stay out,
            whatever name it gives them later, or none.
    """

    id: str
    display: str
    state: Literal["admitted", "revoked"]
    by: str
    at: datetime
    roles: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()


def known_put(known: Known, *, expect: int) -> Put:
    """Return the write that records a decision, if the row is still at this version."""
    return Put(
        kind=RowKind.PERSON,
        key=known.id,
        body=encode(known),
        state=known.state,
        expect=expect,
    )


def known_delete(id: str) -> Delete:  # noqa: A002  the field's own name
    """Return the write that leaves a person to the configuration again."""
    return Delete(kind=RowKind.PERSON, key=id)


def known_of(row: Row | Put) -> Known:
    """Read a person's row, or what is written there."""
    return decode(Known, row.body)
