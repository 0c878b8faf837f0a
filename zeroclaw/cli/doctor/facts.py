"""What `zeroclaw doctor` found: the facts that are judged."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from zeroclaw.cli.doctor.health import Health
from zeroclaw.value import Value, field

Verdict = Literal["ok", "warn", "fail"]


class Configured(Value):
    """The configuration as it was found.

    Attributes:
        place: The file, or what stands for none.
        faults: Each with what to do.
        warnings: What is odd, and no fault.
    """

    place: str
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class ProviderSeen(Value):
    """The model as it was found.

    Attributes:
        name: What answers, for people.
        verdict: Of whoever asked it.
        told: Why it does not answer, with what to do; for one that does, what is to be known.
    """

    name: str
    verdict: Verdict = "ok"
    told: str = ""


class ChannelSeen(Value):
    """A channel of a running daemon, see `inbound.supervisor.ChannelState`.

    Attributes:
        condition: As the daemon calls it.
        since: None when the daemon did not say.
        why: What it last failed with; empty while all is well.
    """

    name: str
    condition: str
    since: datetime | None
    why: str = ""


class AccountSeen(Value):
    """What a channel's own check came to, see `ChannelManifest.check`.

    Attributes:
        channel: Its name.
        fault: Why its platform refused, empty for one that did not.
        told: One line about the account.
    """

    channel: str
    fault: str = ""
    told: str = ""


class Trouble(Value):
    """A warning or an error that the running daemon wrote to its log, redacted."""

    at: datetime
    level: str
    text: str


class ModelSeen(Value):
    """The newest requests to the model, as the running daemon counted them.

    Attributes:
        failures: In a row, the newest included.
        at: When the newest of them failed.
        why: Why, with what to do.
    """

    failures: int
    at: datetime
    why: str


class DaemonSeen(Value):
    """What a running daemon told.

    Attributes:
        version: Its own, which may be older than the one installed.
        channels: By what it serves.
        sandbox: Why it has no shell; empty when it has one, or none was asked for.
        watched: Why a watch bounds its commands, empty where cgroups do; None when it is too old
            to tell.
        troubles: The newest last; None when it is too old to tell.
        secrets: The key paths of those that it has.
        model: What the model failed with last; None when it answered since, or was not asked.
    """

    version: str
    channels: tuple[ChannelSeen, ...] = ()
    sandbox: str = ""
    watched: str | None = None
    troubles: tuple[Trouble, ...] | None = ()
    model: ModelSeen | None = None
    secrets: frozenset[str] = frozenset()


class DiskSeen(Value):
    """The disk that holds the data.

    Attributes:
        place: The data directory.
        free_bytes: For this user.
        used_bytes: By what is stored.
        bound_bytes: Of `retention.max_disk_mb`, 0 for none.
    """

    place: str
    free_bytes: int
    used_bytes: int
    bound_bytes: int


class Versions(Value):
    """What runs here; `sqlite_fault` says that this SQLite has the WAL-reset bug."""

    zeroclaw: str
    python: str
    sqlite: str
    sqlite_fault: bool


class Facts(Value):
    """All that was found.

    Attributes:
        now: Aware.
        configured: The configuration.
        daemon: What the running daemon told, or why there is none to ask.
        enabled: The channels that the configuration switches on.
        provider: None where the configuration has faults.
        sandbox: Why there is none, empty for one that works; None where nothing needs one.
        disk: None where it can't be told.
        loose: What others can read or write, each with what to do; None where nothing is there.
        versions: What runs here.
        store: What is stored, or why it can't be read; None before the first start.
        accounts: Of the channels that offer a check.
        missing: The faults of secrets that are not there for this shell, by key path.
        is_root: Whoever looks is root, and so is the daemon of these data.
    """

    now: datetime
    configured: Configured
    daemon: DaemonSeen | str
    enabled: tuple[str, ...]
    provider: ProviderSeen | None
    sandbox: str | None
    disk: DiskSeen | None
    loose: tuple[str, ...] | None
    versions: Versions
    store: Health | str | None
    accounts: tuple[AccountSeen, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    is_root: bool = False
