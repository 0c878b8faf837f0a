"""The settings and the policy in force, with the halt and the revocations.

A reload replaces each as a whole, without an await, so that no reader sees half of a new
configuration. Other rooms get a callable, and call it each time.
"""

from datetime import UTC, datetime

from zeroclaw.codec import decode, encode
from zeroclaw.config.model import CurrentConfig
from zeroclaw.gate.policy import PolicySet, Statement
from zeroclaw.gate.shipped import assemble, halt_statement
from zeroclaw.store import Put, RowKind, Rows
from zeroclaw.table import Codec, Column, Stays, Table
from zeroclaw.tools.loading.skill import Skill
from zeroclaw.value import Value, replace

# --- the halt switch: one row, so that it survives a restart ---------------------------------------

KEY = "halt"


class Halt(Value):
    """A halt of all turns.

    Attributes:
        by: The name of the person who halted.
        at: When.
        over: Whether a `/resume` has ended it. It still ends an interrupted turn that began before.
    """

    by: str
    at: datetime
    over: bool = False


NEVER = Halt(by="", at=datetime.min.replace(tzinfo=UTC), over=True)
HALTS = Table(
    kind=RowKind.SWITCH,
    codec=Codec(
        encode=encode,
        # Earlier releases stored an empty body for a halt that was over.
        decode=lambda body: decode(Halt, body) if body else NEVER,
    ),
    columns=frozenset({Column.STATE}),
    keeps=Stays(until="an operator halts or resumes"),
)


def switched(last: Halt, *, on: bool, by: str, at: datetime) -> Halt | None:
    """Return the halt after a `/halt` or a `/resume`; None for a `/resume` without a halt."""
    if on:
        return Halt(by=by, at=at)
    return None if last.over else replace(last, over=True)


def halt_put(halt: Halt) -> Put:
    """Return the write that turns the switch on, or off if the halt is over."""
    return HALTS.put(KEY, halt, state="off" if halt.over else "on")


async def last_halt(rows: Rows) -> Halt:
    """Return the newest halt, even if it is over."""
    return await HALTS.get(rows, KEY) or NEVER


# --- settings and policy --------------------------------------------------------------------------


class LiveConfig(CurrentConfig):
    """The settings that the daemon runs on; a reload replaces them, in one step without an await.

    Attributes:
        statements: The configured statements of the policy.
        skills: The skills in the configured folder.
    """

    statements: tuple[Statement, ...]
    skills: tuple[Skill, ...] = ()


class LivePolicy:
    """The current policy: the configured one, plus the halt and the revocations.

    Attributes:
        last_halt: The newest halt, even if it is over.
    """

    def __init__(self, settings: LiveConfig) -> None:
        """Start without a halt."""
        self._settings = settings
        self.last_halt = NEVER
        self._revoked: frozenset[str] = frozenset()
        self.rebuild()

    def __call__(self) -> PolicySet:
        """Return the policy."""
        return self._now

    @property
    def halted_by(self) -> str:
        """The name of the person who halted; empty if there is no halt."""
        return "" if self.last_halt.over else self.last_halt.by

    def halt(self, halt: Halt) -> None:
        """Apply a halt, or its end."""
        self.last_halt = halt
        self.rebuild()

    def ended_by(self, started_at: datetime | None) -> str:
        """Return the name of the person whose halt ends a turn; empty if none does.

        Args:
            started_at: When the turn began, if a restart interrupted it; it is resumed when its chat is
                free, which may be after `/resume`. None for a turn that begins now.
        """
        began_before = started_at is not None and started_at < self.last_halt.at
        return self.last_halt.by if began_before else self.halted_by

    def revoke(self, people: frozenset[str]) -> None:
        """Deny everything to these people, and only to them."""
        self._revoked = people
        self.rebuild()

    def rebuild(self) -> None:
        """Make the policy anew, after the settings, the halt or the revoked people changed."""
        config, last = self._settings.config, self.last_halt
        self._now = assemble(
            config.autonomy,
            self._settings.statements,
            None if last.over else halt_statement(last.by, last.at),
            approvers=config.approvals.approvers,
            revoked=self._revoked,
            ask_when_untrusted=config.policy.ask_when_untrusted,
        )
