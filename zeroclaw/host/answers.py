"""The daemon's answers over the control socket, shared by both sides.

Daemon and command may be of different releases: missing fields keep their defaults, and unknown
fields are ignored.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct


class DaemonAnswer(Struct, frozen=True, kw_only=True):
    """An answer of the daemon."""


class ChannelSeen(DaemonAnswer, frozen=True):
    """The state of a channel.

    Attributes:
        condition: `starting`, `up`, `waiting` or `down`.
        since: When it entered this state; None if the daemon did not say.
        why: Its last error; empty while it works.
    """

    condition: str = "unknown"
    since: datetime | None = None
    why: str = ""


class Status(DaemonAnswer, frozen=True):
    """`{"call": "status"}`: the daemon at a glance.

    Attributes:
        model: The model's name.
        channels: By name.
        busy: Conversations with work to do.
        waiting: Messages that wait for their turn.
        unsent: Answers and notices that no platform has taken yet.
        failures: Failures in a row of the newest requests to the model.
        pending: Open approval and pairing requests.
        disk_bytes: Size of the store.
        halted: Who halted the daemon; empty if it is not halted.
        restart_for: Configuration keys that changed at a reload, but need a restart.
        dropped: Events of strangers since the start, by channel.
        refused: Messages over a limit since the start, by channel.
        login_url: Logs one browser in; empty if no page is served.
        claim: A code that makes its sender an operator; empty for none.
    """

    version: str = ""
    model: str = ""
    channels: Mapping[str, ChannelSeen] = {}
    busy: int = 0
    waiting: int = 0
    unsent: int = 0
    failures: int = 0
    pending: int = 0
    disk_bytes: int = 0
    halted: str = ""
    restart_for: tuple[str, ...] = ()
    dropped: Mapping[str, int] = {}
    refused: Mapping[str, int] = {}
    login_url: str = ""
    claim: str = ""


class Trouble(DaemonAnswer, frozen=True):
    """A warning or an error of the log, redacted: room, event and fields in readable form."""

    at: datetime
    level: str
    text: str


class ModelSeen(DaemonAnswer, frozen=True):
    """The newest requests to the model, as counted by the daemon.

    Attributes:
        failures: Failures in a row, up to the newest request.
        at: Time of the newest failure; None if there is none.
        why: Its reason, and what to do.
    """

    failures: int = 0
    at: datetime | None = None
    why: str = ""


class Errors(DaemonAnswer, frozen=True):
    """`{"call": "errors"}`: recent errors of the daemon, and what it has.

    Attributes:
        errors: Newest last.
        sandbox: Why it offers no shell; empty if it has one, or none was configured.
        watched: Why a watch bounds its commands; empty if cgroups do; None if the daemon is too old
            to say.
        model: The model's last failures; none if it has answered since.
        secrets: Key paths of the secrets that it could resolve.
    """

    errors: tuple[Trouble, ...] = ()
    sandbox: str = ""
    watched: str | None = None
    model: ModelSeen = ModelSeen()
    secrets: frozenset[str] = frozenset()


class Text(DaemonAnswer, frozen=True):
    """A sentence for a person, and whether something was changed."""

    text: str = ""
    changed: bool = False


class Grants(Text, frozen=True):
    """All grants in force, in words and in the form of `zeroclaw grants list --json`."""

    grants: tuple[Mapping[str, object], ...] = ()


class Verdicts(DaemonAnswer, frozen=True):
    """The verdict on each receipt in a text; the rest is empty where nothing is proven.

    {"token": "zc-receipt-…", "verdict": "valid" | "earlier" | "removed" | "unchecked" | "false",
     "tool": "shell", "outcome": "ok", "at": "2026-01-01T12:00:00+00:00"}
    """

    receipts: tuple[Mapping[str, object], ...] = ()


class Redacted(DaemonAnswer, frozen=True):
    """The given texts, in order, without the secrets of the daemon's environment."""

    texts: tuple[str, ...] = ()


class Halted(DaemonAnswer, frozen=True):
    """Whether the daemon is halted now, and whether it was before."""

    halted: bool = False
    before: bool = False


class LoggedOut(DaemonAnswer, frozen=True):
    """How many browsers were logged in."""

    sessions: int = 0


class Reloaded(DaemonAnswer, frozen=True):
    """The result of reloading the configuration.

    Attributes:
        file: The file that was read.
        live: Changed keys that are in force now.
        waiting: Changed keys that need a restart.
        warnings: Oddities in the file.
        faults: Why nothing was changed.
    """

    file: str = ""
    live: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


By = Literal["day", "person", "model"]
"""What usage is summed by: a field of `Used`."""


class Used(DaemonAnswer, frozen=True):
    """One model's usage for one person on one day; an empty field means a sum over it.

    Attributes:
        day: Such as `2026-01-01`, in UTC.
        person: Their name in the configuration, else their id.
        input_tokens: Includes those from a cache.
        micros: Cost in millionths of a US dollar.
        unpriced_tokens: Tokens whose price is unknown.
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


class UsageReport(DaemonAnswer, frozen=True):
    """`{"call": "usage", "days": 30}`: the usage of that many days, today included."""

    used: tuple[Used, ...] = ()
