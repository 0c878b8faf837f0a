"""Whom nobody answers, and how often anybody is answered."""

import pytest

from channels.email.robots import HOUR_S, SENDER_CAPPED, Caps, reason_to_ignore
from zeroclaw import Language, Mail, parse_mail

ROBOTS = (
    ("auto-submitted", "auto-replied"),
    ("Auto-Submitted", "auto-generated; owner-email=x"),
    *(("precedence", one) for one in ("Bulk", "junk", " list", "auto_reply")),
    ("list-id", "<everybody.a.example>"),
    ("list-unsubscribe", "<mailto:x@a.example>"),
    ("return-path", "<>"),
    *(("x-auto-response-suppress", one) for one in ("DR, AutoReply", "All")),
    ("x-loop", "ann@a.example"),
    *((f"x-{one}", "yes") for one in ("autoreply", "autorespond", "auto-reply-from")),
    *((f"x-{one}", "yes") for one in ("mail-autoreply", "mailer-daemon")),
)
MACHINES = (
    *("mailer-daemon", "postmaster", "bounce", "bounces", "noreply", "no-reply", "no_reply"),
    *("donotreply", "do-not-reply", "do_not_reply", "autoreply", "auto-reply"),
    *("listserv", "majordomo"),
)


def why(headers: dict[str, str], *, kind: str = "text/plain", sender: str = "ann@a.example") -> str:
    found = {name.lower(): (value,) for name, value in headers.items()}
    mail = Mail(headers=found, kind=kind, parts=(), raw=b"")
    return reason_to_ignore(mail, sender=sender, own="bot@zero.test")


@pytest.mark.parametrize(("name", "value"), ROBOTS)
def test_what_a_machine_wrote_is_not_answered(name: str, value: str) -> None:
    """RFC 3834, section 2, and what machines say beyond it."""
    assert why({name: value})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"auto-submitted": "no"},
        {"auto-submitted": "No ; owner-email=x"},
        {"precedence": "first-class"},
        {"return-path": "<ann@a.example>"},
        {"x-auto-response-suppress": "DR, OOF"},
        {"x-auto-response-suppress": "none-at-all"},
    ],
)
def test_what_a_person_wrote_is(headers: dict[str, str]) -> None:
    assert why(headers) == ""


def test_a_reaction_to_a_mail_is_not_answered() -> None:
    """A thumb up in Gmail is a mail; a turn was begun for it, and answered by mail."""
    mail = parse_mail(
        b"From: Ann <ann@a.example>\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n"
        b"--b\r\nContent-Type: text/plain\r\n\r\n:) Ann reacted via Gmail\r\n"
        b"--b\r\nContent-Type: text/vnd.google.email-reaction+json\r\n\r\n{}\r\n--b--\r\n"
    )
    assert reason_to_ignore(mail, sender="ann@a.example", own="bot@zero.test") == "a reaction"


def test_a_bounce_is_not_answered() -> None:
    assert why({}, kind="multipart/report") == "a report"
    assert why({"return-path": "<MAILER-DAEMON@a.example>"}) == "from a robot"


@pytest.mark.parametrize("machine", MACHINES)
def test_what_comes_from_a_machines_address_is_not_answered(machine: str) -> None:
    assert why({}, sender=f"{machine}@a.example") == "from a robot"
    assert why({}, sender=f"{machine}x@a.example") == ""


def test_our_own_mail_is_not_answered() -> None:
    assert why({}, sender="bot@zero.test") == "it is our own"
    assert why({"return-path": "<bot@zero.test>"}) == "it is our own"


def test_a_sender_is_answered_so_often_within_an_hour() -> None:
    caps = Caps(of_sender=2, of_all=100)
    for at in (0.0, 1.0):
        assert caps.state("ann", at) == "free"
        caps.count("ann", at)
    assert caps.state("ann", HOUR_S - 1) == "capped"
    assert caps.state("bob", HOUR_S - 1) == "free"
    assert caps.state("ann", HOUR_S) == "free"


def test_more_than_the_account_answers_in_an_hour_stops_it() -> None:
    """Robots that write under many addresses are no sender's cap."""
    caps = Caps(of_sender=2, of_all=3)
    for number in range(3):
        caps.count(f"robot-{number}", 0.0)
    assert caps.state("ann", 1.0) == "stopped"
    assert caps.state("ann", HOUR_S) == "free"


def test_what_is_remembered_is_no_more_than_the_account_answers() -> None:
    caps = Caps(of_sender=1, of_all=3)
    for number in range(5):
        caps.count(f"sender-{number}", HOUR_S * number)
    assert caps.dump(4 * HOUR_S).count("\n") == 1
    assert caps.dump(0.0).count("\n") == 3


@pytest.mark.parametrize("language", ["en", "de"])
def test_operators_read_in_their_language_who_writes_too_often(language: Language) -> None:
    said = SENDER_CAPPED.to(language, channel="post", sender="ann@a.example", count=20)
    assert said.startswith("`post`: ann@a.example ")
    assert " 20 " in said
    assert "`sender_per_hour`" in said


def test_what_was_counted_counts_on_after_a_restart() -> None:
    """Of each sender and of all; and no longer than an hour."""
    before = Caps(of_sender=2, of_all=4)
    for at, who in ((0.0, "ann"), (10.5, "bob"), (20.0, "ann"), (30.0, "cyd")):
        before.count(who, at)
    after = Caps(of_sender=2, of_all=4)
    after.load(before.dump(40.0), 40.0)
    assert after.state("ann", 40.0) == "stopped"
    assert after.state("ann", HOUR_S + 15) == "free"
    alone = Caps(of_sender=2, of_all=100)
    alone.load(before.dump(40.0), 40.0)
    assert [alone.state(who, HOUR_S - 1) for who in ("ann", "bob")] == ["capped", "free"]
    assert alone.dump(2 * HOUR_S) == ""
    assert "ann" not in alone.dump(40.0)


def test_operators_have_each_notice_of_a_person_once_until_the_person_is_answered_again() -> None:
    """Also over a restart; one notice hid the other. What an earlier release kept tells of none."""
    caps = Caps(of_sender=1, of_all=100)
    for who in ("ann", "bob"):
        caps.count(who, 0.0)
    assert not caps.has_notified("capped", "ann")
    caps.note_notified("capped", "ann")
    assert not caps.has_notified("returned", "ann")
    caps.note_notified("returned", "ann")
    after = Caps(of_sender=1, of_all=100)
    after.load(caps.dump(2 * HOUR_S), 2 * HOUR_S)
    assert [after.has_notified("returned", who) for who in ("ann", "bob")] == [True, False]
    assert after.has_notified("capped", "ann")
    after.count("ann", 2 * HOUR_S)
    assert not after.has_notified("capped", "ann")
    assert not after.has_notified("returned", "ann")


def test_who_is_forgotten_is_told_of_once_more() -> None:
    """What is remembered of senders stays bounded."""
    caps = Caps(of_sender=1, of_all=3)
    for number in range(4):
        caps.note_notified("capped", f"sender-{number}")
    assert [caps.has_notified("capped", f"sender-{number}") for number in (0, 1)] == [False, True]


def test_a_note_that_is_none_and_a_clock_that_was_set_back_block_nobody_for_long() -> None:
    caps = Caps(of_sender=1, of_all=100)
    caps.load("ann\n\nx -1\nx y\nx 1e9\nx 9999999999\nann 1 tol\nx capped", 100.0)
    assert caps.dump(100.0) == "x 100.0\nx capped\n"
    assert caps.dump(100.0 + HOUR_S) == "x capped\n"
