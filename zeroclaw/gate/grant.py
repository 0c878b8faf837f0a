"""Grants: an approval that holds for a time, for one conversation, tool and set of resources.

A grant turns an ASK of the policy into an ALLOW, and nothing else; a deny stands above it. A call
that can execute things is bound to its exact arguments, because its resources are the same
whatever it runs.
"""

import hashlib
from datetime import UTC, datetime

from zeroclaw import record, sentences
from zeroclaw.envelope import ConversationId
from zeroclaw.gate.action import Action
from zeroclaw.gate.approval import Numbered
from zeroclaw.gate.conditions import ToolFacts
from zeroclaw.language import Language
from zeroclaw.store import Delete, Put, RowKind
from zeroclaw.value import Value

SHORT = 8
"""Characters at the end of an id that people name a grant by: 40 bits of chance."""
MOST_NAMED = 5
"""Resources that a line names; the others are counted."""


class Grant(Value):
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
        numbers: What its call was called in the chats that were asked; the grant is called so too.
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
    numbers: tuple[Numbered, ...] = ()


def grant_for(
    action: Action,
    facts: ToolFacts,
    *,
    id: str,  # noqa: A002  the field's own name
    granted_by: str,
    until: datetime,
    granter: str = "",
    numbers: tuple[Numbered, ...] = (),
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
        numbers=numbers,
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


def describe(grant: Grant, language: Language) -> str:
    """Return one line for people."""
    named = [_quoted(resource) for resource in grant.resources[:MOST_NAMED]]
    if more := grant.resources[MOST_NAMED:]:
        named.append(sentences.GRANT_AND_MORE.to(language, number=len(more)))
    bound = grant.arguments_hash
    return sentences.GRANT_LINE.to(
        language,
        tool=grant.tool,
        what=", ".join(named) or sentences.GRANT_WITHOUT_NAMES,
        exact=sentences.GRANT_EXACT.about(hash=bound[:8]) if bound else "",
        until=f"{grant.until.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        who=grant.granted_by,
    )


def _quoted(resource: str) -> str:
    """Return a resource as code: a file may be called anything."""
    spelled = " ".join(resource.split()).replace("`", "'")
    return f"`{spelled}`"


def name_in(grant: Grant, place: str) -> str:
    """Return what a grant is called in one chat: its call's number there, else its short id.

    Neither is ever given again.
    """
    numbers = (str(given.number) for given in grant.numbers if given.place == place)
    return next(numbers, grant.id[-SHORT:])


def is_called(grant: Grant, word: str, place: str) -> bool:
    """Whether a person means this grant: by its name in the chat, its short id or its whole id."""
    return word.upper() in (name_in(grant, place), grant.id[-SHORT:], grant.id)


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
