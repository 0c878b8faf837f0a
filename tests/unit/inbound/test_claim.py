"""The first operator: the printed code counts once, in time, and for few guesses."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.inbound.pairing import Claim, Guess, guess, open_claim

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CODE, WRONG = "ABCD2345", "WXYZ9876"
OPEN = open_claim(CODE, salt="5a17", now=NOW)


def after(*texts: str, sender: str = "s", channel: str = "chat") -> tuple[Claim, list[Guess]]:
    """What a stranger's texts come to, one after another."""
    claim, found = OPEN, list[Guess]()
    for text in texts:
        claim, one = guess(claim, text, channel=channel, sender=sender, now=NOW)
        found.append(one)
    return claim, found


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([CODE], ["right"]),
        ([" abcd2345 "], ["right"]),
        (["hello", f"the code is {CODE}"], ["none", "none"]),
        ([WRONG, CODE], ["wrong", "right"]),
        ([CODE, CODE, WRONG], ["right", "none", "none"]),
        ([WRONG] * 5 + [CODE], ["wrong"] * 6),
    ],
)
def test_what_texts_come_to(texts: list[str], found: list[Guess]) -> None:
    """Exactly the code, once; past five wrong ones nobody's right one counts."""
    assert after(*texts)[1] == found


@pytest.mark.parametrize(("minutes", "found"), [(59, "right"), (60, "none"), (61, "none")])
def test_it_holds_for_an_hour(minutes: int, found: Guess) -> None:
    """An expired code does nothing."""
    at = NOW + timedelta(minutes=minutes)
    assert guess(OPEN, CODE, channel="chat", sender="s", now=at)[1] == found


def test_a_channel_has_a_limit_of_its_own() -> None:
    """A crowd of senders gets twenty guesses; other channels are not shut out by them."""
    claim = OPEN
    for number in range(20):
        claim, _ = guess(claim, WRONG, channel="chat", sender=f"s{number}", now=NOW)
    assert guess(claim, CODE, channel="chat", sender="owner", now=NOW) == (claim, "wrong")
    assert guess(claim, CODE, channel="mail", sender="owner", now=NOW)[1] == "right"


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from((CODE, WRONG, "hello"))), max_size=80))
def test_it_is_never_used_twice_and_never_remembers_much(events: list[tuple[int, str]]) -> None:
    """In any order of senders and texts; what is kept is bounded."""
    claim, rights = OPEN, 0
    for who, text in events:
        claim, found = guess(claim, text, channel="chat", sender=f"s{who}", now=NOW)
        rights += found == "right"
        assert claim.used == (rights == 1)
        assert rights <= 1
        assert len(claim.guesses) <= 20
