"""Grants: an approval that lasts for a time, for one conversation, tool and set of resources.

A grant only turns an ASK of the policy into an ALLOW; a deny overrides it. A grant for
a call that can execute things is bound to its exact arguments, because its resources do not depend
on the command; see `scope`.
"""

import hashlib
from datetime import UTC, datetime, timedelta

from zeroclaw.card_words import by_whom
from zeroclaw.envelope import ConversationId, Principal, is_off_the_record
from zeroclaw.gate.action import Action
from zeroclaw.gate.approval import Numbered
from zeroclaw.gate.conditions import ToolFacts
from zeroclaw.gate.scope import Scope, in_words, must_be_exact
from zeroclaw.store import Put, RowKind
from zeroclaw.table import Column, Owner, Table, UntilDue, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.tool import Effect
from zeroclaw.value import Value

SHORT = 8
"""Characters at the end of an id that also name a grant; they have 40 random bits."""


class Grant(Value):
    """An approval for a time.

    Attributes:
        id: A ulid; people revoke by it.
        conversation: The conversation it applies to.
        tool: The tool's name.
        resources: The resources that a covered call may touch, sorted.
        arguments_hash: SHA-256 in hex of the canonical arguments; None where resources suffice.
        granted_by: The granter's label, for people.
        until: Its end.
        holder: The person whose call was approved, as `Principal.id`.
        granter: The person who approved it, as `Principal.id`.
        granter_sender: The same as `<channel>:<sender id>`, independent of the configuration.
        effects: The effects that the tool declared then; empty in rows of an earlier release.
        number: Its name in every chat and on the command line; 0 in rows of an earlier release,
            which go by their short id.
        numbers: Only in rows of an earlier release.
        workspace: As in `Scope`.
        since: The time of the grant; None in rows of an earlier release.
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
    granter_sender: str = ""
    effects: frozenset[Effect] = frozenset()
    number: int = 0
    numbers: tuple[Numbered, ...] = ()
    workspace: str = ""
    since: datetime | None = None


def grant_for(
    action: Action,
    scope: Scope,
    *,
    id: str,  # noqa: A002  the field's own name
    number: int,
    granter: Principal,
    at: datetime,
) -> Grant:
    """Return the grant that covers calls like this action, with the scope that its card showed."""
    return Grant(
        id=id,
        conversation=action.conversation,
        tool=scope.tool,
        resources=scope.resources,
        arguments_hash=_hash(action) if scope.is_exact else None,
        granted_by=granter.label,
        until=at + timedelta(seconds=scope.for_s),
        holder=action.principal.id,
        granter=granter.id,
        granter_sender=granter.identity,
        effects=scope.effects,
        number=number,
        workspace=scope.workspace,
        since=at,
    )


def covers(grant: Grant, action: Action, facts: ToolFacts, now: datetime) -> bool:
    """Whether the grant lets this call run without asking; not at or after its end.

    Nor before its start: after the clock was set back, it would outlast the time on its card.

    A grant for resources never covers a call without any, and a grant without never a call with
    some.
    """
    if action.resources is None or not (grant.since or now) <= now < grant.until:
        return False
    if (grant.conversation, grant.tool) != (action.conversation, action.tool):
        return False
    if not set(action.resources) <= set(grant.resources):
        return False
    if bool(action.resources) != bool(grant.resources):
        return False
    bound = grant.arguments_hash
    return bound == _hash(action) if bound or must_be_exact(action.resources, facts) else True


def _hash(action: Action) -> str:
    return hashlib.sha256(action.canonical_arguments.encode()).hexdigest()


def describe(grant: Grant, language: Language) -> str:
    """Return one line for people; off the record only the tool, because lists are on the record."""
    if is_off_the_record(grant.conversation):
        return f"`{grant.tool}`"
    bound = grant.arguments_hash
    scope = Scope(
        tool=grant.tool,
        resources=grant.resources,
        is_exact=bool(bound),
        effects=grant.effects,
        workspace=grant.workspace,
    )
    return catalogue.GRANT_LINE.to(
        language,
        tool=grant.tool,
        scope=in_words(scope, language),
        hash=f" (`{bound[:8]}`)" if bound else "",
        until=f"{grant.until.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        who=by_whom(grant.granted_by),
    )


def name_of(grant: Grant) -> str:
    """Return the name that people use for a grant, the same everywhere and never reused."""
    return str(grant.number) if grant.number else grant.id[-SHORT:]


def is_called(grant: Grant, word: str) -> bool:
    """Whether a word means this grant: by its name, its short id or its whole id."""
    return word.upper() in (name_of(grant), grant.id[-SHORT:], grant.id)


GRANTS = Table(
    kind=RowKind.GRANT,
    codec=json_codec(Grant),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.DUE_AT}),
    keeps=UntilDue(),
    owner=lambda row: Owner(person=GRANTS.of(row).holder),
)


def to_put(grant: Grant) -> Put:
    """Return the write that records a new grant; its row is due when the grant ends."""
    return GRANTS.put(
        grant.id, grant, conversation=grant.conversation, state="open", due_at=grant.until
    )
