"""What people, protection, policy and grants together decide about one call: the gate's own rule.

The gate applies it when a call is decided and again before it runs. `policy explain` and the
console use the same rule, so that an explanation can't differ from what would happen.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Literal

from zeroclaw.gate.conditions import Query
from zeroclaw.gate.grant import Grant
from zeroclaw.gate.policy import Considered, Decision, PolicySet
from zeroclaw.gate.protection import Protected, guard, objection
from zeroclaw.resource import composed
from zeroclaw.value import Value, replace

Judge = Literal["schema", "people", "protection", "policy", "approvers", "grant", "card"]


class Ruling(Value):
    """A decision, and what made it.

    Attributes:
        decision: The effect, the statements that made it, and why.
        by: What decided, for the audit.
        detail: The grant's id, if one did; or why no card can show the call.
    """

    decision: Decision
    by: Judge
    detail: str = ""


class Explained(Value):
    """What would be decided, and why.

    Attributes:
        query: The query to the policy.
        ruling: What the gate would decide.
        considered: How each statement applies to the query.
        notes: What else the reader should know, one line each.
    """

    query: Query
    ruling: Ruling
    considered: tuple[Considered, ...]
    notes: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        """Whom it is about: an id, or roles."""
        person = self.query.principal
        return person.id or ", ".join(f"role:{role}" for role in person.roles)


def denied(by: Judge, why: str) -> Ruling:
    """Return the ruling on a call that no statement of the policy could allow."""
    return Ruling(decision=Decision(effect="deny", statements=(), why=why), by=by)


def rule(
    query: Query,
    *,
    policy: PolicySet,
    protected: Protected,
    out: str = "",
    unresolved: str = "",
    grants: Iterable[Grant] = (),
) -> Ruling:
    """Apply people, then protection, then the policy, then the grants.

    Args:
        query: The question; protection applies only if it has a tool's facts.
        policy: The statements in force.
        protected: What no call may touch.
        out: Why the principal may not talk to this bot at all, empty when they may.
        unresolved: Why the resources are unknown, empty when they are known.
        grants: Those that cover the call.
    """
    if out:
        return denied("people", out)
    if query.facts is not None:
        reason = objection(query.facts, query.resources, protected)
        if reason:
            causes = (reason, unresolved, "no approval can change that")
            why = "; ".join(cause for cause in causes if cause)
            return denied("protection", why)
    decision = policy.decide(query)
    grant = next(iter(grants), None) if may_be_granted(query, decision, policy) else None
    if grant is not None:
        allowed = replace(decision, effect="allow", why=f"granted by {grant.granted_by}")
        return Ruling(decision=allowed, by="grant", detail=grant.id)
    return Ruling(decision=decision, by="policy")


def may_be_granted(query: Query, decision: Decision, policy: PolicySet) -> bool:
    """Whether a grant may stand for the approval that a decision on a call asks for.

    Not for a command that is asked about because of untrusted text: the same command does something
    else once such text has been written into the files that it reads or runs.
    """
    if decision.effect != "ask" or query.facts is None:
        return False
    asks = (one for one in policy.statements if one.id in decision.statements)
    is_untrusted = any(one.when.get("untrusted") is True for one in asks)
    return not (is_untrusted and "exec" in query.facts.effects)


def rule_answer(
    query: Query, *, policy: PolicySet, approvers: Collection[str], out: str = ""
) -> Ruling:
    """Decide whether a principal may answer an approval: the policy allows it, and they are named.

    Args:
        query: The question, `approve:<tool>`.
        policy: The statements in force.
        approvers: Whom the approval names.
        out: As for `rule`.
    """
    if out:
        return denied("people", out)
    named = {query.principal.id, *(f"role:{role}" for role in query.principal.roles)}
    if named.isdisjoint(approvers):
        whom = ", ".join(f"`{one}`" for one in approvers)
        return denied("approvers", f"approvals are put to {whom}")
    return Ruling(decision=policy.decide(query), by="policy")


def permits(
    query: Query, ruling: Ruling, *, policy: PolicySet, protected: Protected
) -> Callable[[str], bool]:
    """Return `ToolContext.permits` for a call that may run by this ruling, with its asks approved."""
    touchable = guard(protected)
    walk = policy.walk(query, ruling.decision.statements)

    def may(resource: str) -> bool:
        name = composed(resource)
        return touchable(name) and walk(name)

    return may
