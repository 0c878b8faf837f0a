"""Nothing in the audit can be changed, moved or removed without its being seen."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.chains import Verify, checker, verify
from tests.fakes.mutant import mutant
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate import audit as room
from zeroclaw.gate.action import canonical_json
from zeroclaw.gate.audit import (
    FINAL,
    GENESIS,
    Anchor,
    Broken,
    Cut,
    Entry,
    Intact,
    Kind,
    Written,
    begin,
    carried,
    cut_point,
    end,
    head_of,
    interrupted,
    link,
    marks_of,
    read,
    take,
)
from zeroclaw.store import LogEntry
from zeroclaw.value import replace

AT = datetime(2026, 11, 21, 12, 3, 59, 5, tzinfo=UTC)
DAY = timedelta(days=1)
CONVERSATION = ConversationId("01CONVERSATION")


def entry(kind: Kind, action: str = "a", *, day: int = 0, **fields: str) -> Entry:
    at = AT + day * DAY
    return replace(Entry(kind=kind, at=at, action=action, tool="shell", hash="ab12"), **fields)


def chain(*entries: Written) -> list[bytes]:
    bodies: list[bytes] = []
    head = GENESIS
    for entry_ in entries:
        body, head = link(head, entry_)
        bodies.append(body)
    return bodies


def anchor(bodies: list[bytes], sequence: int) -> Anchor:
    head = head_of(bodies[sequence - 1])
    return Anchor(conversation=CONVERSATION, sequence=sequence, head=head, at=AT)


WHOLE = chain(
    entry(Kind.PROPOSED),
    entry(Kind.EVALUATED, decision="ask", by="policy"),
    entry(Kind.PROPOSED, "b"),
    entry(Kind.EVALUATED, "b", decision="deny"),
    entry(Kind.DENIED, "b"),
    Entry(kind=Kind.REVOKED, at=AT, by="person:ann"),
    entry(Kind.ANSWERED, decision="approved", approval="x"),
    entry(Kind.EXECUTED),
    entry(Kind.PROPOSED, "c"),
)


def test_a_whole_chain_is_intact() -> None:
    """A chain as it was written verifies, and says what is unfinished. S3-29."""
    expected = Intact(head=head_of(WHOLE[-1]), count=len(WHOLE), open=("c",))
    assert verify(WHOLE) == expected
    assert verify(WHOLE, [anchor(WHOLE, 9), anchor(WHOLE, 3)]) == expected


def test_an_empty_chain_is_intact() -> None:
    """A conversation in which nothing was called has nothing to verify."""
    assert verify([]) == Intact(head=GENESIS, count=0, open=())


def test_actions_of_which_only_a_chain_is_left_come_to_an_end() -> None:
    """What was allowed or answered may have run; what has an end, or is no action, is left alone."""
    bodies = chain(
        *(
            entry(Kind.PROPOSED, action)
            for action in ("ended", "allowed", "asked", "answered", "late", "new")
        ),
        entry(Kind.EVALUATED, "ended", decision="allow"),
        entry(Kind.EVALUATED, "allowed", decision="allow"),
        entry(Kind.EVALUATED, "asked", decision="ask"),
        entry(Kind.EVALUATED, "answered", decision="ask"),
        entry(Kind.ANSWERED, "answered", decision="once"),
        entry(Kind.EXECUTED, "ended"),
        entry(Kind.EVALUATED, "late", decision="ask"),
        entry(Kind.CANCELLED, "late"),
        entry(Kind.ANSWERED, "late", decision="once"),
        entry(Kind.REVOKED, ""),
        anchor(WHOLE, 1),
    )
    later = AT + timedelta(seconds=1)
    ends = interrupted(bodies, later)
    assert [(end.action, end.kind.value) for end in ends] == [
        ("allowed", "unknown"),
        ("asked", "cancelled"),
        ("answered", "unknown"),
        ("new", "cancelled"),
    ]
    assert {(end.at, end.by, end.tool, end.hash) for end in ends} == {
        (later, "restart", "shell", "ab12")
    }


def test_an_entry_is_read_as_it_was_written() -> None:
    """Every field comes back, and the head is the one that was returned."""
    written = entry(Kind.EVALUATED, decision="ask", by="policy", approval="x", detail="why")
    written = replace(written, statements=("one", "two"))
    body, head = link(GENESIS, written)
    assert (read(body), head_of(body)) == (written, head)


times = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]))
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
written_entries = st.builds(
    Entry,
    kind=st.sampled_from(Kind),
    at=times,
    action=names,
    tool=names,
    decision=names,
    statements=st.lists(names, max_size=2).map(tuple),
    receipt=names,
) | st.builds(Anchor, conversation=names, sequence=st.integers(1, 2**62), head=names, at=times)


@given(written=written_entries)
def test_an_entry_is_spelled_as_ever(written: Written) -> None:
    """Chains outlive releases: a link is canonical JSON of its plain form, but for an empty receipt."""
    fields = {name: getattr(written, name) for name in written.__struct_fields__}
    plain = {"is": type(written).__name__, **fields, "at": written.at.astimezone(UTC).isoformat()}
    if plain.get("receipt") == "":
        del plain["receipt"]
    head = sha256(GENESIS.encode() + canonical_json(plain).encode()).hexdigest()
    linked = {"is": "Linked", "entry": plain, "previous": GENESIS, "hash": head}
    assert link(GENESIS, written) == (canonical_json(linked).encode(), head)


@given(number=st.integers(0, len(WHOLE) - 1), place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_any_flipped_bit_is_found(number: int, place: int, bit: int) -> None:
    """One bit of one entry, the last one too, and the chain is broken there or after. S3-29."""
    body = bytearray(WHOLE[number])
    body[place % len(body)] ^= 1 << bit
    found = verify([*WHOLE[:number], bytes(body), *WHOLE[number + 1 :]])
    assert isinstance(found, Broken)
    assert found.at == number + 1


def test_an_entry_that_says_something_else_is_not_what_its_hash_says() -> None:
    """S3-29."""
    body = WHOLE[1].replace(b'"ask"', b'"asp"')
    found = verify([WHOLE[0], body, *WHOLE[2:]])
    assert found == Broken(at=2, reason="it does not match its hash")


@given(first=st.integers(0, len(WHOLE) - 2), last=st.integers(0, len(WHOLE)))
def test_any_removed_entries_are_found(first: int, last: int) -> None:
    """A gap is found without any anchor, unless it reaches the end. S3-29."""
    bodies = WHOLE[:first] + WHOLE[last:]
    cut = last <= first or last == len(WHOLE)
    if last <= first:
        bodies = WHOLE
    assert isinstance(verify(bodies), Intact) == cut


@given(order=st.permutations(range(len(WHOLE))))
def test_any_other_order_is_found(order: list[int]) -> None:
    """Entries can't change places. S3-29."""
    bodies = [WHOLE[at] for at in order]
    assert isinstance(verify(bodies), Intact) == (bodies == WHOLE)


@given(kept=st.integers(0, len(WHOLE) - 1))
def test_a_cut_chain_is_found_by_an_anchor(kept: int) -> None:
    """Entries that an anchor knows can't be dropped from the end. S3-29."""
    found = verify(WHOLE[:kept], [anchor(WHOLE, len(WHOLE)), anchor(WHOLE, 1)])
    reason = "it is missing: an anchor counts 9 entries"
    assert found == Broken(at=kept + 1, reason=reason)


def test_a_chain_written_anew_is_found_by_an_anchor() -> None:
    """Whoever rewrites a whole chain meets the head that the daemon remembers. S3-29."""
    anew = chain(entry(Kind.PROPOSED), entry(Kind.EVALUATED), entry(Kind.FAILED))
    assert isinstance(verify(anew), Intact)
    expected = Broken(at=3, reason="it is not the entry that was anchored")
    assert verify(anew, [anchor(WHOLE, 3)]) == expected


ORDERS = {
    "the whole way": ("proposed evaluated executed", ""),
    "failed": ("proposed evaluated failed", ""),
    "denied": ("proposed evaluated denied", ""),
    "cancelled": ("proposed evaluated cancelled", ""),
    "unknown": ("proposed evaluated unknown", ""),
    "answered": ("proposed evaluated answered executed", ""),
    "answered after a stop": ("proposed evaluated cancelled answered", ""),
    "no proposal": ("evaluated", "`evaluated` after nothing"),
    "nothing before": ("executed", "`executed` after nothing"),
    "no evaluation": ("proposed executed", "`executed` after `proposed`"),
    "proposed twice": ("proposed proposed", "`proposed` after `proposed`"),
    "evaluated twice": ("proposed evaluated evaluated", "`evaluated` after `evaluated`"),
    "two ends": ("proposed evaluated executed failed", "`failed` after `executed`"),
    "proposed again": ("proposed evaluated denied proposed", "`proposed` after `denied`"),
    "answered too soon": ("proposed answered", "an answer before the question"),
    "answered from nowhere": ("answered", "an answer before the question"),
}


def walked(check: Verify, name: str) -> Intact | Broken:
    kinds = [Kind(word) for word in ORDERS[name][0].split()]
    other = [entry(Kind.PROPOSED, "other")]
    return check(chain(*other, *[entry(kind) for kind in kinds]))


@pytest.mark.parametrize("name", ORDERS)
def test_every_action_goes_its_way(name: str) -> None:
    """PROPOSED, EVALUATED, then exactly one end; anything else is a fault. S3-29."""
    steps, reason = ORDERS[name]
    found = walked(verify, name)
    assert isinstance(found, Broken if reason else Intact)
    assert not reason or found == Broken(at=len(steps.split()) + 1, reason=reason)


def test_the_ends_are_five() -> None:
    """An action ran, failed, was refused, was cancelled, or its end is unknown."""
    assert {str(kind) for kind in FINAL} == {"executed", "failed", "denied", "cancelled", "unknown"}


HALF_A_PAIR = WHOLE[1].replace(b'"policy"', b'"\xed\xa0\xbd"')  # read, but never written


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"\xff", b'{"is":"Linked"}', WHOLE[0] + b" ", HALF_A_PAIR]
)
def test_what_is_no_entry_is_a_fault_and_no_error(body: bytes) -> None:
    """Whatever stands in the log, verifying ends with a verdict."""
    assert isinstance(verify([body]), Broken)


def test_reading_what_is_no_entry_says_so() -> None:
    """A head can't be taken from something else."""
    with pytest.raises(StoreUnusable):
        head_of(b"{}")


def test_the_daemon_remembers_heads_in_a_chain_of_its_own() -> None:
    """Anchors are entries like others, and are found again by conversation."""
    mine = anchor(WHOLE, 2)
    other = replace(mine, conversation=ConversationId("02"))
    later = replace(mine, sequence=3, at=AT + timedelta(hours=1))
    bodies = chain(mine, other, Entry(kind=Kind.REVOKED, at=AT), later)
    assert isinstance(verify(bodies), Intact)
    assert marks_of(bodies, {CONVERSATION}) == [mine, later]


MUTANTS = {
    "hashes are not checked": ("linked.hash != _hash(linked.previous, plain)", "False"),
    "links are not checked": ("linked.previous != walk.head", "False"),
    "an end counts twice": ("is_next = ", "is_next = entry.kind in FINAL and last is not None or "),
    "proposals repeat": ("is_next = ", "is_next = entry.kind is Kind.PROPOSED or "),
    "anchors are ignored": ("if walk.anchored and not walk.broken:", "if False:"),
    "anchored heads are ignored": ("any(head != walk.head", "any(False"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_tests_bite(name: str) -> None:
    """Each check that is left out lets a fault through that is found otherwise."""
    check = checker(mutant(room, *MUTANTS[name]))
    changed = WHOLE[1].replace(b'"decision":"ask"', b'"decision":"all"')
    verdicts = [
        *(isinstance(walked(check, order), Broken) == bool(ORDERS[order][1]) for order in ORDERS),
        isinstance(check([*WHOLE[:1], changed, *WHOLE[2:]]), Broken),
        isinstance(check(WHOLE[5:6]), Broken),
        isinstance(check(WHOLE[:3], [anchor(WHOLE, 5)]), Broken),
        isinstance(
            check(chain(entry(Kind.PROPOSED)), [replace(anchor(WHOLE, 1), head="x")]), Broken
        ),
    ]
    assert not all(verdicts)


def test_a_chain_from_before_receipts_were_noted_is_what_it_was() -> None:
    """Its bytes and its hashes are those that were written then; only ends with one have one."""
    body, head = link(GENESIS, entry(Kind.EXECUTED))
    assert head == "f44391c559ce0859c1be5215c66ea4f365eeef8471e3702a1af631191b6d6e32"
    assert b"receipt" not in body
    noted, _ = link(head, entry(Kind.EXECUTED, receipt="zc-receipt-1-x"))
    assert [issued.receipt for issued in room.issued([body, noted])] == ["zc-receipt-1-x"]


# --- cuts: a chain may lose its oldest entries, and the rest is still proven ----------------------

HERE = ConversationId("01HERE")
THERE = ConversationId("01THERE")


def done(action: str, *, day: int = 0) -> tuple[Entry, ...]:
    kinds = (Kind.PROPOSED, Kind.EVALUATED, Kind.EXECUTED)
    return tuple(entry(kind, action, day=day) for kind in kinds)


def log_of(*written: Written) -> tuple[LogEntry, ...]:
    numbered = enumerate(chain(*written), start=1)
    return tuple(LogEntry(sequence=number, body=body) for number, body in numbered)


def bodies(entries: Sequence[LogEntry]) -> list[bytes]:
    return [logged.body for logged in entries]


def cut_at(logged: LogEntry, conversation: ConversationId = HERE) -> Cut:
    return Cut(
        conversation=conversation, sequence=logged.sequence, head=head_of(logged.body), at=AT
    )


def anchor_at(logged: LogEntry, conversation: ConversationId = HERE) -> Anchor:
    return Anchor(
        conversation=conversation, sequence=logged.sequence, head=head_of(logged.body), at=AT
    )


DAYS = log_of(*done("a"), *done("b", day=1), *done("c", day=2))
LAST = DAYS[-1]

# --- where it may be cut --------------------------------------------------------------------------

POINTS: dict[str, tuple[tuple[Written, ...], int, int | None]] = {
    "by the day": ((*done("a"), *done("b", day=1), *done("c", day=2)), 2, 6),
    "what is newer stays": ((*done("a"), *done("b", day=2), *done("c", day=9)), 2, 3),
    "nothing is old": (done("a", day=5), 2, None),
    "nothing is there": ((), 2, None),
    "one entry stays": ((*done("a"), entry(Kind.REVOKED, "")), 2, 3),
    "the only action stays": (done("a"), 2, None),
    "an open action stays": ((entry(Kind.PROPOSED), *done("b"), *done("c", day=9)), 2, None),
    "behind an open action nothing goes": (
        (*done("b"), entry(Kind.PROPOSED), *done("c"), *done("d", day=9)),
        2,
        3,
    ),
    "an action is not torn": (
        (*done("b"), *done("a")[:2], replace(done("a")[2], at=AT + 9 * DAY)),
        2,
        3,
    ),
    "a late answer keeps its action": (
        (*done("a"), *done("b"), entry(Kind.ANSWERED, "b", day=9)),
        2,
        3,
    ),
    "what belongs to no action goes": (
        (entry(Kind.REVOKED, ""), entry(Kind.REVOKED, ""), *done("a", day=9)),
        2,
        2,
    ),
}


@pytest.mark.parametrize("name", POINTS)
def test_a_chain_is_cut_where_no_action_is_torn(name: str) -> None:
    """Removed entries are old and ended; the rest is whole, and never empty. S3-29."""
    written, before, expected = POINTS[name]
    found = cut_point(log_of(*written), AT + before * DAY)
    assert (None if found is None else found.sequence) == expected


KINDS = st.sampled_from([("a", 0), ("b", 0), ("c", 1), ("d", 2), ("e", 3)])


@given(actions=st.lists(KINDS, unique=True), before=st.integers(0, 4), again=st.integers(0, 4))
def test_what_stays_of_a_cut_chain_verifies(
    actions: list[tuple[str, int]], before: int, again: int
) -> None:
    """Wherever it is cut, once or twice, the rest is intact with its cut and no other way."""
    written = [
        entry_
        for name, day in sorted(actions, key=lambda a: a[1])
        for entry_ in done(name, day=day)
    ]
    left = log_of(*written)
    cut: Cut | None = None
    for day in (before, again):
        point = cut_point(left, AT + day * DAY)
        if point is not None:
            left = tuple(logged for logged in left if logged.sequence > point.sequence)
            cut = cut_at(point)
    anchors = [anchor_at(logged) for logged in log_of(*written)]
    found = verify(bodies(left), [*anchors, *filter(None, [cut])])
    assert isinstance(found, Intact)
    assert found.count == len(written)
    assert cut is None or isinstance(verify(bodies(left), anchors), Broken)


# --- what a cut proves ----------------------------------------------------------------------------


def test_a_chain_whose_beginning_was_taken_is_broken_without_a_cut() -> None:
    """Whoever drops the oldest entries is found, as before. S3-29."""
    assert verify(bodies(DAYS[3:])) == Broken(at=1, reason="it does not follow the entry before it")


def test_a_cut_somewhere_else_is_found() -> None:
    """A cut fits one place only."""
    found = verify(bodies(DAYS[6:]), [cut_at(DAYS[2])])
    assert found == Broken(at=4, reason="it does not follow the entry before it")


def test_a_cut_that_an_anchor_contradicts_is_found() -> None:
    """The removed entry had the anchored head."""
    forged = replace(cut_at(DAYS[5]), head="f" * 64)
    found = verify([], [anchor_at(DAYS[5]), forged])
    assert found == Broken(at=6, reason="the cut is not where the anchor was")


def test_entries_missing_at_the_end_of_a_cut_chain_are_found() -> None:
    """Anchors behind the cut hold as ever."""
    found = verify(bodies(DAYS[3:6]), [anchor_at(DAYS[0]), anchor_at(LAST), cut_at(DAYS[2])])
    assert found == Broken(at=7, reason="it is missing: an anchor counts 9 entries")


def test_a_chain_that_went_whole_is_intact() -> None:
    """All of it was old, and the cut says so."""
    found = verify([], [anchor_at(LAST), cut_at(LAST)])
    assert found == Intact(head=head_of(LAST.body), count=9, open=())


def test_the_newest_cut_of_a_conversation_counts() -> None:
    """Each chain has its own."""
    cuts = [cut_at(DAYS[2]), cut_at(DAYS[5])]
    daemon = bodies(log_of(cuts[0], cut_at(DAYS[0], THERE), anchor_at(LAST), cuts[1]))
    assert marks_of(daemon, {HERE}) == [cuts[0], anchor_at(LAST), cuts[1]]
    assert marks_of(daemon, {THERE}) == [cut_at(DAYS[0], THERE)]
    assert marks_of(daemon, {"other"}) == []
    assert isinstance(verify(bodies(DAYS[6:]), marks_of(daemon, {HERE})), Intact)
    assert isinstance(verify(daemon), Intact)


def test_only_a_cut_that_ends_where_the_chain_begins_counts() -> None:
    """A chain may be cut again while it is checked; what was read began before that."""
    walk = begin([cut_at(DAYS[2]), cut_at(DAYS[5])], through=3)
    take(walk, bodies(DAYS[3:]))
    assert end(walk) == Intact(head=head_of(LAST.body), count=9, open=())


# --- the daemon's own chain -----------------------------------------------------------------------


def test_what_only_the_entries_that_go_hold_is_said_anew() -> None:
    """The newest anchor and the newest cut of each chain that lives are never lost."""
    going = (
        anchor_at(DAYS[0]),
        anchor_at(DAYS[3]),
        cut_at(DAYS[0]),
        anchor_at(DAYS[0], THERE),
        cut_at(DAYS[1], ConversationId("gone")),
        entry(Kind.REVOKED, ""),
    )
    staying = (entry(Kind.REVOKED, ""), anchor_at(DAYS[4], THERE))
    found = carried(bodies(log_of(*going)), bodies(log_of(*staying)), {HERE, THERE})
    assert found == (anchor_at(DAYS[3]), cut_at(DAYS[0]))
