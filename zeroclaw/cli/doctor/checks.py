"""Judges what `zeroclaw doctor` found: facts in, one line for each check out.

Pure. `fail` is what keeps the bot silent or what it keeps unsafe, `warn` what soon may or what a
person has to know; each line that is not `ok` says what to do.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from zeroclaw.cli.doctor.facts import (
    ChannelSeen,
    Configured,
    DaemonSeen,
    DiskSeen,
    Facts,
    ProviderSeen,
    Verdict,
)
from zeroclaw.cli.doctor.health import AGAIN, Health
from zeroclaw.value import Value

SCARCE_BYTES = 100_000_000
"""With less than this free, the next backup or burst of messages fills the disk."""
ROOM_BYTES = 1_000_000_000
"""What has to be free where the configuration sets no bound."""
CLOCK_SLACK = timedelta(minutes=1)
"""A stored time may be this far ahead of the clock: the last second before a correction."""
STARTING = timedelta(minutes=1)
"""A channel that needs longer than this to come up is in trouble."""
SOON = timedelta(minutes=5)
"""A question that ends within this is told of as one that is about to."""
_SHOWN = 3
_MB = 1_000_000
_MINUTE_S = 60
_HOUR_S = 3600
_DAY_S = 86_400


class Line(Value):
    """What one check came to.

    Attributes:
        check: Its name; a check with several findings has a line for each.
        text: What was found.
        remedy: What to do; empty where there is nothing to do, or where the text says it already.
    """

    check: str
    verdict: Verdict
    text: str
    remedy: str = ""


def run_checks(facts: Facts) -> tuple[Line, ...]:
    """Return the lines, in the order in which trouble is best looked for."""
    return (
        *_configuration(facts.configured),
        *_daemon(facts),
        *_secrets(facts),
        *_halt(facts),
        *_provider(facts.provider),
        *_model(facts),
        *_channels(facts),
        *_sandbox(facts),
        *_user(facts),
        *_store(facts),
        *_disk(facts.disk),
        *_clock(facts),
        *_permissions(facts.loose),
        *_versions(facts),
        *_errors(facts),
    )


def exit_code(lines: tuple[Line, ...]) -> int:
    """Return 1 when a check failed, else 0."""
    return 1 if any(line.verdict == "fail" for line in lines) else 0


def in_words(line: Line) -> str:
    """Return a line as a person reads it."""
    text = f"{line.text}; {line.remedy}" if line.remedy else line.text
    return " ".join(f"{line.verdict:<5} {line.check:<14} {text}".split("\n"))


# --- one check each ------------------------------------------------------------------------------


def _configuration(found: Configured) -> Iterator[Line]:
    for fault in found.faults:
        yield _fail("configuration", fault)
    for warning in found.warnings:
        yield _warn("configuration", warning)
    if not (found.faults or found.warnings):
        yield _ok("configuration", f"{found.place}: no faults")


def _daemon(facts: Facts) -> Iterator[Line]:
    daemon, installed = facts.daemon, facts.versions.zeroclaw
    if isinstance(daemon, str):
        yield _warn("daemon", daemon)
    elif daemon.version != installed:
        yield _warn(
            "daemon", f"{daemon.version} runs, {installed} is installed", "restart `zeroclaw run`"
        )
    else:
        yield _ok("daemon", "running")


def _secrets(facts: Facts) -> Iterator[Line]:
    """Tell of secrets that this shell does not know, which is a fault where no daemon has them."""
    held = facts.daemon.secrets if isinstance(facts.daemon, DaemonSeen) else frozenset[str]()
    for key, fault in facts.missing.items():
        if key in held:
            text = f"{key} is not known in this shell; the running daemon has it"
            yield _ok("secrets", text)
        else:
            remedy = "if a service starts zeroclaw, see that it has it there"
            yield _fail("secrets", fault, remedy)


def _halt(facts: Facts) -> Iterator[Line]:
    if isinstance(facts.store, Health) and (halt := facts.store.halt) is not None:
        yield _warn(
            "halt",
            f"everything was halted by {halt.by} {_ago(facts.now, halt.at)}",
            "`zeroclaw resume` goes on",
        )
    else:
        yield _ok("halt", "none in force")


def _provider(found: ProviderSeen | None) -> Iterator[Line]:
    if found is None:
        yield _after_configuration("provider")
    else:
        told = f": {found.told}" if found.told else ""
        yield Line(check="provider", verdict=found.verdict, text=f"{found.name}{told}")


def _model(facts: Facts) -> Iterator[Line]:
    """Tell what the running daemon met when it asked the model, whatever a look finds now."""
    seen = facts.daemon.model if isinstance(facts.daemon, DaemonSeen) else None
    if seen is not None:
        often = f"the last {seen.failures} requests" if seen.failures > 1 else "the last request"
        yield Line(
            check="provider",
            verdict="fail" if seen.failures >= AGAIN else "warn",
            text=f"{often} to it failed, the newest {_ago(facts.now, seen.at)}: {seen.why}",
        )


def _after_configuration(check: str) -> Line:
    text = "not looked at, as the configuration has faults"
    return _warn(check, text, "mend them first")


def _channels(facts: Facts) -> Iterator[Line]:
    daemon = facts.daemon
    if isinstance(daemon, str):
        names = ", ".join(facts.enabled)
        if names:
            yield _ok("channels", f"{names}; up when the daemon is")
    else:
        for channel in daemon.channels:
            yield _channel(channel, facts.now)
        served = {channel.name for channel in daemon.channels}
        for name in facts.enabled:
            if name not in served:
                yield _warn(
                    "channels",
                    f"`{name}` is configured, and the running daemon does not know it",
                    "restart `zeroclaw run`",
                )
    for one in facts.accounts:
        yield Line(
            check="channels",
            verdict="fail" if one.fault else "ok",
            text=f"`{one.channel}`: {one.fault or one.told}",
        )
    if not facts.configured.faults and not facts.enabled:
        yield _fail(
            "channels",
            "none is switched on, so nobody can write to the bot",
            "set `enabled = true` for one",
        )


def _channel(channel: ChannelSeen, now: datetime) -> Line:
    since = "" if channel.since is None else f" for {_span(now - channel.since)}"
    why = f": {channel.why}" if channel.why else ""
    text = f"`{channel.name}` {channel.condition}{since}{why}"
    match channel.condition:
        case "up":
            return _ok("channels", text)
        case "starting" if channel.since is None or now - channel.since < STARTING:
            return _ok("channels", text)
        case "starting" | "waiting":
            remedy = "it is tried again; see that this machine reaches the platform"
            return _fail("channels", text, remedy)
        case _:
            remedy = "mend it in the configuration, then restart `zeroclaw run`"
            return _fail("channels", text, remedy)


def _sandbox(facts: Facts) -> Iterator[Line]:
    if facts.sandbox is None:
        yield _ok("sandbox", "not needed: no shell, no reading of files")
        return
    if isinstance(facts.daemon, DaemonSeen) and facts.daemon.sandbox:
        yield _warn(
            "sandbox",
            f"the daemon found none at its start: {facts.daemon.sandbox}",
            "mend it, then restart `zeroclaw run`",
        )
    elif facts.sandbox:
        yield _warn("sandbox", f"none: {facts.sandbox}")
    else:
        yield _ok("sandbox", f"keeps its word{_bounds(facts)}")


def _bounds(facts: Facts) -> str:
    """Say which bound the running daemon puts on a command's memory and processes."""
    watched = facts.daemon.watched if isinstance(facts.daemon, DaemonSeen) else None
    match watched:
        case None:
            return ""
        case "":
            return "; each command is bounded by a cgroup of its own"
        case why:
            return f"; each command is bounded by limits of its processes and a watch: {why}"


def _user(facts: Facts) -> Iterator[Line]:
    if facts.is_root:
        yield _warn(
            "user",
            "zeroclaw runs as root, so a fault in it is one in the whole machine",
            "run it as a user of its own, as `deploy/zeroclaw.service` does",
        )


def _store(facts: Facts) -> Iterator[Line]:
    match facts.store:
        case None:
            yield _ok("store", "nothing yet, before the first start")
        case str(why):
            yield _fail("store", why)
        case store:
            yield _ok("store", f"{store.queued} messages wait")
            yield _approvals(store, facts.now)
            yield from _conversations(store, facts.now)
            yield _delivery(store)


def _approvals(store: Health, now: datetime) -> Line:
    if not store.pending:
        return _ok("approvals", "none waits for an answer")
    oldest = f", the oldest asked {_ago(now, store.oldest_at)}" if store.oldest_at else ""
    ending = ""
    if (deadline := store.next_deadline_at) is not None:
        left = deadline - now
        if left <= timedelta():
            ending = ", one is over"
        else:
            ending = f", {'soon' if left <= SOON else 'first'} to expire in {_span(left)}"
    return _warn(
        "approvals",
        f"{store.pending} to answer{oldest}{ending}",
        "`/pending` in an approver's chat lists them",
    )


def _conversations(store: Health, now: datetime) -> Iterator[Line]:
    if not store.failing:
        yield _ok("conversations", "none fails again and again")
    for one in store.failing[:_SHOWN]:
        yield _warn(
            "conversations",
            f"{one.conversation} in {one.place or 'no chat'} failed {one.times} times in a "
            f"row, last {_ago(now, one.last_at)}{f': {one.why}' if one.why else ''}",
            f"`/new` there begins anew; `zeroclaw export {one.conversation}` shows it",
        )
    if (more := len(store.failing) - _SHOWN) > 0:
        text = f"{more} more fail again and again"
        remedy = "look at the provider first"
        yield _warn("conversations", text, remedy)


def _delivery(store: Health) -> Line:
    if store.stuck:
        return _warn(
            "delivery",
            f"{store.stuck} messages are not out after five minutes",
            "they go out as soon as their channel is up",
        )
    if store.refused:
        return _warn(
            "delivery",
            f"platforms refused {store.refused} messages in the last day",
            "see the last errors, and what the bot may do in that chat",
        )
    return _ok("delivery", "nothing is stuck")


def _disk(disk: DiskSeen | None) -> Iterator[Line]:
    if disk is None:
        yield _warn(
            "disk", "it can't be told how much is free", "see that the data directory can be read"
        )
        return
    to_come = max(disk.bound_bytes - disk.used_bytes, 0) if disk.bound_bytes else ROOM_BYTES
    free = f"{_mb(disk.free_bytes)} free on {disk.place}"
    if disk.free_bytes < SCARCE_BYTES:
        text, remedy = free, "make room there, or move `data_dir`"
        yield _fail("disk", text, remedy)
    elif disk.bound_bytes and disk.used_bytes > disk.bound_bytes:
        yield _warn(
            "disk",
            f"{_mb(disk.used_bytes)} are stored, more than the {_mb(disk.bound_bytes)} of "
            "retention.max_disk_mb",
            "raise it, or shorten the days of `[retention]`",
        )
    elif disk.free_bytes < to_come:
        yield _warn(
            "disk",
            f"{free}, and what is stored may grow by {_mb(to_come)}",
            "make room there, or lower retention.max_disk_mb",
        )
    else:
        bound = f" of at most {_mb(disk.bound_bytes)}" if disk.bound_bytes else ", without a bound"
        text = f"{free}, {_mb(disk.used_bytes)} stored{bound}"
        yield _ok("disk", text)


def _clock(facts: Facts) -> Iterator[Line]:
    newest = facts.store.newest_at if isinstance(facts.store, Health) else None
    if newest is not None and newest - facts.now > CLOCK_SLACK:
        yield _fail(
            "clock",
            f"it stands {_span(newest - facts.now)} before what was stored last",
            "set this machine's time; till then deadlines and ages are wrong",
        )
    else:
        yield _ok("clock", f"{facts.now:%Y-%m-%d %H:%M} UTC")


def _permissions(loose: tuple[str, ...] | None) -> Iterator[Line]:
    for one in loose or ():
        yield _fail("permissions", one)
    if loose is None:
        yield _ok("permissions", "nothing is there yet")
    elif not loose:
        yield _ok("permissions", "data and secrets are this user's alone")


def _versions(facts: Facts) -> Iterator[Line]:
    found = facts.versions
    text = f"zeroclaw {found.zeroclaw}, Python {found.python}, SQLite {found.sqlite}"
    if found.sqlite_fault:
        # No warning: it needs a second program that writes, and zeroclaw is one.
        text += " (open the database with no other program while zeroclaw runs; 3.51.3 is mended)"
    yield _ok("versions", text)


def _errors(facts: Facts) -> Iterator[Line]:
    if isinstance(facts.daemon, str):
        return
    troubles = facts.daemon.troubles
    if troubles is None:
        yield _warn("errors", "the running daemon is too old to tell", "restart `zeroclaw run`")
    elif not troubles:
        yield _ok("errors", "none since the daemon was started")
    else:
        seen: dict[tuple[str, str], list[datetime]] = {}
        for one in reversed(troubles):
            seen.setdefault((one.level, one.text), []).append(one.at)
        for (level, said), times in list(seen.items())[:_SHOWN]:
            often = f" ({len(times)} times)" if len(times) > 1 else ""
            text = f"{_ago(facts.now, times[0])}{often}, {level}: {said}"
            yield _warn("errors", text)


# --- lines ---------------------------------------------------------------------------------------


def _ok(check: str, text: str) -> Line:
    return Line(check=check, verdict="ok", text=text)


def _warn(check: str, text: str, remedy: str = "") -> Line:
    return Line(check=check, verdict="warn", text=text, remedy=remedy)


def _fail(check: str, text: str, remedy: str = "") -> Line:
    return Line(check=check, verdict="fail", text=text, remedy=remedy)


# --- words ---------------------------------------------------------------------------------------


def _ago(now: datetime, at: datetime) -> str:
    return f"{_span(now - at)} ago"


def _span(time: timedelta) -> str:
    seconds = max(int(time.total_seconds()), 0)
    for size, unit in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _mb(size: int) -> str:
    return f"{size / _MB:,.0f} MB"
