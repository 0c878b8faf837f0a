"""The gate's own rule for one call: people, then protection, then policy, then grants.

The gate applies it when a call is decided and again before it runs. `policy explain` and the
console use the same rule, so that an explanation can't differ from the real decision.
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
    """A decision and its judge.

    Attributes:
        decision: The effect, the statements that made it, and the reason.
        by: The judge, for the audit.
        detail: The id of the grant that decided; or the reason why no card can show the call.
    """

    decision: Decision
    by: Judge
    detail: str = ""


class Explained(Value):
    """The gate's answer to a hypothetical query, with its reasons.

    Attributes:
        query: The query to the policy.
        ruling: The gate's ruling.
        considered: How each statement applies to the query.
        notes: Further remarks for the reader, one line each.
    """

    query: Query
    ruling: Ruling
    considered: tuple[Considered, ...]
    notes: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The principal of the query: an id, or roles."""
        person = self.query.principal
        return person.id or ", ".join(f"role:{role}" for role in person.roles)


def denied(by: Judge, reason: str) -> Ruling:
    """Return the ruling on a call that no statement of the policy could allow."""
    return Ruling(decision=Decision(effect="deny", statements=(), reason=reason), by=by)


def rule(
    query: Query,
    *,
    policy: PolicySet,
    protected: Protected,
    exclusion: str = "",
    unresolved: str = "",
    grants: Iterable[Grant] = (),
) -> Ruling:
    """Apply people, then protection, then the policy, then the grants.

    Args:
        query: The query; protection applies only if it has a tool's facts.
        policy: The statements in force.
        protected: The paths that no call may touch.
        exclusion: The reason why the principal may not talk to this bot at all, empty for none.
        unresolved: The reason why the resources are unknown, empty when they are known.
        grants: Those that cover the call.
    """
    if exclusion:
        return denied("people", exclusion)
    if query.facts is not None:
        cause = objection(query.facts, query.resources, protected)
        if cause:
            causes = (cause, unresolved, "no approval can change that")
            return denied("protection", "; ".join(filter(None, causes)))
    decision = policy.decide(query)
    grant = next(iter(grants), None) if may_be_granted(query, decision, policy) else None
    if grant is not None:
        allowed = replace(decision, effect="allow", reason=f"granted by {grant.granted_by}")
        return Ruling(decision=allowed, by="grant", detail=grant.id)
    return Ruling(decision=decision, by="policy")


def may_be_granted(query: Query, decision: Decision, policy: PolicySet) -> bool:
    """Whether a grant may stand for the approval that a decision on a call asks for.

    Not for a command that needs approval because of untrusted text: the same command has another
    effect once a turn has written such text into the files that it reads or runs.
    """
    if decision.effect != "ask" or query.facts is None:
        return False
    asking = (entry for entry in policy.statements if entry.id in decision.statements)
    is_untrusted = any(entry.when.get("untrusted") is True for entry in asking)
    return not (is_untrusted and "exec" in query.facts.effects)


def rule_answer(
    query: Query, *, policy: PolicySet, approvers: Collection[str], exclusion: str = ""
) -> Ruling:
    """Decide whether a principal may answer an approval: the policy allows it, and they are named.

    Args:
        query: The query, `approve:<tool>`.
        policy: The statements in force.
        approvers: The approvers that the approval names.
        exclusion: As for `rule`.
    """
    if exclusion:
        return denied("people", exclusion)
    names = {query.principal.id, *(f"role:{role}" for role in query.principal.roles)}
    if names.isdisjoint(approvers):
        listed = ", ".join(f"`{approver}`" for approver in approvers)
        return denied("approvers", f"approvals are put to {listed}")
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
