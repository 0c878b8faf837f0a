"""Grants: an approval that holds for a time, for one conversation, tool and set of resources.

A grant turns an ASK of the policy into an ALLOW, and nothing else; a deny stands above it. A call
that can execute things is bound to its exact arguments, because its resources are the same
whatever it runs.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from zeroclaw import record
from zeroclaw.envelope import ConversationId
from zeroclaw.gate.action import Action
from zeroclaw.gate.conditions import ToolFacts
from zeroclaw.store import Delete, Put, RowKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What was granted.

    Attributes:
        id: A ulid; people revoke by it.
        conversation: Where it holds.
        tool: What it is for.
        resources: All that a covered call may touch, sorted.
        arguments_hash: SHA-256 in hex of the canonical arguments; None where resources suffice.
        granted_by: Who, for people.
        until: When it ends.
        holder: Whose call was approved, as `Principal.id`.
        granter: Who approved it, as `Principal.id`.
    """

    id: str
    conversation: ConversationId
    tool: str
    resources: tuple[str, ...]
    arguments_hash: str | None
    granted_by: str
    until: datetime
    holder: str = ""
    granter: str = ""


def grant_for(
    action: Action,
    facts: ToolFacts,
    *,
    id: str,  # noqa: A002  the field's own name
    granted_by: str,
    until: datetime,
    granter: str = "",
) -> Grant | None:
    """Return the grant that covers this action again, None when its resources are unknown."""
    if action.resources is None:
        return None
    return Grant(
        id=id,
        conversation=action.conversation,
        tool=action.tool,
        resources=action.resources,
        arguments_hash=_hash(action) if "exec" in facts.effects else None,
        granted_by=granted_by,
        until=until,
        holder=action.principal.id,
        granter=granter,
    )


def covers(grant: Grant, action: Action, facts: ToolFacts, now: datetime) -> bool:
    """Whether the grant lets this call run without asking; `now` at or past its end is too late.

    A grant for resources never covers a call without them, and one without never a call with.
    """
    if action.resources is None or now >= grant.until:
        return False
    if (grant.conversation, grant.tool) != (action.conversation, action.tool):
        return False
    if not set(action.resources) <= set(grant.resources):
        return False
    if bool(action.resources) != bool(grant.resources):
        return False
    bound = grant.arguments_hash
    return bound == _hash(action) if bound or "exec" in facts.effects else True


def _hash(action: Action) -> str:
    return hashlib.sha256(action.canonical_arguments.encode()).hexdigest()


def describe(grant: Grant) -> str:
    """Return one line for people."""
    what = ", ".join(f"`{resource}`" for resource in grant.resources) or "nothing that has a name"
    exact = ", these arguments only" if grant.arguments_hash else ""
    until = f"{grant.until.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"`{grant.tool}` on {what}{exact}, until {until}, by {grant.granted_by}"


def encode(grant: Grant) -> bytes:
    """Return the row's body."""
    return record.encode(grant)


def decode(body: bytes) -> Grant:
    """Return what `encode` wrote.

    Raises:
        StoreUnusable: It is no such row.
    """
    return record.decode(Grant, body)


def to_put(grant: Grant) -> Put:
    """Return the write that records a new grant; its row is due when the grant ends."""
    return Put(
        kind=RowKind.GRANT,
        key=grant.id,
        body=encode(grant),
        conversation=grant.conversation,
        state="open",
        due_at=grant.until,
        expect=0,
    )


def to_delete(grant: Grant) -> Delete:
    """Return the write that revokes a grant, or clears one that has ended."""
    return Delete(kind=RowKind.GRANT, key=grant.id)
