"""What the running daemon answers over its control socket, as both sides of it know it.

A daemon and a command may be of two releases: what the other does not say keeps its default, and
what it says beside is passed over.
"""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct


class Answer(Struct, frozen=True, kw_only=True):
    """An answer of the daemon."""


class ChannelSeen(Answer, frozen=True):
    """Where a channel of the daemon stands.

    Attributes:
        condition: `starting`, `up`, `waiting` or `down`.
        since: When it came to this; None when the daemon did not say.
        why: What it last failed with; empty while all is well.
    """

    condition: str = "unknown"
    since: datetime | None = None
    why: str = ""


class Status(Answer, frozen=True):
    """`{"call": "status"}`: one look at the daemon.

    Attributes:
        model: The model's name.
        channels: By name.
        busy: Conversations that have something to do.
        waiting: Messages that wait for their turn.
        pending: Questions that wait for an answer, about calls and about strangers.
        disk_bytes: What the store takes.
        halted: Who halted everything, empty for nobody.
        restart_for: Keys of the configuration that a reload found changed, and that need a restart.
        dropped: Events of strangers, by channel, since the start.
        refused: Messages over a limit, by channel, since the start.
        login_url: Logs one browser in; empty where no page is served.
    """

    version: str = ""
    model: str = ""
    channels: Mapping[str, ChannelSeen] = {}
    busy: int = 0
    waiting: int = 0
    pending: int = 0
    disk_bytes: int = 0
    halted: str = ""
    restart_for: tuple[str, ...] = ()
    dropped: Mapping[str, int] = {}
    refused: Mapping[str, int] = {}
    login_url: str = ""


class Trouble(Answer, frozen=True):
    """A warning or an error of the log, redacted: room, event and fields as a person reads them."""

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


class Halted(Answer, frozen=True):
    """Whether everything is halted now."""

    halted: bool = False


class LoggedOut(Answer, frozen=True):
    """How many browsers were logged in."""

    sessions: int = 0


class Reloaded(Answer, frozen=True):
    """What came of reading the configuration again.

    Attributes:
        file: That was read.
        live: The keys that hold now, and didn't before.
        waiting: The keys that differ and hold from the next start on.
        warnings: What is odd about it.
        faults: Why nothing was changed.
    """

    file: str = ""
    live: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


class Used(Answer, frozen=True):
    """What one model used for one person on one day; or a sum, where one of them is empty.

    Attributes:
        day: Such as `2026-01-01`, in UTC.
        person: Their name in the configuration, else their id.
        input_tokens: Those that came from a cache too.
        micros: What it cost, in millionths of a US dollar.
        unpriced_tokens: Those of which nobody says what they cost.
    """

    day: str = ""
    person: str = ""
    model: str = ""
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    micros: int = 0
    unpriced_tokens: int = 0


class UsageReport(Answer, frozen=True):
    """`{"call": "usage", "days": 30}`: what was used since so many days, today's among them."""

    used: tuple[Used, ...] = ()
