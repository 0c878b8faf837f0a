"""Every kind of row is declared by a room: how long it stays, whose words it holds."""

import pytest

from zeroclaw.retention.tables import OF_CONVERSATIONS, OF_WRITERS, TABLES
from zeroclaw.store import RowKind
from zeroclaw.table import Ages, Column, Stays, UntilDue, Words


@pytest.mark.parametrize("kind", RowKind)
def test_every_kind_of_row_is_declared(kind: RowKind) -> None:
    """A kind that no table declares would stay for ever, and nobody would erase it."""
    table = TABLES[kind]

    match table.keeps:
        case Stays(until=until):
            assert until
        case Ages():
            assert Column.STATE in table.columns or not table.keeps.ended
        case UntilDue():
            assert Column.DUE_AT in table.columns


@pytest.mark.parametrize("kind", RowKind)
def test_words_of_a_writer_are_found_by_conversation_and_by_writer(kind: RowKind) -> None:
    """What one of several people said goes when they wish it, and nothing else does."""
    table = TABLES[kind]

    is_a_writers = table.words is Words.WRITER
    assert is_a_writers == (table.whose is not None)
    assert is_a_writers == (kind in {one.kind for one, _ in OF_WRITERS})
    if table.words in {Words.WRITER, Words.CONVERSATION}:
        assert table in OF_CONVERSATIONS
    if table.busy:
        assert {Column.STATE, Column.CONVERSATION} <= table.columns
