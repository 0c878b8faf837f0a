"""The audit: what was proposed, decided and done, in one hash chain per conversation (S3-29).

Each entry holds the hash of the one before it and its own, which is the SHA-256 over both, so that
a changed, removed or moved entry breaks every hash after it. The newest entries are held by
anchors: a chain of the daemon's own notes the heads of the conversations from time to time, and a
chain that is shorter than its anchor was cut.

    PROPOSED ─▶ EVALUATED ─▶ EXECUTED | FAILED | DENIED | CANCELLED | UNKNOWN

is the way of every action, each step once. `ANSWERED` stands anywhere after `EVALUATED`: an answer
is audited when the holder of the conversation comes to it, which may be after a stop.

Entries hold ids, kinds, decisions and times; no arguments, no results, no words of people.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from zeroclaw import record
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate.action import canonical_json

GENESIS = "0" * 64
"""The head of a chain that holds nothing yet."""


class Kind(StrEnum):
    """What happened."""

    PROPOSED = "proposed"
    EVALUATED = "evaluated"
    ANSWERED = "answered"
    EXECUTED = "executed"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    GRANTED = "granted"
    REVOKED = "revoked"
    HALTED = "halted"
    RESUMED = "resumed"


FINAL = frozenset({Kind.EXECUTED, Kind.FAILED, Kind.DENIED, Kind.CANCELLED, Kind.UNKNOWN})
_OF_AN_ACTION = FINAL | {Kind.PROPOSED, Kind.EVALUATED, Kind.ANSWERED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that happened.

    Attributes:
        kind: What.
        at: When, aware.
        action: The action's id; empty for what concerns none.
        tool: As the model wrote it; may be no tool of ours.
        hash: The action's hash; empty for a malformed call, which was never frozen.
        by: The principal's id, or `policy`, `protection`, `deadline` and the like.
        decision: `allow`, `ask`, `deny`, or how an approval was answered.
        statements: The ids of the statements that decided.
        approval: The approval's id.
        detail: A word or two about the cause, `timeout` for example; never a body.
    """

    kind: Kind
    at: datetime
    action: str = ""
    tool: str = ""
    hash: str = ""
    by: str = ""
    decision: str = ""
    statements: tuple[str, ...] = ()
    approval: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """Where a conversation's chain stood, as the daemon's chain remembers it.

    Attributes:
        sequence: Of the entry that `head` belongs to; the first has 1.
        head: Its hash.
        at: When it was noted, aware.
    """

    conversation: ConversationId
    sequence: int
    head: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """An entry as it is stored."""

    entry: Entry | Anchor
    previous: str
    hash: str


def link(previous: str, entry: Entry | Anchor) -> tuple[bytes, str]:
    """Return the bytes to append after the entry whose hash is `previous`, and the new head."""
    plain = _spelled(entry)
    head = _hash(previous, plain)
    return _encoded(Linked(entry=plain, previous=previous, hash=head)), head


def head_of(body: bytes) -> str:
    """Return the hash that a stored entry claims.

    Raises:
        StoreUnusable: It is no entry.
    """
    return _decoded(body).hash


def read(body: bytes) -> Entry | Anchor:
    """Return the entry of stored bytes, unverified.

    Raises:
        StoreUnusable: It is no entry.
    """
    return _decoded(body).entry


def _spelled(entry: Entry | Anchor) -> Entry | Anchor:
    """Return an entry that has UTF-8: a model may write half a surrogate pair as a tool's name."""
    if isinstance(entry, Anchor):
        return entry
    return replace(entry, tool=entry.tool.encode(errors="backslashreplace").decode())


def _hash(previous: str, entry: Entry | Anchor) -> str:
    return hashlib.sha256(previous.encode() + _encoded(entry)).hexdigest()


def _encoded(value: Entry | Anchor | Linked) -> bytes:
    return canonical_json(record.to_json(value)).encode()


def _decoded(body: bytes) -> Linked:
    return record.decode(Linked, body)


# --- verifying -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Intact:
    """Nothing was changed, moved or removed, as far as the chain and its anchors can tell.

    Attributes:
        head: The hash of the last entry.
        count: How many entries there are.
        open: The actions that have no end yet, in the order they were proposed.
    """

    head: str
    count: int
    open: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """The first fault; nothing after it can be trusted.

    Attributes:
        at: The sequence number of the entry that is wrong or missing.
        why: One line.
    """

    at: int
    why: str


@dataclass(slots=True)
class _Walk:
    """What has been read of a chain so far; lives within one `verify`."""

    head: str = GENESIS
    count: int = 0
    steps: dict[str, Kind] = field(default_factory=dict[str, Kind])


def verify(bodies: Iterable[bytes], anchors: Iterable[Anchor] = ()) -> Intact | Broken:
    """Check a whole chain, from its first entry.

    Args:
        bodies: In order of sequence.
        anchors: Those of this chain, in any order. Without one, entries missing at the end and a
            chain written anew can't be told.
    """
    known: dict[int, list[str]] = {}
    for anchor in anchors:
        known.setdefault(anchor.sequence, []).append(anchor.head)
    walk = _Walk()
    for body in bodies:
        fault = _fault(walk, body)
        if not fault and any(head != walk.head for head in known.pop(walk.count, [])):
            fault = "it is not the entry that was anchored"
        if fault:
            return Broken(at=walk.count, why=fault)
    if known:
        why = f"it is missing: an anchor knows {max(known)} entries"
        return Broken(at=walk.count + 1, why=why)
    unfinished = (action for action, kind in walk.steps.items() if kind not in FINAL)
    return Intact(head=walk.head, count=walk.count, open=tuple(unfinished))


def _fault(walk: _Walk, body: bytes) -> str:
    """Take one more entry; return what is wrong with it, empty for nothing."""
    walk.count += 1
    try:
        linked = _decoded(body)
    except StoreUnusable as error:
        return str(error)
    if _encoded(linked) != body:
        return "it is not written as this code writes entries"
    if linked.previous != walk.head:
        return "it does not follow the entry before it"
    if linked.hash != _hash(linked.previous, linked.entry):
        return "it is not what its hash says"
    walk.head = linked.hash
    return "" if isinstance(linked.entry, Anchor) else _out_of_order(walk, linked.entry)


def _out_of_order(walk: _Walk, entry: Entry) -> str:
    if entry.kind not in _OF_AN_ACTION:
        return ""
    last = walk.steps.get(entry.action)
    if entry.kind is Kind.ANSWERED:
        return "" if last not in (None, Kind.PROPOSED) else "an answer before the question"
    walk.steps[entry.action] = entry.kind
    if entry.kind is Kind.PROPOSED:
        expected = last is None
    elif entry.kind is Kind.EVALUATED:
        expected = last is Kind.PROPOSED
    else:
        expected = last is Kind.EVALUATED
    before = "nothing" if last is None else f"`{last}`"
    return "" if expected else f"`{entry.kind}` after {before}"


def anchors_of(bodies: Iterable[bytes], conversation: ConversationId) -> tuple[Anchor, ...]:
    """Return what a daemon's chain remembers of a conversation.

    Raises:
        StoreUnusable: One of the bodies is no entry.
    """
    found = (read(body) for body in bodies)
    return tuple(
        entry for entry in found if isinstance(entry, Anchor) and entry.conversation == conversation
    )
