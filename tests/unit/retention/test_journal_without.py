"""A journal without one person's turns."""

from datetime import UTC, datetime

from tests.fakes.journals import fold
from zeroclaw.envelope import ItemId, Principal, TurnId
from zeroclaw.message import NO_USAGE, AssistantMessage, UserMessage
from zeroclaw.retention.policy import journal_without
from zeroclaw.turn import entries
from zeroclaw.turn.states import Limits

AT = datetime(2026, 1, 1, tzinfo=UTC)
SUMMARY = entries.Compacted(summary="they met", kept=0, at=AT)
NOTE = entries.Noted(text="edited", why="edit", at=AT)


def turn(name: str, *within: entries.Entry) -> tuple[entries.Entry, ...]:
    """A whole turn that a person began."""
    who = Principal(
        id=f"person:{name}", roles=frozenset(), channel="chat", sender=name, display=name
    )
    opened = entries.TurnOpened(
        turn=TurnId(name),
        item=ItemId(name),
        principal=who,
        correlation="c",
        user=UserMessage(content=f"from {name}"),
        limits=Limits(max_rounds=5),
        at=AT,
    )
    answer = AssistantMessage(content=f"for {name}")
    finished = entries.TurnFinished(reason="model_stop", usage=NO_USAGE, at=AT, message=answer)
    return (opened, *within, finished)


def test_only_their_turns_go() -> None:
    """What follows a turn up to the next one goes with it, and what stays folds."""
    journal = (NOTE, *turn("ada"), *turn("ben"), NOTE, *turn("ada"))
    left = journal_without(journal, "person:ben")
    assert left is not None
    assert left == (NOTE, *turn("ada"), *turn("ada"))
    history = fold(left)
    assert history.turn is None
    texts = [one.content for one in history.messages]
    assert texts == ["edited", "from ada", "for ada", "from ada", "for ada"]


def test_summaries_go_wherever_they_stand() -> None:
    """They are of everybody's words; what they stood for is read in full again."""
    left = journal_without((*turn("ben"), *turn("ada", SUMMARY)), "person:ben")
    assert left == turn("ada")


def test_a_journal_without_them_is_left_as_it_is() -> None:
    """Nothing has to be written, a summary included."""
    assert journal_without((*turn("ada", SUMMARY), NOTE), "person:ben") is None
    assert journal_without((), "person:ben") is None
