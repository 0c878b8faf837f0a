"""How `doctor` judges the facts: each check, and its verdicts."""

import json
import platform
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fakes.house import World
from tests.fakes.installed import install
from tests.fakes.scripted_model import LOOK, asks_for, says
from zeroclaw.cli import root
from zeroclaw.cli.doctor.checks import (
    MIN_FAILURES,
    CheckResult,
    Disk,
    Facts,
    Failing,
    Health,
    Verdict,
    exit_code,
    fail,
    in_words,
    ok,
    run_checks,
    warn,
)
from zeroclaw.cli.doctor.health import RECENT, STUCK, health
from zeroclaw.cli.doctor.probes import versions
from zeroclaw.clock import made_at
from zeroclaw.envelope import Address, ApprovalId, ConversationId
from zeroclaw.errors import ProviderRejected
from zeroclaw.host.answers import ChannelSeen, Errors, ModelSeen, Status, Trouble
from zeroclaw.inbound.anchors import STREAM
from zeroclaw.inbound.live_config import Halt
from zeroclaw.inbound.pairing import PairingRequest, to_put
from zeroclaw.store import Append, LogKind, Put, RowKind
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
    results=(
        ok("configuration", "/c.toml: no faults"),
        ok("provider", "`m` of http://h/v1: it answers"),
        ok("permissions", "data and secrets are this user's alone"),
        ok("versions", "zeroclaw 0.1.0"),
    ),
)


def verdicts_of(check: str, facts: Facts) -> list[tuple[Verdict, str]]:
    """The verdicts and full sentences of one check."""
    return [(line.verdict, _sentence(line)) for line in run_checks(facts) if line.check == check]


def _sentence(line: CheckResult) -> str:
    return f"{line.text}; {line.remedy}" if line.remedy else line.text


def with_daemon(**counters: object) -> Facts:
    return replace(WELL, errors=Errors(**counters))  # type: ignore[arg-type]


def with_channel(condition: str, *, seconds: int | None, reason: str = "") -> Facts:
    since = None if seconds is None else NOW - timedelta(seconds=seconds)
    seen = ChannelSeen(condition=condition, since=since, why=reason)
    return replace(WELL, status=Status(version="0.1.0", channels={"web": seen}))


def with_store(**changes: object) -> Facts:
    return replace(WELL, store=replace(Health(newest_at=NOW), **changes))


def failing(number: int, place: str = "chat:1") -> Failing:
    conversation = ConversationId(f"C{number}")
    return Failing(
        conversation=conversation, place=place, failures=4, last_at=NOW - timedelta(minutes=2)
    )


def test_a_healthy_daemon_passes_every_check() -> None:
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
        "audit",
        "disk",
        "clock",
        "permissions",
        "versions",
        "errors",
    ]
    assert {line.verdict for line in lines} == {"ok"}
    assert exit_code(lines) == 0
    assert in_words(lines[4]) == "ok    channels       `web` up for 3 h"


def test_dropped_messages_of_strangers_are_counted() -> None:
    """A person without an answer may be one of them; on a public bot that is normal."""
    status = Status(version="0.1.0", channels={"web": UP}, dropped={"web": 3})
    dropped = "`web`: messages of strangers dropped since the daemon's start: 3"
    assert verdicts_of("channels", replace(WELL, status=status))[1:] == [("ok", dropped)]


def test_the_exit_code_is_that_of_failures_alone() -> None:
    """Warnings do not count."""
    assert exit_code((CheckResult(check="x", verdict="warn", text="y"),)) == 0
    assert exit_code((CheckResult(check="x", verdict="fail", text="y", remedy="z"),)) == 1


def test_a_line_stays_one_line() -> None:
    """For any finding, with its remedy."""
    line = CheckResult(check="x", verdict="fail", text="y\nz", remedy="mend it")
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
        f"`web` starting for 90 s; {CHANNEL_LATER}",
    ),
    (
        "channels",
        with_channel("waiting", seconds=-9, reason="no route"),
        "fail",
        f"`web` waiting for 1 s: no route; {CHANNEL_LATER}",
    ),
    (
        "channels",
        with_channel("down", seconds=1, reason="bad token"),
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
        "none is enabled, so no message can reach the bot; set `enabled = true` for one",
    ),
    (
        "sandbox",
        replace(WELL, sandbox=None),
        "ok",
        "not needed: no shell, and no reading of attachments",
    ),
    ("sandbox", with_daemon(), "ok", "works"),
    ("sandbox", with_daemon(watched=""), "ok", "works; each command has a cgroup with limits"),
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
        "give it its own user, as `deploy/zeroclaw.service` does",
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
        "1 to answer, first to expire in 60 min; `/pending` in an approver's chat lists them",
    ),
    (
        "approvals",
        with_store(pending=1, next_deadline_at=NOW),
        "warn",
        "1 to answer, one has expired; `/pending` in an approver's chat lists them",
    ),
    (
        "approvals",
        with_store(pending=3, damaged=1),
        "warn",
        "3 to answer, of which 1 is damaged and can't be answered; "
        "`/pending` in an approver's chat lists the others",
    ),
    ("audit", with_store(chains=3), "ok", "newest chains checked: 3; none was changed"),
    (
        "audit",
        with_store(chains=3, broken=("`c` at entry 7: its hash is wrong",)),
        "fail",
        "`c` at entry 7: its hash is wrong; nothing from there on is proven, and receipts can't be "
        "checked; find out which program, person or disk changed it",
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
        "messages still not sent after five minutes: 2; they are sent as soon as their channel is up",
    ),
    (
        "delivery",
        with_store(refused=3),
        "warn",
        "messages that platforms refused in the last day: 3; "
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
        replace(WELL, disk=replace(DISK, used_bytes=2048 * MB + 1)),
        "warn",
        "2,049 MB are stored, more than the 2,048 MB of retention.max_disk_mb; "
        "raise it, or shorten the days of `[retention]`",
    ),
    (
        "disk",
        replace(WELL, disk=replace(DISK, free_bytes=2000 * MB)),
        "warn",
        "2,000 MB free on /data, and the store may grow by 2,038 MB; "
        "make room there, or lower retention.max_disk_mb",
    ),
    (
        "disk",
        replace(WELL, disk=replace(DISK, used_bytes=MB // 10, bound_bytes=0)),
        "ok",
        "9,000 MB free on /data, 1 MB stored, without a limit",
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


def test_a_database_library_with_a_known_bug_is_reported() -> None:
    """It is no warning: the bug needs a second writing program."""
    prefix = f"zeroclaw 0.1.0, Python {platform.python_version()}, SQLite"
    assert versions("0.1.0", (3, 51, 3)) == ok("versions", f"{prefix} 3.51.3")
    assert versions("0.1.0", (3, 40, 1)).text == (
        f"{prefix} 3.40.1 (do not open the database with another program while zeroclaw runs; 3.51.3 fixes this)"
    )


@pytest.mark.parametrize(
    ("failures", "verdict", "often"),
    [
        (1, "warn", "the last request"),
        (2, "warn", "the last 2 requests"),
        (6, "fail", "the last 6 requests"),
    ],
)
def test_the_daemons_failures_at_the_model_are_reported(
    failures: int, verdict: Verdict, often: str
) -> None:
    """Even if it answers now: people's messages failed (P10)."""
    at = NOW - timedelta(minutes=2)
    model_seen = ModelSeen(
        failures=failures, at=at, why="`h:9` can't be reached: connection refused"
    )
    assert verdicts_of("provider", with_daemon(model=model_seen))[1] == (
        verdict,
        f"{often} to it failed, the newest 2 min ago: `h:9` can't be reached: connection refused",
    )


@pytest.mark.parametrize(("check", "facts", "verdict", "text"), TABLE)
def test_a_finding_is_judged(check: str, facts: Facts, verdict: Verdict, text: str) -> None:
    """P10: the fault, its place, and the remedy."""
    assert verdicts_of(check, facts)[0] == (verdict, text)


@pytest.mark.parametrize("facts", [replace(WELL, store="broken"), Facts(now=NOW, version="")])
def test_an_unread_store_is_not_said_to_be_well(facts: Facts) -> None:
    """It may hold a halt, which is why the bot is silent."""
    (store,) = verdicts_of("store", facts)
    assert (store[0], verdicts_of("halt", facts)) == ("fail", [])


def test_a_broken_configuration_leaves_the_need_for_a_sandbox_open() -> None:
    """It is unknown which tools it enables."""
    lines = run_checks(replace(WELL, sandbox=None, enabled=None))
    assert [line for line in lines if line.check == "sandbox"] == []


def test_the_results_of_a_channels_own_check_are_listed() -> None:
    """They are listed beside the daemon's own results."""
    results = (ok("channels", "`a`: @bot"), fail("channels", "`b`: no; do"))
    assert verdicts_of("channels", replace(WELL, results=results))[:2] == [
        ("ok", "`a`: @bot"),
        ("fail", "`b`: no; do"),
    ]


def test_results_from_elsewhere_are_sorted_in() -> None:
    """All faults come before the checks that depend on them, which are not blamed."""
    results = (warn("provider", "not looked at"), fail("configuration", "a"))
    facts = replace(WELL, results=(*results, fail("configuration", "b")), enabled=None)
    assert [line.text for line in run_checks(facts)][:2] == ["a", "b"]
    assert verdicts_of("provider", facts) == [("warn", "not looked at")]
    assert verdicts_of("channels", facts) == [("ok", "`web` up for 3 h")]
    assert verdicts_of("channels", replace(facts, status="none runs")) == []


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
    """An operator in another shell is not sent to look for a secret that the daemon has."""
    assert verdicts_of("secrets", replace(facts, missing={"api_key": "it is not set"})) == [line]


def test_a_repeated_error_is_listed_once_with_its_count() -> None:
    """So it does not hide the others."""
    troubles = tuple(
        Trouble(at=NOW - timedelta(seconds=9 - n), level="error", text=text)
        for n, text in enumerate(("a", "b", "a", "a"))
    )
    assert verdicts_of("errors", with_daemon(errors=troubles)) == [
        ("warn", "6 s ago (3 times), error: a"),
        ("warn", "8 s ago, error: b"),
    ]


def test_the_three_newest_errors_are_listed_first() -> None:
    """The log has all."""
    troubles = tuple(
        Trouble(at=NOW - timedelta(seconds=9 - n), level="error", text=f"e{n}") for n in range(5)
    )
    assert verdicts_of("errors", with_daemon(errors=troubles)) == [
        ("warn", "5 s ago, error: e4"),
        ("warn", "6 s ago, error: e3"),
        ("warn", "7 s ago, error: e2"),
    ]
    assert verdicts_of("errors", replace(WELL, status="none runs")) == []


def test_many_conversations_that_fail_are_counted() -> None:
    """Three are named: more than that points to the provider, or to a bug."""
    lines = verdicts_of(
        "conversations", with_store(failing=tuple(failing(n, "") for n in range(5)))
    )
    assert [text.partition(" failed ")[0] for _, text in lines] == [
        "C0 in no chat",
        "C1 in no chat",
        "C2 in no chat",
        "2 more fail again and again; look at the provider first",
    ]


# --- health read from the store ----------------------------

CONVERSATION = ConversationId("here")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ada, who is the operator, and Ben, on one platform; nothing has been said yet."""
    return World(tmp_path)


async def rows(world: World, *states: str, kind: RowKind = RowKind.INBOX, key: str = "") -> None:
    """Put rows in these states, the oldest first, as far as the check reads."""
    writes = tuple(
        Put(
            kind=kind,
            key=key or world.ids.ulid(),
            body=b"{}",
            conversation=CONVERSATION,
            state=state,
            place="chat/ada",
        )
        for state in states
    )
    await world.store.write(*writes)


async def test_an_empty_store_reports_no_trouble(world: World) -> None:
    """Nor any times."""
    assert await health(world.store, world.clock.now()) == Health()


async def test_an_open_request_is_reported_with_its_times(world: World) -> None:
    """The time of the request, and its deadline."""
    world.model.will(asks_for(("poke", "{}")))
    async with world.running() as house:
        await house.say("poke")
        asked_at = world.clock.now()
        health_seen = await health(world.store, asked_at)
        assert (health_seen.pending, health_seen.next_deadline_at) == (
            1,
            asked_at + timedelta(seconds=world.config.approvals.timeout_s),
        )
        assert health_seen.oldest_at is not None
        assert abs(health_seen.oldest_at - asked_at) < timedelta(seconds=1)
        assert health_seen.newest_at is not None


async def test_an_open_pairing_request_is_reported_like_an_approval(world: World) -> None:
    """The stranger gets no answer until then; `status` counted it, and doctor saw nothing."""
    now = world.clock.now()
    request = PairingRequest(
        id=ApprovalId("secret"),
        channel="chat",
        sender="4711",
        display="Mallory",
        address=Address(channel="chat", account="bot", chat="4711", direct=True),
        salt="00",
        code_hash="ab" * 32,
        asked_at=now,
        deadline_at=now + timedelta(hours=1),
    )
    await world.store.write(to_put(request))
    assert await health(world.store, now) == Health(
        pending=1, oldest_at=now, next_deadline_at=request.deadline_at
    )


async def test_a_damaged_request_and_its_conversation_hide_nothing_else(world: World) -> None:
    """The store can be read; only that request can't be answered (P10)."""
    world.model.will(asks_for(("poke", "{}")), asks_for(("poke", "{}")))
    async with world.running() as house:
        await house.say("poke")
        await house.say("poke", "ben")
        [first, _] = await house.rows(RowKind.APPROVAL)
        world.store.damage(first)
        health_seen = await health(world.store, world.clock.now())
        assert (health_seen.pending, health_seen.damaged, health_seen.oldest_at is not None) == (
            2,
            1,
            True,
        )


async def test_a_damaged_journal_leaves_the_reason_of_a_failure_out(world: World) -> None:
    """The failure is reported all the same."""
    await rows(world, *["failed"] * MIN_FAILURES)
    await world.store.write(Append(log=LogKind.JOURNAL, stream=CONVERSATION, body=b"{"))
    [failing_seen] = (await health(world.store, world.clock.now())).failing
    assert (failing_seen.failures, failing_seen.reason) == (MIN_FAILURES, "")


async def test_a_changed_audit_chain_is_reported(world: World) -> None:
    """The report names the chain and the entry; the others are intact."""
    world.model.will(LOOK, says("seen"), LOOK, says("seen"))
    async with world.running() as house:
        await house.say("look")
        await house.say("look", "ben")
        await house.stop()
    first, _, own = await world.store.streams(LogKind.AUDIT)
    health_seen = await health(world.store, world.clock.now())
    assert (health_seen.chains, health_seen.broken, own) == (3, (), STREAM)
    world.store.drop_last(first)
    [broken] = (await health(world.store, world.clock.now())).broken
    assert broken.startswith(f"`{first}` at entry ")


async def test_a_halt_is_reported(world: World) -> None:
    """With person and time, even without a running daemon."""
    await world.halt("ada")
    health_seen = await health(world.store, world.clock.now())
    assert health_seen.halt is not None
    assert (health_seen.halt.by, health_seen.halt.at) == ("ada", world.clock.now())


async def test_a_conversation_whose_last_turns_all_failed_is_reported(world: World) -> None:
    """Waiting, abandoned or joined messages do not hide it."""
    await rows(world, "failed", "answered", *["failed"] * MIN_FAILURES, "joined", "queued")
    health_seen = await health(world.store, world.clock.now())
    assert [
        (conversation.conversation, conversation.place, conversation.failures)
        for conversation in health_seen.failing
    ] == [(CONVERSATION, "chat/ada", MIN_FAILURES)]
    assert health_seen.failing[0].last_at == made_at(world.ids.ulid())
    assert health_seen.queued == 1


async def test_the_reason_of_the_last_failure_is_reported(world: World) -> None:
    """In the words that its person read, from the journal, so no daemon has to run (P10)."""
    world.model.will(*[(ProviderRejected("no such model"),)] * MIN_FAILURES)
    async with world.running() as house:
        for _ in range(MIN_FAILURES):
            await house.say("hello")
    [failing_seen] = (await health(world.store, world.clock.now())).failing
    assert failing_seen.reason == "the model can't answer: no such model"


async def test_a_conversation_that_was_answered_since_is_healthy(world: World) -> None:
    """However often it failed before that."""
    await rows(world, *["failed"] * 9, "answered")
    assert (await health(world.store, world.clock.now())).failing == ()
    await rows(world, *["failed"] * (MIN_FAILURES - 1))
    assert (await health(world.store, world.clock.now())).failing == ()


async def test_posts_that_wait_for_long_are_counted(world: World) -> None:
    """A post that is just being sent does not count."""
    await rows(world, "pending", "sending", kind=RowKind.OUTBOX)
    now = world.clock.now()
    assert (await health(world.store, now + STUCK)).stuck == 0
    assert (await health(world.store, now + STUCK + timedelta(seconds=1))).stuck == 2


async def test_recently_refused_posts_are_counted(world: World) -> None:
    """A key without a time is ignored."""
    await rows(world, "refused", kind=RowKind.OUTBOX)
    await rows(world, "refused", kind=RowKind.OUTBOX, key="no-ulid")
    now = world.clock.now()
    assert (await health(world.store, now)).refused == 1
    assert (await health(world.store, now + RECENT)).refused == 0


# --- channels with their own check -------------------------------------------------------

STORK = """
from pydantic import BaseModel

from zeroclaw import ChannelManifest, ChannelUnauthorized, SecretReference


class Settings(BaseModel):
    token: SecretReference


async def well(settings, secrets):
    return f"@stork, with {secrets['token']}"


async def refused(settings, secrets):
    raise ChannelUnauthorized("the token is no longer good; get a new one")


def manifest(check):
    return ChannelManifest(
        kind=check, adapter="doctored:x", settings="doctored:Settings", check=f"doctored:{check}"
    )


WELL, REFUSED, NOWHERE = manifest("well"), manifest("refused"), manifest("nowhere")
"""
ENTRIES = """[zeroclaw.channels]
well = doctored:WELL
refused = doctored:REFUSED
nowhere = doctored:NOWHERE
"""


def test_a_channels_own_check_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The platform's account, or its reason to refuse it; secrets are redacted (P8)."""
    (tmp_path / "doctored.py").write_text(STORK, encoding="utf-8")
    install(tmp_path, monkeypatch, ENTRIES)
    monkeypatch.setenv("STORK_TOKEN", "0123456789abcdef-stork")
    config = tmp_path / "config.toml"
    channels = "".join(
        f'[channels.{name}]\ntoken = {{ env = "STORK_TOKEN" }}\nallowed_users = ["7"]\n'
        for name in ("well", "refused", "nowhere")
    )
    config.write_text(
        f"[tools]\nshell.enabled = false\nattachments.enabled = false\n{channels}", encoding="utf-8"
    )
    arguments = ["doctor", "--json", "--config", str(config), "--data-dir", str(tmp_path / "data")]
    done = CliRunner().invoke(root, arguments)
    shown = [
        (check["verdict"], check["text"])
        for check in json.loads(done.stdout)["checks"]
        if check["check"] == "channels"
    ]
    assert done.exit_code == 1
    assert [verdict for verdict, _ in shown] == ["ok", "fail", "fail", "ok"]
    assert shown[0][1].startswith("`well`: @stork, with ")
    assert shown[1][1] == "`refused`: the token is no longer good; get a new one"
    assert shown[2][1].startswith("`nowhere`: ")
    assert "0123456789abcdef-stork" not in done.output
