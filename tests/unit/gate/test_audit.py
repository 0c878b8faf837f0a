"""Nothing in the audit can be changed, moved or removed without its being seen."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.mutant import mutant
from zeroclaw import codec
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate import audit as room
from zeroclaw.gate.action import canonical_json
from zeroclaw.gate.audit import (
    FINAL,
    GENESIS,
    Anchor,
    Broken,
    Entry,
    Intact,
    Kind,
    Written,
    anchors_of,
    cut_off,
    head_of,
    link,
    read,
    verify,
)
from zeroclaw.value import replace

AT = datetime(2026, 11, 21, 12, 3, 59, 5, tzinfo=UTC)
CONVERSATION = ConversationId("01CONVERSATION")

Verify = Callable[..., Intact | Broken]


def entry(kind: Kind, action: str = "a", **fields: str) -> Entry:
    return replace(Entry(kind=kind, at=AT, action=action, tool="shell", hash="ab12"), **fields)


def chain(*entries: Written) -> list[bytes]:
    bodies: list[bytes] = []
    head = GENESIS
    for one in entries:
        body, head = link(head, one)
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
    Entry(kind=Kind.HALTED, at=AT, by="person:ann"),
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
        *(entry(Kind.PROPOSED, one) for one in ("ended", "allowed", "asked", "answered", "new")),
        entry(Kind.EVALUATED, "ended", decision="allow"),
        entry(Kind.EVALUATED, "allowed", decision="allow"),
        entry(Kind.EVALUATED, "asked", decision="ask"),
        entry(Kind.EVALUATED, "answered", decision="ask"),
        entry(Kind.ANSWERED, "answered", decision="once"),
        entry(Kind.EXECUTED, "ended"),
        entry(Kind.GRANTED, ""),
        anchor(WHOLE, 1),
    )
    later = AT + timedelta(seconds=1)
    ends = cut_off(bodies, later)
    assert [(one.action, one.kind.value) for one in ends] == [
        ("allowed", "unknown"),
        ("asked", "cancelled"),
        ("answered", "unknown"),
        ("new", "cancelled"),
    ]
    assert {(one.at, one.by, one.tool, one.hash) for one in ends} == {
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


@given(one=written_entries)
def test_an_entry_is_spelled_as_ever(one: Written) -> None:
    """Chains outlive releases: a link is canonical JSON of its plain form, but for an empty receipt."""
    plain = cast("dict[str, object]", codec.to_json(one))
    if plain.get("receipt") == "":
        del plain["receipt"]
    head = sha256(GENESIS.encode() + canonical_json(plain).encode()).hexdigest()
    linked = {"is": "Linked", "entry": plain, "previous": GENESIS, "hash": head}
    assert link(GENESIS, one) == (canonical_json(linked).encode(), head)


def test_a_tool_that_has_no_utf_8_is_escape_invisible() -> None:
    """A malformed call is audited too, whatever the model called it."""
    body, _ = link(GENESIS, entry(Kind.PROPOSED, tool="\ud800x"))
    written = read(body)
    assert isinstance(written, Entry)
    assert written.tool == "\\ud800x"


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
    assert found == Broken(at=2, why="it is not what its hash says")


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
    why = "it is missing: an anchor knows 9 entries"
    assert found == Broken(at=kept + 1, why=why)


def test_a_chain_written_anew_is_found_by_an_anchor() -> None:
    """Whoever rewrites a whole chain meets the head that the daemon remembers. S3-29."""
    anew = chain(entry(Kind.PROPOSED), entry(Kind.EVALUATED), entry(Kind.FAILED))
    assert isinstance(verify(anew), Intact)
    expected = Broken(at=3, why="it is not the entry that was anchored")
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


def walk(check: Verify, name: str) -> Intact | Broken:
    kinds = [Kind(word) for word in ORDERS[name][0].split()]
    other = [entry(Kind.PROPOSED, "other")]
    return check(chain(*other, *[entry(kind) for kind in kinds]))


@pytest.mark.parametrize("name", ORDERS)
def test_every_action_goes_its_way(name: str) -> None:
    """PROPOSED, EVALUATED, then exactly one end; anything else is a fault. S3-29."""
    steps, why = ORDERS[name]
    found = walk(verify, name)
    assert isinstance(found, Broken if why else Intact)
    assert not why or found == Broken(at=len(steps.split()) + 1, why=why)


def test_the_ends_are_five() -> None:
    """An action that ran, failed, was refused, was cancelled, or nobody knows."""
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
    bodies = chain(mine, other, Entry(kind=Kind.RESUMED, at=AT), later)
    assert isinstance(verify(bodies), Intact)
    assert anchors_of(bodies, CONVERSATION) == (mine, later)


MUTANTS = {
    "hashes are not checked": ("linked.hash != _hash(linked.previous, plain)", "False"),
    "links are not checked": ("linked.previous != walk.head", "False"),
    "an end counts twice": ("expected = last is Kind.EVALUATED", "expected = last is not None"),
    "proposals repeat": ("expected = last is None", "expected = True"),
    "anchors are ignored": ("if walk.known and not walk.broken:", "if False:"),
    "anchored heads are ignored": ("any(head != walk.head", "any(False"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_tests_bite(name: str) -> None:
    """Each check that is left out lets a fault through that is found otherwise."""
    planted: Mapping[str, object] = mutant(room, *MUTANTS[name])
    check = cast("Verify", planted["verify"])
    changed = WHOLE[1].replace(b'"decision":"ask"', b'"decision":"all"')
    verdicts = [
        *(isinstance(walk(check, order), Broken) == bool(ORDERS[order][1]) for order in ORDERS),
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
    assert [one.receipt for one in room.issued([body, noted])] == ["zc-receipt-1-x"]
