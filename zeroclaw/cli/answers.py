"""What the running daemon answers, as values; what an older one does not say keeps its default."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct


class Answer(Struct, frozen=True, kw_only=True):
    """An answer of the daemon; what a later one says beside is passed over."""


class ChannelSeen(Answer, frozen=True):
    """A channel of the daemon, see `inbound.supervisor.ChannelState`.

    Attributes:
        condition: As the daemon calls it.
        since: None when the daemon did not say.
        why: What it last failed with; empty while all is well.
    """

    condition: str = "unknown"
    since: datetime | None = None
    why: str = ""


class Status(Answer, frozen=True):
    """`{"call": "status"}`, see `inbound.commands.status.Report`.

    Attributes:
        login_url: Logs one browser in; empty where no page is served.
    """

    version: str = ""
    model: str = ""
    halted: str = ""
    restart_for: tuple[str, ...] = ()
    channels: Mapping[str, ChannelSeen] = {}
    busy: int = 0
    waiting: int = 0
    pending: int = 0
    dropped: Mapping[str, int] = {}
    refused: Mapping[str, int] = {}
    disk_bytes: int = 0
    login_url: str = ""


class Trouble(Answer, frozen=True):
    """A warning or an error that the daemon wrote to its log, redacted."""

    at: datetime
    level: str
    text: str


class ModelSeen(Answer, frozen=True):
    """The newest requests to the model, as the daemon counted them.

    Attributes:
        failures: In a row, the newest included.
        at: When the newest of them failed, None for none.
        why: Why, with what to do.
    """

    failures: int = 0
    at: datetime | None = None
    why: str = ""


class Errors(Answer, frozen=True):
    """`{"call": "errors"}`: what the daemon met, and what it has.

    Attributes:
        errors: The newest last.
        sandbox: Why it has no shell; empty when it has one, or none was asked for.
        watched: Why a watch bounds its commands, empty where cgroups do; None when it is too old
            to tell.
        model: What the model failed with last; no failures when it answered since.
        secrets: The key paths of those that it has.
    """

    errors: tuple[Trouble, ...] = ()
    sandbox: str = ""
    watched: str | None = None
    model: ModelSeen = ModelSeen()
    secrets: frozenset[str] = frozenset()


class Text(Answer, frozen=True):
    """A sentence for a person, and whether it tells of a change."""

    text: str = ""
    changed: bool = False


class Grants(Text, frozen=True):
    """Every grant that holds, in words and as `zeroclaw grants list --json` shows it."""

    grants: tuple[Mapping[str, object], ...] = ()


class Receipts(Answer, frozen=True):
    """What each receipt in a text is; `tool`, `outcome` and `at` are empty for a false one.

    {"token": "zc-receipt-…", "verdict": "valid" | "earlier" | "removed" | "false",
     "tool": "shell", "outcome": "ok", "at": "2026-01-01T12:00:00+00:00"}
    """

    receipts: tuple[Mapping[str, object], ...] = ()


class Redacted(Answer, frozen=True):
    """Texts in which the secrets of the daemon's environment are redacted, in their order."""

    texts: tuple[str, ...] = ()


class LoggedOut(Answer, frozen=True):
    """How many browsers were logged in."""

    sessions: int = 0


class Reloaded(Answer, frozen=True):
    """What came of reading the configuration again.

    Attributes:
        file: That was read.
        live: Keys that hold now.
        waiting: Keys that need a restart.
        faults: Why nothing was changed.
    """

    file: str = ""
    live: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
