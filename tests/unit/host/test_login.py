"""One-time links and the sessions that they open."""

from datetime import timedelta

import pytest

from tests.fakes.manual_clock import EPOCH
from zeroclaw.errors import StoreUnusable
from zeroclaw.host.login import (
    LINK_KEPT,
    MOST_LINKS,
    MOST_SESSIONS,
    SESSION_KEPT,
    Logins,
    hash_of,
    is_open,
    read_sessions,
    redeem,
    with_link,
    without,
    write_sessions,
)
from zeroclaw.value import replace

INSTANT = timedelta(microseconds=1)


def logged_in(session: str = "session") -> Logins:
    logins = redeem(with_link(Logins(), "link", EPOCH), "link", session, EPOCH)
    assert logins is not None
    return logins


def test_a_link_opens_one_session_once() -> None:
    logins = logged_in()
    assert is_open(logins, ["session"], EPOCH)
    assert redeem(logins, "link", "another", EPOCH) is None


def test_a_link_that_nobody_made_opens_nothing() -> None:
    assert redeem(Logins(), "guess", "session", EPOCH) is None
    assert not is_open(logged_in(), ["guess"], EPOCH)
    assert not is_open(logged_in(), ["", "another"], EPOCH)


def test_a_link_ends_unused_after_its_day() -> None:
    made = with_link(Logins(), "link", EPOCH)
    assert redeem(made, "link", "session", EPOCH + LINK_KEPT) is None
    assert redeem(made, "link", "session", EPOCH + LINK_KEPT - INSTANT) is not None


def test_a_session_ends_after_thirty_days() -> None:
    logins = logged_in()
    assert is_open(logins, ["session"], EPOCH + SESSION_KEPT - INSTANT)
    assert not is_open(logins, ["session"], EPOCH + SESSION_KEPT)


def test_sessions_survive_a_restart_and_links_do_not() -> None:
    """What is stored opens the same sessions, and holds no token in clear."""
    logins = with_link(replace(logged_in("the-session"), path="secret"), "fresh", EPOCH)
    body = write_sessions(logins)
    again = read_sessions(body)
    assert is_open(again, ["the-session"], EPOCH)
    assert redeem(again, "fresh", "another", EPOCH) is None
    assert b"the-session" not in body
    assert again.path == "secret"


def test_sessions_of_a_release_without_a_path_have_ended() -> None:
    """Browsers sent their cookies to every port of this machine."""
    stored = b'{"sessions":[{"hash":"%s","ends_at":"2999-01-01T00:00:00+00:00"}]}'
    body = stored % hash_of("the-session").encode()
    assert read_sessions(body) == Logins()


def test_sessions_are_ended_one_by_one() -> None:
    """One of those that a browser carries is enough to be in, and all of them end."""
    both = redeem(with_link(logged_in("one"), "link", EPOCH), "link", "two", EPOCH)
    assert both is not None
    assert is_open(without(both, ["two"]), ["two", "one"], EPOCH)
    assert not is_open(without(both, ["two", "one", "more"]), ["one", "two"], EPOCH)


def test_a_stored_body_that_is_none_is_a_fault() -> None:
    with pytest.raises(StoreUnusable):
        read_sessions(b"[]")


def test_links_and_sessions_are_bounded_and_the_newest_stay() -> None:
    logins = Logins()
    for number in range(MOST_LINKS + 1):
        logins = with_link(logins, f"link {number}", EPOCH)
    assert len(logins.links) == MOST_LINKS
    assert redeem(logins, "link 0", "session", EPOCH) is None
    for number in range(MOST_SESSIONS + 1):
        opened = redeem(with_link(logins, "link", EPOCH), "link", f"session {number}", EPOCH)
        assert opened is not None
        logins = opened
    assert len(logins.sessions) == MOST_SESSIONS
    assert is_open(logins, [f"session {MOST_SESSIONS}"], EPOCH)
