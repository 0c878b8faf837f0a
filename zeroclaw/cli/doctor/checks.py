"""Judges the facts that `zeroclaw doctor` found; returns one line for each check.

Pure. `fail` keeps the bot silent or unsafe; `warn` may do so soon, or a person has to know of it.
Each line that is not `ok` says what to do.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Literal

from zeroclaw.conversation.message_text import span
from zeroclaw.envelope import ConversationId
from zeroclaw.host.answers import ChannelSeen, Errors, Status
from zeroclaw.inbound.live_config import NEVER, Halt
from zeroclaw.value import Struct, Value, field

Verdict = Literal["ok", "warn", "fail"]

SCARCE_BYTES = 100_000_000
"""Below this much free space, the next backup or burst of messages fills the disk."""
ROOM_BYTES = 1_000_000_000
"""Free space needed if the configuration sets no limit."""
CLOCK_SLACK = timedelta(minutes=1)
"""How far a stored time may be ahead of the clock, as after a correction of the clock."""
STARTING = timedelta(minutes=1)
"""A channel that takes longer than this to come up is in trouble."""
SOON = timedelta(minutes=5)
"""An approval that expires within this time is reported as expiring soon."""
MIN_FAILURES = 3
"""Number of failed turns in a row, ending with the newest, that count as repeated failure."""
_ORDER = (
    "configuration", "daemon", "secrets", "halt", "network", "provider", "channels", "sandbox",
    "user", "store", "approvals", "conversations", "delivery",
    "audit", "disk", "clock", "permissions", "versions", "errors",
)  # fmt: skip
_MAX_SHOWN = 3
_RESTART = "restart `zeroclaw run`"
_UNKNOWN = "its data directory is unknown until the configuration is mended"


class CheckResult(Value):
    """The result of one check.

    Attributes:
        check: Its name; a check with several findings has a line for each.
        text: The finding.
        remedy: What to do; empty if nothing is to be done, or the text already says it.
    """

    check: str
    verdict: Verdict
    text: str
    remedy: str = ""


def ok(check: str, text: str) -> CheckResult:
    """Return a line about something that works."""
    return CheckResult(check=check, verdict="ok", text=text)


def warn(check: str, text: str, remedy: str = "") -> CheckResult:
    """Return a line about something that may soon go wrong, or that a person has to know."""
    return CheckResult(check=check, verdict="warn", text=text, remedy=remedy)


def fail(check: str, text: str, remedy: str = "") -> CheckResult:
    """Return a line about something that keeps the bot silent or unsafe."""
    return CheckResult(check=check, verdict="fail", text=text, remedy=remedy)


class Failing(Value):
    """A conversation whose newest turns all failed.

    Attributes:
        failures: Failures in a row, at least `MIN_FAILURES`; counted over the last 20 messages.
        last_at: When the newest failed message came.
        reason: The bot's note to its person; empty if the journal has none.
    """

    conversation: ConversationId
    place: str
    failures: int
    last_at: datetime
    reason: str = ""


class Health(Value):
    """The state of the store.

    Attributes:
        newest_at: When the newest row with a time in its key was made; None for an empty store.
        halt: The newest halt, even if it is over.
        pending: Approval and pairing requests that wait for an answer.
        oldest_at: When the oldest of them was requested, None without one.
        damaged: How many of them can't be read, and so not answered.
        next_deadline_at: The first deadline of them.
        queued: Messages that wait for their turn.
        stuck: Messages to platforms that are not sent after five minutes.
        refused: Messages that a platform refused within the last day.
        failing: Failing conversations, the newest failure first.
        joined: Channels on which an operator let people in.
        chains: How many chains of the audit were checked, the newest ones.
        broken: One line for each chain that was changed, about its first fault.
    """

    newest_at: datetime | None = None
    halt: Halt = NEVER
    pending: int = 0
    damaged: int = 0
    oldest_at: datetime | None = None
    next_deadline_at: datetime | None = None
    queued: int = 0
    stuck: int = 0
    refused: int = 0
    failing: tuple[Failing, ...] = ()
    joined: frozenset[str] = frozenset()
    chains: int = 0
    broken: tuple[str, ...] = ()


class Disk(Value):
    """The disk that holds the data.

    Attributes:
        place: The data directory.
        free_bytes: Free for this user.
        used_bytes: Used by the store.
        bound_bytes: The limit `retention.max_disk_mb`, 0 for none.
    """

    place: str
    free_bytes: int
    used_bytes: int
    bound_bytes: int


class Facts(Struct, kw_only=True):
    """The facts to be judged.

    Attributes:
        now: The time, with a time zone.
        version: The installed version of zeroclaw.
        is_root: The user of this command is root, and so is the daemon of this data directory.
        status: The status of the running daemon, or why there is none.
        errors: The daemon's errors and the secrets that it has.
        store: The state of the store, or why it can't be read; None before the first start.
        disk: None if it can't be determined.
        enabled: The channels that the configuration enables; None if it has faults.
        missing: The faults of secrets that this shell does not have, by key path.
        sandbox: Why there is none, empty if it works; None if nothing needs one.
        results: Lines that the probes have already judged.
    """

    now: datetime
    version: str
    is_root: bool = False
    status: Status | str = _UNKNOWN
    errors: Errors = Errors()
    store: Health | str | None = _UNKNOWN
    disk: Disk | None = None
    enabled: tuple[str, ...] | None = None
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    sandbox: str | None = None
    results: tuple[CheckResult, ...] = ()


def run_checks(facts: Facts) -> tuple[CheckResult, ...]:
    """Return the lines, in the order in which one would look for trouble."""
    lines = (
        *facts.results,
        *_daemon(facts),
        *_secrets(facts),
        *_halt(facts),
        *_model(facts),
        *_channels(facts),
        *_sandbox(facts),
        *_user(facts),
        *_store(facts),
        _disk(facts.disk),
        _clock(facts),
        *_errors(facts),
    )
    return tuple(sorted(lines, key=lambda line: _ORDER.index(line.check)))


def exit_code(lines: tuple[CheckResult, ...]) -> int:
    """Return 1 if a check failed, else 0."""
    return 1 if any(line.verdict == "fail" for line in lines) else 0


def in_words(line: CheckResult) -> str:
    """Return a line as text for a person."""
    text = f"{line.text}; {line.remedy}" if line.remedy else line.text
    return " ".join(f"{line.verdict:<5} {line.check:<14} {text}".split("\n"))


# --- one check each ------------------------------------------------------------------------------


def _daemon(facts: Facts) -> Iterator[CheckResult]:
    if isinstance(facts.status, str):
        yield warn("daemon", facts.status)
    elif (running := facts.status.version) != (installed := facts.version):
        yield warn("daemon", f"{running} runs, {installed} is installed", _RESTART)
    else:
        yield ok("daemon", "running")


def _secrets(facts: Facts) -> Iterator[CheckResult]:
    """Yield a line for each secret that this shell lacks; a fault if the daemon lacks it, too."""
    for key, fault in facts.missing.items():
        if key in facts.errors.secrets:
            yield ok("secrets", f"{key} is not known in this shell; the running daemon has it")
        else:
            yield fail("secrets", fault, "if a service starts zeroclaw, check that it is set there")


def _halt(facts: Facts) -> Iterator[CheckResult]:
    if isinstance(facts.store, str):
        return  # unknown; `_store` says why
    if facts.store and not (halt := facts.store.halt).over:
        text = f"everything was halted by {halt.by} {_ago(facts.now, halt.at)}"
        yield warn("halt", text, "`zeroclaw resume` goes on")
    else:
        yield ok("halt", "none in force")


def _model(facts: Facts) -> Iterator[CheckResult]:
    """Yield a line about the running daemon's last failed requests to the model, if any."""
    model = facts.errors.model
    if model.at is not None:
        latest = f"the last {model.failures} requests" if model.failures > 1 else "the last request"
        text = f"{latest} to it failed, the newest {_ago(facts.now, model.at)}: {model.why}"
        yield (fail if model.failures >= MIN_FAILURES else warn)("provider", text)


def _channels(facts: Facts) -> Iterator[CheckResult]:
    enabled = facts.enabled or ()
    if not isinstance(facts.status, str):
        served = facts.status.channels
        for name, channel in sorted(served.items()):
            yield _channel(name, channel, facts.now)
        for name, count in sorted(facts.status.dropped.items()):
            text = f"`{name}`: messages of strangers dropped since the daemon's start: {count}"
            yield ok("channels", text)
        for name in enabled:
            if name not in served:
                text = f"`{name}` is configured, and the running daemon does not know it"
                yield warn("channels", text, _RESTART)
    elif enabled:
        yield ok("channels", f"{', '.join(enabled)}; they start with the daemon")
    if facts.enabled == ():
        text = "none is enabled, so no message can reach the bot"
        yield fail("channels", text, "set `enabled = true` for one")


def _channel(name: str, channel: ChannelSeen, now: datetime) -> CheckResult:
    since = "" if channel.since is None else f" for {span((now - channel.since).total_seconds())}"
    reason = f": {channel.why}" if channel.why else ""
    text = f"`{name}` {channel.condition}{since}{reason}"
    match channel.condition:
        case "up":
            return ok("channels", text)
        case "starting" if channel.since is None or now - channel.since < STARTING:
            return ok("channels", text)
        case "starting" | "waiting":
            remedy = "it is tried again; check that this machine reaches the platform"
            return fail("channels", text, remedy)
        case _:
            return fail("channels", text, f"mend it in the configuration, then {_RESTART}")


def _sandbox(facts: Facts) -> Iterator[CheckResult]:
    if facts.enabled is None:  # the configuration has faults, so the need is unknown
        return
    if facts.sandbox is None:
        yield ok("sandbox", "not needed: no shell, and no reading of attachments")
    elif facts.errors.sandbox:
        text = f"the daemon found none at its start: {facts.errors.sandbox}"
        yield warn("sandbox", text, f"mend it, then {_RESTART}")
    elif facts.sandbox:
        yield warn("sandbox", f"none: {facts.sandbox}")
    else:
        yield ok("sandbox", f"works{_bounds(facts.errors.watched)}")


def _bounds(watched: str | None) -> str:
    """Describe what limits a command's memory and processes in the running daemon."""
    match watched:
        case None:
            return ""
        case "":
            return "; each command has a cgroup with limits"
        case reason:
            return f"; limits of each process and a watch bound a command, because {reason}"


def _user(facts: Facts) -> Iterator[CheckResult]:
    if facts.is_root:
        text = "zeroclaw runs as root, so a fault in it endangers the whole machine"
        yield warn("user", text, "give it its own user, as `deploy/zeroclaw.service` does")


def _store(facts: Facts) -> Iterator[CheckResult]:
    match facts.store:
        case None:
            yield ok("store", "nothing yet, before the first start")
        case str(reason):
            yield fail("store", reason)
        case store:
            yield ok("store", f"waiting messages: {store.queued}")
            yield _approvals(store, facts.now)
            yield from _conversations(store, facts.now)
            yield _delivery(store)
            yield from _audit(store)


def _approvals(store: Health, now: datetime) -> CheckResult:
    if not store.pending:
        return ok("approvals", "none waits for an answer")
    oldest = f", the oldest asked {_ago(now, store.oldest_at)}" if store.oldest_at else ""
    ending = ""
    if store.next_deadline_at is not None:
        remaining = store.next_deadline_at - now
        ending = ", one has expired"
        if remaining > timedelta():
            soon = "soon" if remaining <= SOON else "first"
            ending = f", {soon} to expire in {span(remaining.total_seconds())}"
    damaged, listed = "", "them"
    if store.damaged:
        are = "is" if store.damaged == 1 else "are"
        damaged = f", of which {store.damaged} {are} damaged and can't be answered"
        listed = "the others"
    text = f"{store.pending} to answer{damaged}{oldest}{ending}"
    return warn("approvals", text, f"`/pending` in an approver's chat lists {listed}")


def _conversations(store: Health, now: datetime) -> Iterator[CheckResult]:
    if not store.failing:
        yield ok("conversations", "none fails again and again")
    for failing in store.failing[:_MAX_SHOWN]:
        reason = f": {failing.reason}" if failing.reason else ""
        yield warn(
            "conversations",
            f"{failing.conversation} in {failing.place or 'no chat'} failed {failing.failures} times "
            f"in a row, last {_ago(now, failing.last_at)}{reason}",
            f"`/new` there starts afresh; `zeroclaw export {failing.conversation}` shows it",
        )
    if (others := len(store.failing) - _MAX_SHOWN) > 0:
        text = f"{others} more fail again and again"
        yield warn("conversations", text, "look at the provider first")


def _delivery(store: Health) -> CheckResult:
    if store.stuck:
        text = f"messages still not sent after five minutes: {store.stuck}"
        return warn("delivery", text, "they are sent as soon as their channel is up")
    if store.refused:
        text = f"messages that platforms refused in the last day: {store.refused}"
        advice = "look at the last errors, and at the bot's permissions in that chat"
        return warn("delivery", text, advice)
    return ok("delivery", "nothing is stuck")


def _audit(store: Health) -> Iterator[CheckResult]:
    if not store.broken:
        yield ok("audit", f"newest chains checked: {store.chains}; none was changed")
    for fault in store.broken[:_MAX_SHOWN]:
        text = f"{fault}; nothing from there on is proven, and receipts can't be checked"
        yield fail("audit", text, "find out which program, person or disk changed it")


def _disk(disk: Disk | None) -> CheckResult:
    if disk is None:
        text = "the free space is unknown"
        return warn("disk", text, "check that the data directory can be read")
    bound, used = disk.bound_bytes, disk.used_bytes
    growth = max(bound - used, 0) if bound else ROOM_BYTES
    free = f"{_mb(disk.free_bytes)} free on {disk.place}"
    if disk.free_bytes < SCARCE_BYTES:
        return fail("disk", free, "make room there, or move `data_dir`")
    if bound and used > bound:
        text = f"{_mb(used)} are stored, more than the {_mb(bound)} of retention.max_disk_mb"
        return warn("disk", text, "raise it, or shorten the days of `[retention]`")
    if disk.free_bytes < growth:
        text = f"{free}, and the store may grow by {_mb(growth)}"
        return warn("disk", text, "make room there, or lower retention.max_disk_mb")
    limit = f" of at most {_mb(bound)}" if bound else ", without a limit"
    return ok("disk", f"{free}, {_mb(used)} stored{limit}")


def _clock(facts: Facts) -> CheckResult:
    newest = facts.store.newest_at if isinstance(facts.store, Health) else None
    if newest is not None and newest - facts.now > CLOCK_SLACK:
        text = (
            f"it is {span((newest - facts.now).total_seconds())} behind the newest stored message"
        )
        remedy = "set this machine's time; until then deadlines and ages are wrong"
        return fail("clock", text, remedy)
    return ok("clock", f"{facts.now:%Y-%m-%d %H:%M} UTC")


def _errors(facts: Facts) -> Iterator[CheckResult]:
    if isinstance(facts.status, str):
        return
    if not facts.errors.errors:
        yield ok("errors", "none since the daemon was started")
    groups: dict[tuple[str, str], list[datetime]] = {}
    for error in reversed(facts.errors.errors):
        groups.setdefault((error.level, error.text), []).append(error.at)
    for (level, text), times in list(groups.items())[:_MAX_SHOWN]:
        count = f" ({len(times)} times)" if len(times) > 1 else ""
        yield warn("errors", f"{_ago(facts.now, times[0])}{count}, {level}: {text}")


# --- numbers -------------------------------------------------------------------------------------


def _ago(now: datetime, at: datetime) -> str:
    return f"{span((now - at).total_seconds())} ago"


def _mb(size: int) -> str:
    return f"{math.ceil(size / 1e6):,} MB"  # a new store is not 0 MB large
