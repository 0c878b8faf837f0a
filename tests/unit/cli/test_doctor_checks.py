"""What `doctor` makes of what it found: each check, what is well and what is not."""

import platform
from datetime import UTC, datetime, timedelta

import pytest

from zeroclaw.cli.doctor.checks import (
    Disk,
    Facts,
    Line,
    Verdict,
    exit_code,
    fail,
    in_words,
    ok,
    run_checks,
    warn,
)
from zeroclaw.cli.doctor.health import Failing, Health
from zeroclaw.cli.doctor.probes import versions
from zeroclaw.envelope import ConversationId
from zeroclaw.host.answers import ChannelSeen, Errors, ModelSeen, Status, Trouble
from zeroclaw.inbound.commands.halt import Halt
from zeroclaw.value import replace

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
MB = 1_000_000
UP = ChannelSeen(condition="up", since=NOW - timedelta(hours=3))
DISK = Disk(place="/data", free_bytes=9000 * MB, used_bytes=10 * MB, bound_bytes=2048 * MB)
WELL = Facts(
    now=NOW,
    version="0.1.0",
    status=Status(version="0.1.0", channels={"web": UP}),
    store=Health(newest_at=NOW),
    disk=DISK,
    enabled=("web",),
    sandbox="",
    found=(
        ok("configuration", "/c.toml: no faults"),
        ok("provider", "`m` of http://h/v1: it answers"),
        ok("permissions", "data and secrets are this user's alone"),
        ok("versions", "zeroclaw 0.1.0"),
    ),
)


def told(check: str, facts: Facts) -> list[tuple[Verdict, str]]:
    """The verdicts and whole sentences of one check."""
    return [(line.verdict, _sentence(line)) for line in run_checks(facts) if line.check == check]


def _sentence(line: Line) -> str:
    return f"{line.text}; {line.remedy}" if line.remedy else line.text


def with_daemon(**met: object) -> Facts:
    return replace(WELL, errors=Errors(**met))  # type: ignore[arg-type]


def with_channel(condition: str, *, seconds: int | None, why: str = "") -> Facts:
    since = None if seconds is None else NOW - timedelta(seconds=seconds)
    seen = ChannelSeen(condition=condition, since=since, why=why)
    return replace(WELL, status=Status(version="0.1.0", channels={"web": seen}))


def with_store(**changes: object) -> Facts:
    return replace(WELL, store=replace(Health(newest_at=NOW), **changes))


def failing(number: int, place: str = "chat:1") -> Failing:
    here = ConversationId(f"C{number}")
    return Failing(conversation=here, place=place, times=4, last_at=NOW - timedelta(minutes=2))


def test_where_all_is_well_every_check_says_so() -> None:
    """One line each, and the exit code is 0."""
    lines = run_checks(WELL)
    assert [line.check for line in lines] == [
        "configuration",
        "daemon",
        "halt",
        "provider",
        "channels",
        "sandbox",
        "store",
        "approvals",
        "conversations",
        "delivery",
        "disk",
        "clock",
        "permissions",
        "versions",
        "errors",
    ]
    assert {line.verdict for line in lines} == {"ok"}
    assert exit_code(lines) == 0
    assert in_words(lines[4]) == "ok    channels       `web` up for 3 h"


def test_the_exit_code_is_that_of_failures_alone() -> None:
    """A warning is no failure."""
    assert exit_code((Line(check="x", verdict="warn", text="y"),)) == 0
    assert exit_code((Line(check="x", verdict="fail", text="y", remedy="z"),)) == 1


def test_a_line_stays_one_line() -> None:
    """Whatever was found, and with its remedy."""
    line = Line(check="x", verdict="fail", text="y\nz", remedy="mend it")
    assert in_words(line) == "fail  x              y z; mend it"


CHANNEL_LATER = "it is tried again; check that this machine reaches the platform"
CHANNEL_MEND = "mend it in the configuration, then restart `zeroclaw run`"

TABLE: tuple[tuple[str, Facts, Verdict, str], ...] = (
    ("daemon", replace(WELL, status="none runs"), "warn", "none runs"),
    (
        "daemon",
        replace(WELL, status=Status(version="0.0.9")),
        "warn",
        "0.0.9 runs, 0.1.0 is installed; restart `zeroclaw run`",
    ),
    (
        "halt",
        with_store(halt=Halt(by="ada", at=NOW - timedelta(days=2))),
        "warn",
        "everything was halted by ada 2 d ago; `zeroclaw resume` goes on",
    ),
    ("halt", replace(WELL, store=None), "ok", "none in force"),
    ("channels", replace(WELL, status="none runs"), "ok", "web; they start with the daemon"),
    ("channels", with_channel("starting", seconds=5), "ok", "`web` starting for 5 s"),
    ("channels", with_channel("starting", seconds=None), "ok", "`web` starting"),
    (
        "channels",
        with_channel("starting", seconds=90),
        "fail",
        f"`web` starting for 1 min; {CHANNEL_LATER}",
    ),
    (
        "channels",
        with_channel("waiting", seconds=-9, why="no route"),
        "fail",
        f"`web` waiting for 0 s: no route; {CHANNEL_LATER}",
    ),
    (
        "channels",
        with_channel("down", seconds=1, why="bad token"),
        "fail",
        f"`web` down for 1 s: bad token; {CHANNEL_MEND}",
    ),
    (
        "channels",
        replace(WELL, status=Status(version="0.1.0")),
        "warn",
        "`web` is configured, and the running daemon does not know it; restart `zeroclaw run`",
    ),
    (
        "channels",
        replace(WELL, enabled=(), status="none runs"),
        "fail",
        "none is switched on, so nobody can write to the bot; set `enabled = true` for one",
    ),
    (
        "sandbox",
        replace(WELL, sandbox=None),
        "ok",
        "not needed: no shell, and no reading of attachments",
    ),
    ("sandbox", with_daemon(), "ok", "works"),
    ("sandbox", with_daemon(watched=""), "ok", "works; a cgroup of its own limits each command"),
    (
        "sandbox",
        with_daemon(watched="other programs share its cgroup"),
        "ok",
        "works; limits of each process and a watch bound a command, because "
        "other programs share its cgroup",
    ),
    ("sandbox", replace(WELL, sandbox="no bwrap: get it"), "warn", "none: no bwrap: get it"),
    (
        "sandbox",
        with_daemon(sandbox="no bwrap"),
        "warn",
        "the daemon found none at its start: no bwrap; mend it, then restart `zeroclaw run`",
    ),
    (
        "user",
        replace(WELL, is_root=True),
        "warn",
        "zeroclaw runs as root, so a fault in it endangers the whole machine; "
        "run it as a user of its own, as `deploy/zeroclaw.service` does",
    ),
    ("store", replace(WELL, store=None), "ok", "nothing yet, before the first start"),
    ("store", replace(WELL, store="broken; restore it"), "fail", "broken; restore it"),
    (
        "approvals",
        with_store(
            pending=2,
            oldest_at=NOW - timedelta(minutes=9),
            next_deadline_at=NOW + timedelta(minutes=4),
        ),
        "warn",
        "2 to answer, the oldest asked 9 min ago, soon to expire in 4 min; "
        "`/pending` in an approver's chat lists them",
    ),
    (
        "approvals",
        with_store(pending=1, next_deadline_at=NOW + timedelta(hours=1)),
        "warn",
        "1 to answer, first to expire in 1 h; `/pending` in an approver's chat lists them",
    ),
    (
        "approvals",
        with_store(pending=1, next_deadline_at=NOW),
        "warn",
        "1 to answer, one has expired; `/pending` in an approver's chat lists them",
    ),
    (
        "approvals",
        with_store(pending=1),
        "warn",
        "1 to answer; `/pending` in an approver's chat lists them",
    ),
    (
        "conversations",
        with_store(failing=(failing(1),)),
        "warn",
        "C1 in chat:1 failed 4 times in a row, last 2 min ago; "
        "`/new` there starts afresh; `zeroclaw export C1` shows it",
    ),
    (
        "delivery",
        with_store(stuck=2, refused=3),
        "warn",
        "2 messages are still not sent after five minutes; they are sent as soon as their channel is up",
    ),
    (
        "delivery",
        with_store(refused=3),
        "warn",
        "platforms refused 3 messages in the last day; "
        "look at the last errors, and at the bot's permissions in that chat",
    ),
    (
        "disk",
        replace(WELL, disk=None),
        "warn",
        "the free space is unknown; check that the data directory can be read",
    ),
    (
        "disk",
        replace(WELL, disk=replace(DISK, free_bytes=99 * MB)),
        "fail",
        "99 MB free on /data; make room there, or move `data_dir`",
    ),
    (
        "disk",
        replace(WELL, disk=replace(DISK, used_bytes=3000 * MB)),
        "warn",
        "3,000 MB are stored, more than the 2,048 MB of retention.max_disk_mb; "
        "raise it, or shorten the days of `[retention]`",
    ),
    (
        "disk",
        replace(WELL, disk=replace(DISK, free_bytes=2000 * MB)),
        "warn",
        "2,000 MB free on /data, and what is stored may grow by 2,038 MB; "
        "make room there, or lower retention.max_disk_mb",
    ),
    (
        "disk",
        replace(WELL, disk=replace(DISK, bound_bytes=0)),
        "ok",
        "9,000 MB free on /data, 10 MB stored, without a limit",
    ),
    (
        "clock",
        with_store(newest_at=NOW + timedelta(hours=2)),
        "fail",
        "it is 2 h behind the newest stored message; "
        "set this machine's time; until then deadlines and ages are wrong",
    ),
    ("clock", with_store(newest_at=NOW + timedelta(seconds=60)), "ok", "2026-01-02 12:00 UTC"),
)


def test_a_database_library_with_a_known_bug_is_told() -> None:
    """No warning: it takes a second program that writes."""
    here = f"zeroclaw 0.1.0, Python {platform.python_version()}, SQLite"
    assert versions("0.1.0", (3, 51, 3)) == ok("versions", f"{here} 3.51.3")
    assert versions("0.1.0", (3, 40, 1)).text == (
        f"{here} 3.40.1 (do not open the database with another program while zeroclaw runs; 3.51.3 fixes this)"
    )


@pytest.mark.parametrize(
    ("failures", "verdict", "often"),
    [
        (1, "warn", "the last request"),
        (2, "warn", "the last 2 requests"),
        (6, "fail", "the last 6 requests"),
    ],
)
def test_what_the_daemon_met_at_the_model_is_told(
    failures: int, verdict: Verdict, often: str
) -> None:
    """Whether or not it answers now: who writes to the bot was not answered (P10)."""
    at = NOW - timedelta(minutes=2)
    met = ModelSeen(failures=failures, at=at, why="`h:9` can't be reached: connection refused")
    assert told("provider", with_daemon(model=met))[1] == (
        verdict,
        f"{often} to it failed, the newest 2 min ago: `h:9` can't be reached: connection refused",
    )


@pytest.mark.parametrize(("check", "facts", "verdict", "text"), TABLE)
def test_a_finding_is_judged(check: str, facts: Facts, verdict: Verdict, text: str) -> None:
    """P10: what is wrong, where, and what to do."""
    assert told(check, facts)[0] == (verdict, text)


def test_of_a_broken_configuration_nobody_says_that_no_sandbox_is_needed() -> None:
    """Nobody knows yet which tools it switches on."""
    lines = run_checks(replace(WELL, sandbox=None, enabled=None))
    assert [line for line in lines if line.check == "sandbox"] == []


def test_what_a_channels_own_check_found_is_told() -> None:
    """Beside what the daemon says of it."""
    accounts = (ok("channels", "`a`: @bot"), fail("channels", "`b`: no; do"))
    assert told("channels", replace(WELL, accounts=accounts))[1:] == [
        ("ok", "`a`: @bot"),
        ("fail", "`b`: no; do"),
    ]


def test_what_was_judged_where_it_was_met_has_its_place() -> None:
    """All faults at once, before what hangs on them, which is not blamed."""
    found = (warn("provider", "not looked at"), fail("configuration", "a"))
    facts = replace(WELL, found=(*found, fail("configuration", "b")), enabled=None)
    assert [line.text for line in run_checks(facts)][:2] == ["a", "b"]
    assert told("provider", facts) == [("warn", "not looked at")]
    assert told("channels", facts) == [("ok", "`web` up for 3 h")]
    assert told("channels", replace(facts, status="none runs")) == []


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        (
            with_daemon(secrets=frozenset({"api_key"})),
            ("ok", "api_key is not known in this shell; the running daemon has it"),
        ),
        (
            with_daemon(),
            ("fail", "it is not set; if a service starts zeroclaw, check that it is set there"),
        ),
        (
            replace(WELL, status="no daemon is running"),
            ("fail", "it is not set; if a service starts zeroclaw, check that it is set there"),
        ),
    ],
)
def test_a_secret_that_this_shell_lacks_is_a_fault_where_no_daemon_has_it(
    facts: Facts, line: tuple[Verdict, str]
) -> None:
    """Who asks in another shell is not sent to look for what is there."""
    assert told("secrets", replace(facts, missing={"api_key": "it is not set"})) == [line]


def test_the_same_error_is_told_once_with_how_often() -> None:
    """So that it hides no other."""
    troubles = tuple(
        Trouble(at=NOW - timedelta(seconds=9 - n), level="error", text=text)
        for n, text in enumerate(("a", "b", "a", "a"))
    )
    assert told("errors", with_daemon(errors=troubles)) == [
        ("warn", "6 s ago (3 times), error: a"),
        ("warn", "8 s ago, error: b"),
    ]


def test_the_newest_errors_come_first_and_three_of_them() -> None:
    """Enough to begin with; the log has all."""
    troubles = tuple(
        Trouble(at=NOW - timedelta(seconds=9 - n), level="error", text=f"e{n}") for n in range(5)
    )
    assert told("errors", with_daemon(errors=troubles)) == [
        ("warn", "5 s ago, error: e4"),
        ("warn", "6 s ago, error: e3"),
        ("warn", "7 s ago, error: e2"),
    ]
    assert told("errors", replace(WELL, status="none runs")) == []


def test_many_conversations_that_fail_are_counted() -> None:
    """Three are named: more than that is the provider's fault, or ours."""
    lines = told("conversations", with_store(failing=tuple(failing(n, "") for n in range(5))))
    assert [text.partition(" failed ")[0] for _, text in lines] == [
        "C0 in no chat",
        "C1 in no chat",
        "C2 in no chat",
        "2 more fail again and again; look at the provider first",
    ]
