"""What is in force now: the settings, the policy with halt and revocations, and the people.

Both are replaced as a whole, without an await, so that no reader sees half of a new configuration.
Other code gets a callable, and calls it each time.
"""

from datetime import datetime

from zeroclaw.config.model import Config
from zeroclaw.gate.policy import PolicySet, Statement
from zeroclaw.gate.shipped import assemble, halt_statement
from zeroclaw.inbound.commands.halt import NEVER, Halt
from zeroclaw.tools.loading.skill import Skill
from zeroclaw.value import Struct


class LiveConfig(Struct):
    """The settings that the daemon runs on; a reload replaces them, in one step without an await.

    Attributes:
        statements: The configured statements of the policy.
        skills: The skills in the configured folder.
    """

    config: Config
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
        self._now = self._assembled()

    def __call__(self) -> PolicySet:
        """Return the policy."""
        return self._now

    @property
    def halted_by(self) -> str:
        """Who halted everything, empty when nothing is halted."""
        return "" if self.last_halt.over else self.last_halt.by

    def halt(self, halt: Halt) -> None:
        """Put a halt in force, or end it."""
        self.last_halt = halt
        self._now = self._assembled()

    def ended_by(self, begun: datetime | None) -> str:
        """Return who ended a turn by a halt, empty for nobody.

        Args:
            begun: When the turn began, if a restart interrupted it; it is resumed when its chat is
                free, which may be after `/resume`. None for a turn that begins now.
        """
        last = self.last_halt
        began_before = begun is not None and begun < last.at
        return last.by if began_before or not last.over else ""

    def revoke(self, people: frozenset[str]) -> None:
        """Deny everything to these people, and to nobody else."""
        self._revoked = people
        self._now = self._assembled()

    def configured(self) -> None:
        """Apply the settings after they were replaced."""
        self._now = self._assembled()

    def _assembled(self) -> PolicySet:
        config, last = self._settings.config, self.last_halt
        return assemble(
            config.autonomy,
            self._settings.statements,
            None if last.over else halt_statement(last.by, last.at),
            approvers=config.approvals.approvers,
            revoked=self._revoked,
            ask_when_untrusted=config.policy.ask_when_untrusted,
        )
