"""What is said of answers that come late."""

from datetime import UTC, datetime, timedelta

from tests.unit.turn.test_pieces import item
from zeroclaw.turn.inbox import Ask
from zeroclaw.turn.lateness import LATE_S, for_people, for_the_model, late_s
from zeroclaw.value import replace

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
ASKED = replace(item("1", Ask(text="hello")), admitted_at=NOW)


def test_a_short_wait_is_not_spoken_of() -> None:
    """Nor one that a clock made up which was set back."""
    assert late_s(ASKED, NOW + timedelta(seconds=LATE_S)) == 0
    assert late_s(ASKED, NOW - timedelta(hours=1)) == 0
    assert for_people(0, "en") == for_the_model(ASKED, 0) == ""


def test_a_long_wait_counts_from_when_it_was_written() -> None:
    """The platform knows that; where it does not say, from when it came."""
    sent = replace(ASKED, sent_at=NOW - timedelta(hours=2, minutes=5))
    waited_s = late_s(sent, NOW)
    assert waited_s == 7500
    assert (
        for_the_model(sent, waited_s)
        == "[written 2026-11-22 09:55 UTC, 2 h 5 min before you read it]\n"
    )
    assert for_people(waited_s, "en") == "_Answered 2 h 5 min after it was written._"
    assert late_s(ASKED, NOW + timedelta(seconds=601)) == 601
    assert for_the_model(ASKED, 601).startswith("[written 2026-11-22 12:00 UTC, 11 min ")
