"""The audit: proposals, decisions and ends of calls, in one hash chain per conversation (S3-29).

Each entry contains the hash of the entry before it and its own, which is the SHA-256 over both, so
a changed, removed or moved entry breaks every hash after it. Anchors protect the newest entries:
the daemon's own chain records the heads of the conversations from time to time, and a chain that is
shorter than its anchor was cut.

A chain may lose its oldest entries by age. The daemon's chain then contains a `Cut`, written
together with the removal, which names the last removed entry. Without one, a chain that does not
begin at its first entry is broken. `cut_point` returns how far a chain may be pruned.

    PROPOSED ─▶ EVALUATED ─▶ EXECUTED | FAILED | DENIED | CANCELLED | UNKNOWN

is the order of every action's entries, each once. `ANSWERED` may appear anywhere after `EVALUATED`:
an answer is audited when the holder of the conversation processes it, which may be after a stop.

The daemon's own chain also records every halt and its end, and every admission and revocation of a
person, each with the operator who ordered it.

Entries contain ids, kinds, decisions and times; no arguments, no results, no message texts.
"""

import hashlib
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum

from msgspec import to_builtins

from zeroclaw import codec
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import RecordUnreadable
from zeroclaw.gate.action import canonical_bytes
from zeroclaw.store import LogEntry, readable_of
from zeroclaw.value import TAG, Struct, Value, field

GENESIS = "0" * 64
"""The head of an empty chain."""


class Kind(StrEnum):
    """The kinds of entries."""

    PROPOSED = "proposed"
    EVALUATED = "evaluated"
    ANSWERED = "answered"
    EXECUTED = "executed"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    REVOKED = "revoked"
    HALTED = "halted"
    RESUMED = "resumed"
    PERSON_ADMITTED = "person_admitted"
    PERSON_REVOKED = "person_revoked"


FINAL = frozenset({Kind.EXECUTED, Kind.FAILED, Kind.DENIED, Kind.CANCELLED, Kind.UNKNOWN})
_OF_AN_ACTION = FINAL | {Kind.PROPOSED, Kind.EVALUATED, Kind.ANSWERED}
_BEFORE = {Kind.PROPOSED: None, Kind.EVALUATED: Kind.PROPOSED}
"""The entry of an action that each follows; all final ones follow `EVALUATED`."""


class Entry(Value):
    """One audited event.

    Attributes:
        kind: Its kind.
        at: Its time, aware.
        action: The action's id; empty if the entry concerns none.
        tool: The tool's name as the model wrote it; there may be no such tool.
        hash: The action's hash; empty for a malformed call, which was never frozen.
        by: The principal's id, or `policy`, `protection`, `deadline`, `configuration` and the like.
        decision: `allow`, `ask`, `deny`, or how an approval was answered.
        statements: The ids of the statements that decided.
        approval: The approval's id.
        detail: A word or two about the cause, such as `timeout`, or the person that a decision is
            about and the channel it was made on; never a body.
        receipt: The token that was issued with this end; empty for other entries.
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
    receipt: str = ""


class _Mark(Value):
    """A position in a chain, as recorded in the daemon's chain.

    Attributes:
        conversation: The chain's conversation; the daemon's stream for the daemon's own.
        sequence: The number of the entry that `head` belongs to; the first has 1.
        head: Its hash.
        at: When it was recorded, aware.
    """

    conversation: ConversationId
    sequence: int
    head: str
    at: datetime


class Anchor(_Mark):
    """The head of a chain at a certain time."""


class Cut(_Mark):
    """Where a chain was cut: all entries up to and including this one were removed by age."""


Written = Entry | Anchor | Cut


class Linked(Value):
    """An entry as it is stored."""

    entry: Written
    previous: str
    hash: str


def link(previous: str, entry: Written) -> tuple[bytes, str]:
    """Return the bytes to append after the entry with the hash `previous`, and the new head."""
    plain = _plain(entry)
    head = _hash(previous, plain)
    return _linked(previous, plain, head), head


def head_of(body: bytes) -> str:
    """Return the hash that a stored entry claims.

    Raises:
        RecordUnreadable: The body is not an entry.
    """
    return codec.decode(Linked, body).hash


def head_after(last: LogEntry | None) -> str:
    """Return the hash that the entry behind a stored one names; None for no entry.

    Behind a damaged one a chain stays broken, but goes on, so that later entries are on record.
    """
    with suppress(RecordUnreadable):
        return GENESIS if last is None else head_of(last.body)
    return GENESIS


def read(body: bytes) -> Written:
    """Return the entry of stored bytes, unverified.

    Raises:
        RecordUnreadable: The body is not an entry.
    """
    return codec.decode(Linked, body).entry


def _plain(entry: Written) -> dict[str, object]:
    """Return an entry in its hashed form; without a receipt it is the form of older releases."""
    plain: dict[str, object] = to_builtins(entry, builtin_types=(datetime,))
    plain["at"] = entry.at.astimezone(UTC).isoformat()
    if not plain.get("receipt"):
        plain.pop("receipt", None)
    return plain


def _hash(previous: str, plain: dict[str, object]) -> str:
    return hashlib.sha256(previous.encode() + canonical_bytes(plain)).hexdigest()


def _linked(previous: str, plain: dict[str, object], head: str) -> bytes:
    return canonical_bytes(
        {TAG: Linked.__name__, "entry": plain, "previous": previous, "hash": head}
    )


def issued(bodies: Iterable[bytes]) -> tuple[Entry, ...]:
    """Return the end entries of a chain that issued a receipt, unverified.

    Raises:
        RecordUnreadable: One of the bodies is not an entry.
    """
    found = (read(body) for body in bodies)
    return tuple(entry for entry in found if isinstance(entry, Entry) and entry.receipt)


def interrupted(bodies: Iterable[bytes], at: datetime) -> tuple[Entry, ...]:
    """Return end entries for the actions that a restart interrupted.

    An action that was allowed, or answered, may have run.

    Args:
        bodies: A whole chain, in order; a damaged entry is skipped.
        at: The time of the new entries.
    """
    begun: dict[str, Entry] = {}
    may_have_run, ended = set[str](), set[str]()
    for entry in readable_of(bodies, read):
        if not isinstance(entry, Entry) or entry.kind not in _OF_AN_ACTION:
            continue
        begun.setdefault(entry.action, entry)
        if entry.kind in FINAL:
            ended.add(entry.action)  # a late answer may follow
        elif entry.kind is Kind.ANSWERED or entry.decision == "allow":
            may_have_run.add(entry.action)
    return tuple(
        Entry(
            kind=Kind.UNKNOWN if action in may_have_run else Kind.CANCELLED,
            at=at,
            action=action,
            tool=entry.tool,
            hash=entry.hash,
            by="restart",
        )
        for action, entry in begun.items()
        if action not in ended
    )


# --- verifying -----------------------------------------------------------------------------------


class Intact(Value):
    """The chain and its anchors show no change, move or removal.

    Attributes:
        head: The hash of the last entry.
        count: The number of entries, including those before a cut.
        open: The actions without an end, in the order they were proposed.
    """

    head: str
    count: int
    open: tuple[str, ...]


class Broken(Value):
    """The first fault; nothing after it can be trusted.

    Attributes:
        at: The sequence number of the entry that is wrong or missing.
        reason: One line.
    """

    at: int
    reason: str


class Walk(Struct):
    """The state of a check of a chain.

    Attributes:
        head: The hash of the last entry so far.
        count: The entries so far, including those before a cut.
        steps: The last kind of entry of each action.
        anchored: The anchored heads of entries still to come, by number.
        broken: The first fault; later entries are not checked.
    """

    head: str = GENESIS
    count: int = 0
    steps: dict[str, Kind] = field(default_factory=dict[str, Kind])
    anchored: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    broken: Broken | None = None


def begin(marks: Iterable[Anchor | Cut] = (), through: int | None = None) -> Walk:
    """Begin a check before the first entry; `take` checks entries, `end` returns the result.

    Args:
        marks: Those of this chain, in the order of the daemon's chain. Without anchors, entries
            missing at the end and a rewritten chain can't be detected. Anchors before the cut are
            ignored.
        through: Only a cut that ends with this sequence number counts; None for the last one.
    """
    marks = tuple(marks)
    walk = Walk()
    for mark in marks:
        if isinstance(mark, Cut) and through in (None, mark.sequence):
            walk = Walk(head=mark.head, count=mark.sequence)
    for mark in marks:
        if isinstance(mark, Anchor) and mark.sequence >= walk.count:
            walk.anchored.setdefault(mark.sequence, []).append(mark.head)
    if set(walk.anchored.pop(walk.count, [])) - {walk.head}:
        walk.broken = Broken(at=walk.count, reason="the cut is not where the anchor was")
    return walk


def take(walk: Walk, bodies: Iterable[bytes]) -> None:
    """Check the next entries."""
    for body in () if walk.broken else bodies:
        fault = _fault(walk, body)
        if not fault and any(head != walk.head for head in walk.anchored.pop(walk.count, [])):
            fault = "it is not the entry that was anchored"
        if fault:
            walk.broken = Broken(at=walk.count, reason=fault)
            return


def end(walk: Walk) -> Intact | Broken:
    """Return the result when no more entries follow."""
    if walk.anchored and not walk.broken:
        reason = f"it is missing: an anchor counts {max(walk.anchored)} entries"
        return Broken(at=walk.count + 1, reason=reason)
    unfinished = (action for action, kind in walk.steps.items() if kind not in FINAL)
    return walk.broken or Intact(head=walk.head, count=walk.count, open=tuple(unfinished))


def _fault(walk: Walk, body: bytes) -> str:
    """Check one more entry; return its fault, empty for none."""
    walk.count += 1
    try:
        linked = codec.decode(Linked, body)
    except RecordUnreadable as error:
        return str(error)
    plain = _plain(linked.entry)
    if not _is_ours(linked, plain, body):
        return "it is not written as this code writes entries"
    if linked.previous != walk.head:
        return "it does not follow the entry before it"
    if linked.hash != _hash(linked.previous, plain):
        return "it does not match its hash"
    walk.head = linked.hash
    return _out_of_order(walk, linked.entry) if isinstance(linked.entry, Entry) else ""


def _is_ours(linked: Linked, plain: dict[str, object], body: bytes) -> bool:
    try:
        return _linked(linked.previous, plain, linked.hash) == body
    except ValueError:
        # Half a surrogate pair, which JSON can spell but `link` never writes.
        return False


def _out_of_order(walk: Walk, entry: Entry) -> str:
    if entry.kind not in _OF_AN_ACTION:
        return ""
    last = walk.steps.get(entry.action)
    if entry.kind is Kind.ANSWERED:
        return "" if last not in (None, Kind.PROPOSED) else "an answer before the question"
    walk.steps[entry.action] = entry.kind
    before = "nothing" if last is None else f"`{last}`"
    is_next = last is _BEFORE.get(entry.kind, Kind.EVALUATED)
    return "" if is_next else f"`{entry.kind}` after {before}"


def marks_of(bodies: Iterable[bytes], chains: Container[str]) -> list[Anchor | Cut]:
    """Return the anchors and cuts of some chains in a daemon's chain.

    Raises:
        RecordUnreadable: One of the bodies is not an entry.
    """
    entries = (read(body) for body in bodies)
    return [mark for mark in entries if not isinstance(mark, Entry) and mark.conversation in chains]


def cut_point(chain: Sequence[LogEntry], before: datetime) -> LogEntry | None:
    """Return the last entry that may be removed by age, None if none may.

    All removed entries are older than `before`. The entries of one action are kept or removed
    together, and those of an unfinished action are kept. At least one entry is kept, so that
    counting and linking continue.

    Args:
        chain: The whole current chain, in order.
        before: The age, as an instant.
    """
    entries = [read(stored.body) for stored in chain]
    last_of: dict[str, int] = {}
    ended: set[str] = set()
    for index, entry in enumerate(entries):
        if isinstance(entry, Entry):
            last_of[entry.action] = index
            if entry.kind in FINAL:
                ended.add(entry.action)
    found: LogEntry | None = None
    reach = 0  # the last entry of any action begun so far
    for index, entry in enumerate(entries[:-1]):
        if entry.at >= before:
            break
        action = entry.action if isinstance(entry, Entry) else ""
        if action:
            reach = max(reach, last_of[action] if action in ended else len(entries))
        if reach <= index:
            found = chain[index]
    return found


def carried(
    removed: Iterable[bytes], remaining: Iterable[bytes], existing: Container[str]
) -> tuple[Anchor | Cut, ...]:
    """Return the marks that the daemon's chain must record again when it loses its oldest entries.

    These are the newest anchor and the newest cut of each existing chain, if only the removed
    entries contain them.

    Raises:
        RecordUnreadable: One of the bodies is not an entry.
    """
    needed: dict[tuple[type[Anchor | Cut], str], Anchor | Cut] = {}
    for body in removed:
        entry = read(body)
        if not isinstance(entry, Entry) and entry.conversation in existing:
            needed[type(entry), entry.conversation] = entry
    for body in remaining:
        entry = read(body)
        if not isinstance(entry, Entry):
            needed.pop((type(entry), entry.conversation), None)
    return tuple(needed.values())
