"""Mail that is not answered, and caps on answers per hour."""

import pytest

from channels.email.identity import digest
from channels.email.robots import HOUR_S, SENDER_CAPPED, Caps, reason_to_ignore
from zeroclaw import Language, Mail, parse_mail

ROBOTS = (
    ("auto-submitted", "auto-replied"),
    ("Auto-Submitted", "auto-generated; owner-email=x"),
    *(("precedence", value) for value in ("Bulk", "junk", " list", "auto_reply")),
    ("list-id", "<everybody.a.example>"),
    ("list-unsubscribe", "<mailto:x@a.example>"),
    ("return-path", "<>"),
    *(("x-auto-response-suppress", value) for value in ("DR, AutoReply", "All")),
    ("x-loop", "ann@a.example"),
    *((f"x-{name}", "yes") for name in ("autoreply", "autorespond", "auto-reply-from")),
    *((f"x-{name}", "yes") for name in ("mail-autoreply", "mailer-daemon")),
)
MACHINES = (
    *("mailer-daemon", "postmaster", "bounce", "bounces", "noreply", "no-reply", "no_reply"),
    *("donotreply", "do-not-reply", "do_not_reply", "autoreply", "auto-reply"),
    *("listserv", "majordomo"),
)


def reason_to_skip(
    headers: dict[str, str], *, kind: str = "text/plain", sender: str = "ann@a.example"
) -> str:
    named = tuple((name.lower(), value) for name, value in headers.items())
    mail = Mail(headers=named, kind=kind, parts=(), raw=b"")
    return reason_to_ignore(mail, sender=sender, own="bot@zero.test")


@pytest.mark.parametrize(("name", "value"), ROBOTS)
def test_automatic_mail_is_not_answered(name: str, value: str) -> None:
    """By RFC 3834, section 2, and further headers of machines."""
    assert reason_to_skip({name: value})


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
def test_a_persons_mail_is_answered(headers: dict[str, str]) -> None:
    assert reason_to_skip(headers) == ""


def test_a_reaction_to_a_mail_is_not_answered() -> None:
    """A thumbs-up in Gmail is a mail; it used to begin a turn, and be answered by mail."""
    mail = parse_mail(
        b"From: Ann <ann@a.example>\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n"
        b"--b\r\nContent-Type: text/plain\r\n\r\n:) Ann reacted via Gmail\r\n"
        b"--b\r\nContent-Type: text/vnd.google.email-reaction+json\r\n\r\n{}\r\n--b--\r\n"
    )
    assert reason_to_ignore(mail, sender="ann@a.example", own="bot@zero.test") == "a reaction"


def test_a_bounce_is_not_answered() -> None:
    assert reason_to_skip({}, kind="multipart/report") == "a report"
    assert reason_to_skip({"return-path": "<MAILER-DAEMON@a.example>"}) == "from a robot"


@pytest.mark.parametrize("machine", MACHINES)
def test_mail_from_a_machines_address_is_not_answered(machine: str) -> None:
    assert reason_to_skip({}, sender=f"{machine}@a.example") == "from a robot"
    assert reason_to_skip({}, sender=f"{machine}x@a.example") == ""


def test_our_own_mail_is_not_answered() -> None:
    assert reason_to_skip({}, sender="bot@zero.test") == "it is our own"
    assert reason_to_skip({"return-path": "<bot@zero.test>"}) == "it is our own"


def test_the_answers_to_a_sender_are_capped_per_hour() -> None:
    caps = Caps(of_sender=2, of_all=100)
    for at in (0.0, 1.0):
        assert caps.state("ann", at) == "free"
        caps.count("ann", at)
    assert caps.state("ann", HOUR_S - 1) == "capped"
    assert caps.state("bob", HOUR_S - 1) == "free"
    assert caps.state("ann", HOUR_S) == "free"


def test_the_accounts_cap_stops_the_channel() -> None:
    """A sender's cap does not stop robots that write under many addresses."""
    caps = Caps(of_sender=2, of_all=3)
    for number in range(3):
        caps.count(f"robot-{number}", 0.0)
    assert caps.state("ann", 1.0) == "stopped"
    assert caps.state("ann", HOUR_S) == "free"


def test_the_memory_of_senders_is_bounded_by_the_accounts_cap() -> None:
    caps = Caps(of_sender=1, of_all=3)
    for number in range(5):
        caps.count(f"sender-{number}", 600.0 * number)
    assert caps.dump(2400.0).count("\n") == 3
    assert caps.dump(2400.0 + HOUR_S - 1).count("\n") == 1


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_notice_of_a_capped_sender_is_localized(language: Language) -> None:
    notice = SENDER_CAPPED.to(language, channel="post", sender="ann@a.example", count=20)
    assert notice.startswith("`post`: ann@a.example ")
    assert " 20 " in notice
    assert "`sender_per_hour`" in notice


def test_counts_survive_a_restart() -> None:
    """Those of each sender and of all, for an hour at most."""
    before = Caps(of_sender=2, of_all=4)
    for at, sender in ((0.0, "ann"), (10.5, "bob"), (20.0, "ann"), (30.0, "cyd")):
        before.count(sender, at)
    after = Caps(of_sender=2, of_all=4)
    after.load(before.dump(40.0), 40.0)
    assert after.state("ann", 40.0) == "stopped"
    assert after.state("ann", HOUR_S + 15) == "free"
    alone = Caps(of_sender=2, of_all=100)
    alone.load(before.dump(40.0), 40.0)
    assert [alone.state(sender, HOUR_S - 1) for sender in ("ann", "bob")] == ["capped", "free"]
    assert alone.dump(2 * HOUR_S) == ""
    assert "ann" not in alone.dump(40.0)


def is_noted(caps: Caps, notice: str, person: str) -> bool:
    return (digest(person), notice) in caps.notified


def test_each_notice_of_a_person_is_sent_once_until_their_next_answer() -> None:
    """Also after a restart; one notice used to hide the other. An earlier release's file has
    none."""
    caps = Caps(of_sender=1, of_all=100)
    for sender in ("ann", "bob"):
        caps.count(sender, 0.0)
    assert not is_noted(caps, "capped", "ann")
    caps.notified[digest("ann"), "capped"] = True
    assert not is_noted(caps, "returned", "ann")
    caps.notified[digest("ann"), "returned"] = True
    after = Caps(of_sender=1, of_all=100)
    after.load(caps.dump(2 * HOUR_S), 2 * HOUR_S)
    assert [is_noted(after, "returned", sender) for sender in ("ann", "bob")] == [True, False]
    assert is_noted(after, "capped", "ann")
    after.count("ann", 2 * HOUR_S)
    assert not is_noted(after, "capped", "ann")
    assert not is_noted(after, "returned", "ann")


def test_a_dropped_sender_is_reported_once_more() -> None:
    """The memory of senders is bounded."""
    caps = Caps(of_sender=1, of_all=3)
    for number in range(4):
        caps.notified[digest(f"sender-{number}"), "capped"] = True
    assert [is_noted(caps, "capped", f"sender-{number}") for number in (0, 1)] == [False, True]


def test_counts_of_a_clock_that_was_ahead_cap_no_one() -> None:
    """They used to count until the clock got there again, and then stopped the channel."""
    caps, ahead = Caps(of_sender=1, of_all=1), 400 * 24 * HOUR_S
    caps.count("ann", ahead)
    assert caps.state("ann", ahead - HOUR_S + 1) == "stopped"
    assert caps.state("ann", 0.0) == "free"
    assert caps.dump(0.0) == ""


def test_an_invalid_note_or_a_clock_set_back_blocks_no_one_for_long() -> None:
    caps = Caps(of_sender=1, of_all=100)
    caps.load("ann\n\nx -1\nx y\nx 1e9\nx 9999999999\nann 1 tol\nx capped", 100.0)
    assert caps.dump(100.0) == "x 100.0\nx capped\n"
    assert caps.dump(100.0 + HOUR_S) == "x capped\n"
