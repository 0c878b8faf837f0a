"""Which rows are old enough to sweep, and which never are; a table declares every kind of row."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.counting_ids import CountingIds
from tests.fakes.journals import fold
from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.channel import Card
from zeroclaw.config.model import RetentionSettings
from zeroclaw.delivery import rows
from zeroclaw.envelope import (
    ActionId,
    Address,
    ApprovalId,
    ConversationId,
    ItemId,
    Principal,
    TurnId,
)
from zeroclaw.gate import approval as approvals
from zeroclaw.gate.verdict import Allowed
from zeroclaw.message import NO_USAGE, AssistantMessage, ToolCall, ToolMessage, UserMessage
from zeroclaw.retention.policy import (
    FOR_EVER,
    Horizons,
    horizons,
    is_before,
    is_over,
    journal_cut,
    may_go,
)
from zeroclaw.retention.tables import BUSY, OF_CONVERSATIONS, TABLES
from zeroclaw.store import Put, PutBlob, Row, RowKind
from zeroclaw.table import Age, Ages, Column, Stays, UntilDue
from zeroclaw.turn import entries
from zeroclaw.turn.kept_results import kept_put
from zeroclaw.turn.states import TurnLimits

DAY = timedelta(days=1)
CONVERSATION = ConversationId("01HERE")
ADA = Principal(id="person:ada", roles=frozenset(), channel="chat", sender="ada", display="Ada")
ADDRESS = Address(channel="chat", account="bot", chat="ada", direct=True)
AT = Horizons(
    now=EPOCH,
    ages={Age.MESSAGES: EPOCH - 10 * DAY, Age.APPROVALS: EPOCH - 5 * DAY},
    blobs=EPOCH - 5 * DAY,
    audit=EPOCH - 20 * DAY,
)


def key(days: float) -> str:
    """A ULID made `days` days ago."""
    return CountingIds(clock=ManualClock(EPOCH - days * DAY)).ulid()


def row(kind: RowKind, state: str, days: float, *, due_at: datetime | None = None) -> Row:
    return Row(kind=kind, key=key(days), version=1, body=b"", state=state, due_at=due_at)


def stored_row(put: Put, state: str) -> Row:
    return rows.stored(Put(kind=put.kind, key=put.key, body=put.body, state=state), 1)


def text(days: float, state: str) -> Row:
    return stored_row(rows.outbox_row(key(days), rows.TextPost(address=ADDRESS, text="x")), state)


def card(days: float, state: str) -> Row:
    card_value = Card(key="c", asked_by="Ada", calls=(), deadline_at=EPOCH, choices=())
    put = rows.outbox_row(
        key(days), rows.ApprovalCard(address=ADDRESS, card=card_value, approvals=()), CONVERSATION
    )
    return stored_row(put, state)


def stored_result(days: float) -> Row:
    blob = PutBlob(digest="0" * 64, body=b"")
    put = kept_put(CONVERSATION, blob, EPOCH - days * DAY)
    return Row(kind=put.kind, key=put.key, version=1, body=put.body)


def approval(days: float, state: approvals.State) -> Row:
    request = approvals.Approval(
        id=ApprovalId("unguessable"),
        action=ActionId("a"),
        action_hash="ab",
        tool="shell",
        conversation=CONVERSATION,
        turn=TurnId("t"),
        requester=ADA,
        approvers=(),
        summary="",
        arguments="",
        why="",
        card="c",
        deadline_at=EPOCH,
        state=state,
        at=None if state == "pending" else EPOCH - days * DAY,
    )
    return rows.stored(approvals.to_put(request), 1)


ROWS: dict[str, tuple[Row, bool]] = {
    "an answered message": (row(RowKind.INBOX, "answered", 11), True),
    "a failed message": (row(RowKind.INBOX, "failed", 11), True),
    "a younger message": (row(RowKind.INBOX, "answered", 9), False),
    "a message that waits": (row(RowKind.INBOX, "queued", 99), False),
    "a message being answered": (row(RowKind.INBOX, "taken", 99), False),
    "a closed turn": (row(RowKind.TURN, "closed", 11), True),
    "an open turn": (row(RowKind.TURN, "open", 99), False),
    "a delivered answer": (text(11, "delivered"), True),
    "a refused answer": (text(11, "refused"), True),
    "a younger answer": (text(9, "delivered"), False),
    "an answer on its way": (text(99, "sending"), False),
    "a card goes with its questions": (card(6, "delivered"), True),
    "a younger card": (card(4, "delivered"), False),
    "an ended question": (approval(6, "denied"), True),
    "a younger question": (approval(4, "approved"), False),
    "an open question": (approval(99, "pending"), False),
    "an old call": (row(RowKind.ACTION, "", 6), True),
    "a younger call": (row(RowKind.ACTION, "", 4), False),
    "a grant that ended": (row(RowKind.GRANT, "open", 1, due_at=EPOCH - DAY), True),
    "a grant that holds": (row(RowKind.GRANT, "open", 99, due_at=EPOCH), False),
    "a grant without an end": (row(RowKind.GRANT, "open", 99), False),
    "a result that was cut": (stored_result(11), True),
    "a younger one": (stored_result(9), False),
    "a note": (row(RowKind.NOTE, "", 99), False),
    "where a chat leads": (row(RowKind.ADDRESS, "", 99), False),
    "the halt switch": (row(RowKind.SWITCH, "on", 99), False),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_may_go_when_it_has_ended_and_is_old(name: str) -> None:
    """A row that still waits for something stays at any age."""
    row, expected = ROWS[name]
    assert may_go(TABLES[row.kind], row, AT) == expected


def test_nothing_that_is_under_way_may_go() -> None:
    """The states that make a conversation busy are not among those that end a row."""
    assert not any(
        may_go(table, Row(kind=table.kind, key=key(999), version=1, body=b"", state=state), AT)
        for table, state in BUSY
    )


@given(st.integers(0, 10**12), st.integers(-5000, 5000))
def test_a_ulid_holds_the_time_it_was_made(milliseconds: int, by: int) -> None:
    """To the millisecond, whatever its random part is."""
    at = datetime.fromtimestamp(0, tz=EPOCH.tzinfo) + timedelta(milliseconds=milliseconds)
    ulid = CountingIds(clock=ManualClock(at)).ulid()
    assert is_before(ulid, at + timedelta(milliseconds=by)) == (by > 0)


def test_a_full_disk_halves_all_days_except_those_of_the_audit() -> None:
    """0 means for ever, and stays so."""
    settings = RetentionSettings(messages_days=8, approvals_days=0, blobs_days=4, audit_days=8)
    assert horizons(settings, EPOCH, halved=2) == Horizons(
        now=EPOCH,
        ages={Age.MESSAGES: EPOCH - 2 * DAY, Age.APPROVALS: FOR_EVER},
        blobs=EPOCH - DAY,
        audit=EPOCH - 8 * DAY,
    )
    assert not is_before(key(10_000), FOR_EVER)


@pytest.mark.parametrize(
    ("bound_mb", "used_bytes", "expected"),
    [(1, 1_000_000, False), (1, 1_000_001, True), (0, 10**15, False)],
)
def test_the_bound_is_in_megabytes(bound_mb: int, used_bytes: int, expected: bool) -> None:
    """0 means no bound."""
    assert is_over(RetentionSettings(max_disk_mb=bound_mb), used_bytes) == expected


# --- journals -------------------------------------------------------------------------------------


def turn(day: int, *, calls: int = 0, is_ended: bool = True) -> list[entries.Entry]:
    """A turn of one day, with a batch of calls and, if `ended`, an end."""
    at = EPOCH + day * DAY
    opened = entries.TurnOpened(
        turn=TurnId(f"t{day}"),
        item=ItemId(f"i{day}"),
        principal=ADA,
        correlation="c",
        user=UserMessage(content=f"question {day}"),
        limits=TurnLimits(max_rounds=5),
        at=at,
    )
    entries_of_turn: list[entries.Entry] = [opened]
    if calls:
        calls_made = tuple(ToolCall(id=f"{n}", name="look", arguments="{}") for n in range(calls))
        actions = [ActionId(f"{day}.{n}") for n in range(calls)]
        verdicts = tuple(Allowed(action=action) for action in actions)
        entries_of_turn += [
            entries.AssistantReceived(
                message=AssistantMessage(tool_calls=calls_made), usage=NO_USAGE, at=at
            ),
            entries.Gated(verdicts=verdicts, at=at),
        ]
        for action in actions:
            result = ToolMessage(content="r", tool_call_id="", tool_name="look")
            entries_of_turn += [
                entries.CallStarted(action=action, at=at),
                entries.CallFinished(action=action, result=result, outcome="ok", at=at),
            ]
        entries_of_turn.append(entries.BatchAppended(at=at))
    if is_ended:
        answer = AssistantMessage(content=f"answer {day}")
        entries_of_turn.append(
            entries.TurnFinished(reason="model_stop", usage=NO_USAGE, at=at, message=answer)
        )
    return entries_of_turn


def noted(day: int) -> entries.Entry:
    return entries.Noted(text="edited", why="edit", at=EPOCH + day * DAY)


Steps = list[tuple[int, entries.Entry]]


def steps(*parts: list[entries.Entry]) -> Steps:
    journal = [entry for part in parts for entry in part]
    return [*enumerate(journal, start=1)]


JOURNALS: dict[str, tuple[Steps, int, int | None]] = {
    "nothing is there": ([], 5, None),
    "nothing is old": (steps(turn(9)), 5, None),
    "all is old": (steps(turn(0), turn(1)), 5, 5),
    "a turn that is not over stays": (steps(turn(0), turn(1, is_ended=False)), 5, 3),
    "the only turn is not over": (steps(turn(0, is_ended=False)), 5, None),
    "the younger turn stays": (steps(turn(0), turn(9)), 5, 3),
    "a turn that became old half-way stays": (
        steps(turn(0), turn(4, calls=1, is_ended=False), turn(6)[1:]),
        5,
        3,
    ),
    "a note of today keeps the turn above it": (steps(turn(0), turn(1), [noted(9)]), 5, 3),
    "an old note goes": (steps(turn(0), [noted(1)], turn(9)), 5, 4),
}


@pytest.mark.parametrize("name", JOURNALS)
def test_a_journal_is_cut_where_a_turn_begins(name: str) -> None:
    """Whole turns go; an open turn, or one not wholly old, stays whole. K12."""
    journal, day, expected = JOURNALS[name]
    assert journal_cut(journal, EPOCH + day * DAY) == expected


@given(
    days=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=8),
    before=st.integers(0, 10),
)
def test_the_rest_of_a_cut_journal_folds_to_whole_turns(
    days: list[tuple[int, int]], before: int
) -> None:
    """Its history is the end of the full history: no result loses its call. K12."""
    whole = steps(*(turn(day, calls=calls) for day, calls in sorted(days)))
    cut = journal_cut(whole, EPOCH + before * DAY)
    remaining = [entry for number, entry in whole if cut is None or number >= cut]
    history, full_history = fold(remaining), fold(entry for _, entry in whole)
    assert history.turn is None
    count = len(history.messages)
    assert history.messages == full_history.messages[len(full_history.messages) - count :]
    assert not count or isinstance(history.messages[0], UserMessage)
    assert all(entry.at >= EPOCH + before * DAY for entry in remaining)


# --- declared kinds -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RowKind)
def test_every_kind_of_row_is_declared(kind: RowKind) -> None:
    """A kind that no table declares would stay for ever; erasure would miss it."""
    table = TABLES[kind]

    match table.keeps:
        case Stays(until=until):
            assert until
        case Ages():
            assert Column.STATE in table.columns or not table.keeps.ended
        case UntilDue():
            assert Column.DUE_AT in table.columns


@pytest.mark.parametrize("kind", RowKind)
def test_rows_of_a_writer_are_found_by_conversation_and_by_writer(kind: RowKind) -> None:
    """An erasure in a shared chat removes the person's own rows, and nothing else."""
    table = TABLES[kind]

    if table.owner is not None:
        assert table in OF_CONVERSATIONS
    if table.busy:
        assert {Column.STATE, Column.CONVERSATION} <= table.columns
