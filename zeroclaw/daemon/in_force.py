"""The policy now: the configured one, the halt while there is one, and who was put out."""

from zeroclaw.daemon.parts import Parts
from zeroclaw.gate.policy import PolicySet
from zeroclaw.gate.shipped import halt_statement
from zeroclaw.gate.statement import Statement
from zeroclaw.inbound.switch import Halt


class PolicyInForce:
    """The policy now: the configured one, and the halt while there is one."""

    def __init__(self, parts: Parts) -> None:
        """Begin without a halt."""
        self._parts = parts
        self._now = parts.policy(None)
        self._halt: Statement | None = None
        self._revoked: frozenset[str] = frozenset()
        self.halted_by = ""

    def __call__(self) -> PolicySet:
        """Return it."""
        return self._now

    def halt(self, halt: Halt | None) -> None:
        """Put a halt in force, or end it."""
        self.halted_by = "" if halt is None else halt.by
        self._halt = None if halt is None else halt_statement(halt.by, halt.at)
        self._now = self._parts.policy(self._halt, self._revoked)

    def revoke(self, people: frozenset[str]) -> None:
        """Deny everything to these, and to nobody else."""
        self._revoked = people
        self._now = self._parts.policy(self._halt, self._revoked)
