"""A chain may lose its oldest entries, and the rest is still proven."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.envelope import ConversationId
from zeroclaw.gate.audit import (
    GENESIS,
    Anchor,
    Broken,
    Cut,
    Entry,
    Intact,
    Kind,
    Written,
    anchors_of,
    carried,
    cut_of,
    cut_point,
    head_of,
    link,
    verify,
)
from zeroclaw.store import LogEntry
from zeroclaw.value import replace

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HERE = ConversationId("01HERE")
THERE = ConversationId("01THERE")


def entry(kind: Kind, action: str = "a", *, day: int = 0) -> Entry:
    return Entry(kind=kind, at=AT + day * DAY, action=action, tool="shell")


def done(action: str, *, day: int = 0) -> tuple[Entry, ...]:
    kinds = (Kind.PROPOSED, Kind.EVALUATED, Kind.EXECUTED)
    return tuple(entry(kind, action, day=day) for kind in kinds)


def chain(*written: Written) -> tuple[LogEntry, ...]:
    found: list[LogEntry] = []
    head = GENESIS
    for number, one in enumerate(written, start=1):
        body, head = link(head, one)
        found.append(LogEntry(sequence=number, body=body))
    return tuple(found)


def bodies(entries: Sequence[LogEntry]) -> list[bytes]:
    return [one.body for one in entries]


def cut_at(one: LogEntry, conversation: ConversationId = HERE) -> Cut:
    return Cut(conversation=conversation, sequence=one.sequence, head=head_of(one.body), at=AT)


def anchor(one: LogEntry, conversation: ConversationId = HERE) -> Anchor:
    return Anchor(conversation=conversation, sequence=one.sequence, head=head_of(one.body), at=AT)


WHOLE = chain(*done("a"), *done("b", day=1), *done("c", day=2))
LAST = WHOLE[-1]

# --- where it may be cut --------------------------------------------------------------------------

POINTS: dict[str, tuple[tuple[Written, ...], int, int | None]] = {
    "by the day": ((*done("a"), *done("b", day=1), *done("c", day=2)), 2, 6),
    "nothing is old": (done("a", day=5), 2, None),
    "nothing is there": ((), 2, None),
    "one entry stays": ((*done("a"), entry(Kind.HALTED, "")), 2, 3),
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
        (entry(Kind.HALTED, ""), entry(Kind.RESUMED, ""), *done("a", day=9)),
        2,
        2,
    ),
}


@pytest.mark.parametrize("name", POINTS)
def test_a_chain_is_cut_where_no_action_is_torn(name: str) -> None:
    """What goes is old and ended; what stays is whole, and it is never nothing. S3-29."""
    written, before, expected = POINTS[name]
    found = cut_point(chain(*written), AT + before * DAY)
    assert (None if found is None else found.sequence) == expected


KINDS = st.sampled_from([("a", 0), ("b", 0), ("c", 1), ("d", 2), ("e", 3)])


@given(actions=st.lists(KINDS, unique=True), before=st.integers(0, 4), again=st.integers(0, 4))
def test_what_stays_of_a_cut_chain_verifies(
    actions: list[tuple[str, int]], before: int, again: int
) -> None:
    """Wherever it is cut, once or twice, the rest is intact with its cut and no other way."""
    written = [
        one for name, day in sorted(actions, key=lambda a: a[1]) for one in done(name, day=day)
    ]
    left = chain(*written)
    cut: Cut | None = None
    for day in (before, again):
        point = cut_point(left, AT + day * DAY)
        if point is not None:
            left = tuple(one for one in left if one.sequence > point.sequence)
            cut = cut_at(point)
    anchors = [anchor(one) for one in chain(*written)]
    found = verify(bodies(left), anchors, cut)
    assert isinstance(found, Intact)
    assert found.count == len(written)
    assert cut is None or isinstance(verify(bodies(left), anchors), Broken)


# --- what a cut proves ----------------------------------------------------------------------------


def test_a_chain_whose_beginning_was_taken_is_broken_without_a_cut() -> None:
    """Whoever drops the oldest entries is found, as before. S3-29."""
    assert verify(bodies(WHOLE[3:])) == Broken(at=1, why="it does not follow the entry before it")


def test_a_cut_somewhere_else_is_found() -> None:
    """A cut fits one place only."""
    found = verify(bodies(WHOLE[6:]), (), cut_at(WHOLE[2]))
    assert found == Broken(at=4, why="it does not follow the entry before it")


def test_a_cut_that_an_anchor_contradicts_is_found() -> None:
    """What was removed had the head that was anchored."""
    forged = replace(cut_at(WHOLE[5]), head="f" * 64)
    found = verify([], [anchor(WHOLE[5])], forged)
    assert found == Broken(at=6, why="the cut is not where the anchor was")


def test_entries_missing_at_the_end_of_a_cut_chain_are_found() -> None:
    """Anchors behind the cut hold as ever."""
    found = verify(bodies(WHOLE[3:6]), [anchor(WHOLE[0]), anchor(LAST)], cut_at(WHOLE[2]))
    assert found == Broken(at=7, why="it is missing: an anchor knows 9 entries")


def test_a_chain_that_went_whole_is_intact() -> None:
    """All of it was old, and the cut says so."""
    found = verify([], [anchor(LAST)], cut_at(LAST))
    assert found == Intact(head=head_of(LAST.body), count=9, open=())


def test_the_newest_cut_of_a_conversation_counts() -> None:
    """Each chain has its own."""
    daemon = bodies(
        chain(cut_at(WHOLE[2]), cut_at(WHOLE[0], THERE), anchor(LAST), cut_at(WHOLE[5]))
    )
    assert cut_of(daemon, HERE) == cut_at(WHOLE[5])
    assert cut_of(daemon, THERE) == cut_at(WHOLE[0], THERE)
    assert cut_of(daemon, ConversationId("other")) is None
    assert anchors_of(daemon, HERE) == (anchor(LAST),)
    assert isinstance(verify(daemon), Intact)


# --- the daemon's own chain -----------------------------------------------------------------------


def test_what_only_the_entries_that_go_hold_is_said_anew() -> None:
    """The newest anchor and the newest cut of each chain that lives are never lost."""
    going = (
        anchor(WHOLE[0]),
        anchor(WHOLE[3]),
        cut_at(WHOLE[0]),
        anchor(WHOLE[0], THERE),
        cut_at(WHOLE[1], ConversationId("gone")),
        entry(Kind.HALTED, ""),
    )
    staying = (entry(Kind.RESUMED, ""), anchor(WHOLE[4], THERE))
    found = carried(bodies(chain(*going)), bodies(chain(*staying)), {HERE, THERE})
    assert found == (anchor(WHOLE[3]), cut_at(WHOLE[0]))
