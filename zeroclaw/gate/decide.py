"""The gate phase of one batch, in its order, and the last check before a call runs.

For each call, one after the other in request order (K3):

    parse JSON → [transform hooks] → schema → resources → freeze and hash → PROPOSED
    → people → protection → policy (with taint) → grants → [shield] → verdict → EVALUATED

Before a run: the hash is recomputed (S3-25), the tool must still exist, [guard hooks], the
resources are resolved again and compared, protection and policy decide again with the current
taint, [snapshot]. Steps in brackets are not implemented; they belong exactly there. The gate
commits nothing: it returns the durable records, and the caller writes them in the one commit `gated`.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar, assert_never

from zeroclaw.card_words import by_whom
from zeroclaw.clock import Clock, Ids
from zeroclaw.config.model import CurrentConfig
from zeroclaw.envelope import ActionId, Address, ApprovalId, Principal, Reader, is_off_the_record
from zeroclaw.foreign import Raised, call, call_now
from zeroclaw.gate import wording
from zeroclaw.gate.action import (
    Action,
    Frozen,
    action_hash,
    freeze,
    normal_order,
    parse_arguments,
    propose,
)
from zeroclaw.gate.approval import ALL_CHOICES, Approval, is_same_person
from zeroclaw.gate.audit import Entry, Kind
from zeroclaw.gate.card_arguments import MAX_CARD_CHARS, CardArguments, Unshowable, card_arguments
from zeroclaw.gate.conditions import Query, ToolFacts, any_call, facts_of, leaves_no_trace
from zeroclaw.gate.grant import covers
from zeroclaw.gate.policy import PolicySet, reasons_of, ruling_reason
from zeroclaw.gate.protection import Protected
from zeroclaw.gate.receipt import Fields
from zeroclaw.gate.ruling import Ruling, denied, may_be_granted, permits, rule
from zeroclaw.gate.scope import scope_of
from zeroclaw.gate.taint import Taint
from zeroclaw.gate.verdict import (
    NAME_CHARS,
    Allowed,
    Asked,
    Cleared,
    Denied,
    GatedBatch,
    Refusals,
    Setting,
    Stopped,
    Verdict,
    encodable,
    invalid_arguments,
    too_many_calls,
    unknown_tool,
)
from zeroclaw.message import ToolCall
from zeroclaw.redact import Redactor
from zeroclaw.resource import resource_form
from zeroclaw.text import catalogue
from zeroclaw.text.language import ENGLISH, LANGUAGES, Language, Localized
from zeroclaw.tool import Arguments, Tool, ToolContext, line_of
from zeroclaw.value import Struct, Value, replace

_Result = TypeVar("_Result")

MAX_CALLS = 32
"""Calls of one batch that are gated; models that call in parallel send a handful. Each call can become
an approval request, a process or a megabyte of output."""
RESOLVE_S = 10.0
"""Seconds that a tool gets to name the resources of a call."""
AT_ONCE_CHARS = 2_048
"""Longest arguments that the event loop itself parses, judges, hashes and describes; the worst JSON of
this length takes each of these steps some 1 ms."""
APPROVED_FOR = timedelta(days=1)
"""How long after its deadline an approved call may still start. Until then it waits for the answers to
the other calls of its batch, and the calls before it take hours at most. But the daemon may have been
down since; messages that old are not answered either (`max_age_s`)."""
SUMMARY_CHARS = 500
"""Limit of a tool's line on a card, which shows the whole call below it; longer lines are cut."""


class _Case(Value):
    """One call on its way through the gate.

    Attributes:
        card: The key that the asks of its batch share.
        order: Its position in the batch.
        room: Characters of arguments that the card can still take.
    """

    call: ToolCall
    id: ActionId
    setting: Setting
    card: str
    order: int
    room: int


class _Ready(Value):
    """A call that became an action.

    Attributes:
        unresolved: The reason why its resources are unknown, empty when they are known.
        written: Its arguments as the model wrote them, before defaults.
    """

    tool: Tool
    action: Action
    written: Mapping[str, object] | Raised
    unresolved: str = ""

    @property
    def facts(self) -> ToolFacts:
        """The facts that the tool declares."""
        return facts_of(self.tool.spec)


class _Ruled(Value):
    """A call with its ruling.

    Attributes:
        policy: The policy that decided; it may have been replaced since.
    """

    ready: _Ready
    setting: Setting
    query: Query
    policy: PolicySet
    ruling: Ruling


class _Gated(Value):
    """The outcome for one call; `frozen` is None for a malformed one."""

    verdict: Verdict
    audited: tuple[Entry, ...]
    frozen: Frozen | None = None
    approval: Approval | None = None
    cleared: Cleared | None = None


class Gate(Struct, frozen=True, eq=False, kw_only=True):
    """Decides about tool calls; stateless.

    Attributes:
        tools: By name.
        policy: Returns the policy in force; called for every decision, so that a halt counts.
        protected: What no call may touch.
        redactor: Finds secrets in the texts of cards.
        refusals: Makes the results of calls that do not run.
        clock: Dates decisions and deadlines.
        ids: Makes ids of actions, cards and approvals.
        settings: Deadlines and approvers.
        approvers: Returns the approvers to ask about this principal's calls of these tools in this
            chat; empty when none can be reached.
        approver_now: Returns the person with an identity, `<channel>:<sender id>`, if they may
            answer requests about a tool now; else None.
    """

    tools: Mapping[str, Tool]
    policy: Callable[[], PolicySet]
    protected: Protected
    redactor: Redactor
    refusals: Refusals
    clock: Clock
    ids: Ids
    settings: CurrentConfig
    approvers: Callable[[Principal, Address, Collection[str]], tuple[Reader, ...]]
    approver_now: Callable[[str, str], Principal | None]

    async def gate_batch(self, calls: Iterable[ToolCall], setting: Setting) -> GatedBatch:
        """Decide about every call of a batch, before any of them runs (S1-19, K3)."""
        card = self.ids.ulid()
        gated: list[_Gated] = []
        room = MAX_CARD_CHARS
        for order, item in enumerate(calls):
            if order:
                await asyncio.sleep(0)  # a hostile model may send thousands
            id_ = ActionId(self.ids.ulid())
            case = _Case(call=item, id=id_, setting=setting, card=card, order=order, room=room)
            gated.append(await self._gate(case))
            if gated[-1].approval is not None:
                room -= len(gated[-1].approval.arguments)
        return GatedBatch(
            verdicts=tuple(result.verdict for result in gated),
            approvals=tuple(result.approval for result in gated if result.approval is not None),
            audited=tuple(entry for result in gated for entry in result.audited),
            frozen=tuple(result.frozen for result in gated if result.frozen is not None),
            cleared=tuple(result.cleared for result in gated if result.cleared is not None),
        )

    async def recheck(
        self,
        frozen: Frozen,
        setting: Setting,
        approval: Approval | None = None,
        *,
        written: str | None = None,
        cleared: Cleared | None = None,
    ) -> Cleared | Stopped:
        """Check a call for the last time, immediately before it runs.

        Args:
            frozen: The call as it was gated.
            setting: The current setting, with the current grants.
            approval: The stored approval that let it through; None for none.
            written: Its arguments as the model wrote them; None for the frozen form.
            cleared: The gate's result, if the setting has not changed since; then the call is
                decided again only if the policy has changed, or depends on the time.
        """
        action = frozen.action
        if action_hash(action) != frozen.hash or not _is_bound(frozen, setting, approval):
            return _stopped(catalogue.CALL_WAS_CHANGED, setting, by="integrity")
        tool = self.tools.get(action.tool)
        if tool is None:
            return _stopped(catalogue.ITS_TOOL_IS_GONE, setting, by="integrity")
        resources, unresolved = await resolve_resources(tool, action.arguments, setting.context)
        if resources != action.resources:
            return _stopped(catalogue.RESOURCES_CHANGED, setting, by="resources")
        policy = self.policy()
        if cleared is not None and cleared.policy is policy and not policy.is_timed:
            return cleared
        at, raw = self.clock.now(), action.canonical_arguments if written is None else written

        def rechecked() -> Cleared | Stopped:
            parsed = call_now(lambda: parse_arguments(raw))
            ready = _Ready(tool=tool, action=action, written=parsed, unresolved=unresolved)
            return self._rechecked(ready, setting, approval, at)

        return await _run_sized(rechecked, text=raw)

    def _rechecked(
        self, ready: _Ready, setting: Setting, approval: Approval | None, at: datetime
    ) -> Cleared | Stopped:
        ruled = self._ruled(ready, setting, at)
        effect, reason = ruled.ruling.decision.effect, ruled.ruling.decision.reason
        if effect == "ask" and approval is not None and _is_approved(approval, at):
            if not self._still_counts(approval.answerer, approval.tool, setting):
                message = catalogue.MAY_NO_LONGER_APPROVE.about(who=by_whom(approval.by))
                return _stopped(message, setting, by="approvers")
            effect = "allow"
        if effect == "allow":
            return self._cleared(ruled)
        for_people = _reason_for_people(ruled)
        if effect == "ask":
            reason = catalogue.NEEDS_APPROVAL_BY_NOW.to(ENGLISH, why=reason)
            for_people = catalogue.NEEDS_APPROVAL_BY_NOW.to(_language_of(setting), why=for_people)
        return Stopped(reason=reason, for_people=for_people, by=ruled.ruling.by)

    def _cleared(self, ruled: _Ruled) -> Cleared:
        query, policy = ruled.query, ruled.policy
        return Cleared(
            tool=ruled.ready.tool,
            permits=permits(query, ruled.ruling, policy=policy, protected=self.protected),
            in_message=query.in_message is True,
            policy=policy,
        )

    async def _gate(self, case: _Case) -> _Gated:
        ready = await self._prepare(case)
        at = self.clock.now()
        if isinstance(ready, str):
            verdict = self._denied(case, ready, at)
            # An unknown tool's name is the model's own text.
            conversation, name = case.setting.context.conversation, encodable(case.call.name)
            tool = "" if is_off_the_record(conversation) and name not in self.tools else name
            entry = Entry(kind=Kind.PROPOSED, at=at, action=case.id, tool=tool[:NAME_CHARS])
            by = case.setting.context.principal.id
            return _Gated(verdict=verdict, audited=_entries(entry, by, _MALFORMED, verdict))
        return await _run_sized(lambda: self._decided(case, ready, at), text=case.call.arguments)

    def _decided(self, case: _Case, ready: _Ready, at: datetime) -> _Gated:
        ruled, action = self._ruled(ready, case.setting, at), ready.action
        decision, frozen, approval, cleared = ruled.ruling.decision, freeze(action), None, None
        execution = self.settings.config.runtime.tool_execution
        sequential = "sequential" in {ready.tool.spec.execution, execution}
        match decision.effect:
            case "allow":
                verdict = Allowed(action=case.id, sequential=sequential)
                cleared = self._cleared(ruled)
            case "ask":
                displayed = card_arguments(action.arguments, self.redactor, case.room)
                address = case.setting.context.address
                if isinstance(displayed, Unshowable):
                    decision = replace(decision, effect="deny", reason=displayed.reason)
                    ruling = Ruling(decision=decision, by="card", detail=displayed.reason)
                    ruled = replace(ruled, ruling=ruling)
                    verdict = self._ruled_out(case, ruled)
                elif not self.approvers(action.principal, address, (action.tool,)):
                    verdict = self._unreachable(case, action, at)
                else:
                    approval = self._approval(case, ruled, frozen, displayed)
                    verdict = Asked(
                        action=case.id,
                        approval=approval.id,
                        deadline_at=approval.deadline_at,
                        sequential=sequential,
                    )
            case "deny":
                verdict = self._ruled_out(case, ruled)
            case _:
                assert_never(decision.effect)
        entry = Entry(kind=Kind.PROPOSED, at=at, action=case.id, tool=action.tool, hash=frozen.hash)
        return _Gated(
            verdict=verdict,
            audited=_entries(entry, action.principal.id, ruled.ruling, verdict),
            frozen=frozen,
            approval=approval,
            cleared=cleared,
        )

    # --- the steps, in order ---------------------------------------------------------------------

    async def _prepare(self, case: _Case) -> _Ready | str:
        """Parse, check and resolve; return a text for the model if that fails."""
        name, context = case.call.name, case.setting.context
        if case.order >= MAX_CALLS:
            return too_many_calls(name, MAX_CALLS)
        raw = case.call.arguments
        parsed = await _run_sized(lambda: call_now(lambda: parse_arguments(raw)), text=raw)
        if isinstance(parsed, Raised):
            return invalid_arguments(name, parsed)
        tool = self.tools.get(name)
        if tool is None:
            return unknown_tool(name, self._usable_tools(case.setting))
        proposed = partial(
            propose,
            id=case.id,
            conversation=context.conversation,
            principal=context.principal,
            turn=case.setting.turn,
            tool=name,
            resources=None,
        )
        action = await _run_sized(
            lambda: call_now(lambda: proposed(arguments=tool.check(parsed))), text=raw
        )
        if isinstance(action, Raised):
            return invalid_arguments(name, action)
        resources, unresolved = await resolve_resources(tool, action.arguments, context)
        action = replace(action, resources=resources)
        return _Ready(tool=tool, action=action, written=parsed, unresolved=unresolved)

    def _usable_tools(self, setting: Setting) -> list[str]:
        """Return the tools of which the requester may make some call."""
        principal, policy = setting.principal, self.policy()
        calls = {
            name: any_call(
                tool.spec, principal, now=self.clock.now(), direct=setting.context.address.direct
            )
            for name, tool in self.tools.items()
        }
        return [name for name, query in calls.items() if policy.could(query)]

    def _ruled(self, ready: _Ready, setting: Setting, at: datetime) -> _Ruled:
        action, facts, policy = ready.action, ready.facts, self.policy()
        query = Query(
            principal=setting.principal,
            action=f"tool:{action.tool}",
            now=at,
            resources=action.resources,
            facts=facts,
            arguments=action.arguments,
            direct=setting.context.address.direct,
            untrusted=bool(setting.taint.sources_for(facts)),
            in_message=_is_in_message(ready, setting.taint),
            compaction=setting.compaction,
        )
        exclusion = f"the person it is for may no longer talk to this bot, by {setting.revoked_by}"
        if _leaves_a_trace(setting, facts):
            ruling = denied("protection", catalogue.LEAVES_A_TRACE.to(ENGLISH))
        else:
            ruling = rule(
                query,
                policy=policy,
                protected=self.protected,
                exclusion=exclusion if setting.revoked_by else "",
                unresolved=ready.unresolved,
                grants=(
                    grant
                    for grant in setting.grants
                    if covers(grant, action, facts, at)
                    and self._still_counts(grant.granter_sender, grant.tool, setting)
                ),
            )
        return _Ruled(ready=ready, setting=setting, query=query, policy=policy, ruling=ruling)

    def _still_counts(self, answerer: str, tool: str, setting: Setting) -> bool:
        """Whether a yes still counts: its giver may approve such a call of this person now (P5)."""
        may_answer = self.settings.config.approvals.requester_may_answer
        if not answerer:  # a row of an earlier release
            return may_answer
        approver = self.approver_now(answerer, tool)
        if approver is None or may_answer:
            return approver is not None
        requesters = (setting.context.principal, setting.principal)
        return not any(is_same_person(requester, approver) for requester in requesters)

    def _approval(
        self, case: _Case, ruled: _Ruled, frozen: Frozen, arguments: CardArguments
    ) -> Approval:
        ready, settings = ruled.ready, self.settings.config.approvals
        action, facts = ready.action, ready.facts
        decision, scope = ruled.ruling.decision, None
        if may_be_granted(ruled.query, decision, ruled.policy):
            scope = scope_of(action, facts, settings.grant_s, str(case.setting.context.workspace))
        choices = ("once", "deny", "deny_with_reason") if scope is None else ALL_CHOICES
        line = partial(self._summary, ready, arguments)
        return Approval(
            id=ApprovalId(self.ids.token()),
            action=action.id,
            action_hash=frozen.hash,
            tool=action.tool,
            conversation=action.conversation,
            turn=action.turn,
            requester=action.principal,
            approvers=settings.approvers,
            requester_may_answer=settings.requester_may_answer,
            summary=line(ENGLISH),
            summaries=tuple((other, line(other)) for other in LANGUAGES if other != ENGLISH),
            arguments=arguments.text,
            hidden=arguments.hidden,
            scope=scope,
            why=decision.reason,
            reasons=reasons_of(ruled.policy, decision, case.setting.taint.sources_for(facts)),
            card=case.card,
            order=case.order,
            choices=choices,
            deadline_at=ruled.query.now + timedelta(seconds=settings.timeout_s),
        )

    def _summary(self, ready: _Ready, arguments: CardArguments, language: Language) -> str:
        """Return the tool's line about the call; only its name if the call or the line holds a secret.

        A line that is cut may show a part of a secret that no search finds.
        """
        line = call_now(lambda: line_of(ready.tool, ready.action.arguments, language))
        summary = "" if isinstance(line, Raised) or arguments.hidden else line
        if not summary or self.redactor.finds(summary, known_only=True):
            return catalogue.WOULD_RUN_TOOL.to(language, tool=ready.action.tool)
        return summary if len(summary) <= SUMMARY_CHARS else f"{summary[:SUMMARY_CHARS]} …"

    def _ruled_out(self, case: _Case, ruled: _Ruled) -> Denied:
        language, action = _language_of(case.setting), ruled.ready.action
        cause = _reason_for_people(ruled)
        text = catalogue.CALL_DID_NOT_RUN.to(language, tool=action.tool, why=cause)
        reason = f"`{action.tool}` may not run: {ruled.ruling.decision.reason}"
        return self._denied(case, reason, ruled.query.now, action, for_people=text)

    def _unreachable(self, case: _Case, action: Action, at: datetime) -> Denied:
        """Return the denial of a call when no approver can be reached."""
        text = catalogue.CALL_UNREACHABLE.to(_language_of(case.setting), tool=action.tool)
        return self._denied(case, wording.unreachable(action.tool), at, action, for_people=text)

    def _denied(
        self,
        case: _Case,
        reason: str,
        at: datetime,
        action: Action | None = None,
        *,
        for_people: str = "",
    ) -> Denied:
        """Return the denial of a call; without an action, of a malformed one."""
        outcome = "failed" if action is None else "denied"
        fields = Fields(
            conversation=case.setting.context.conversation,
            action=case.id,
            tool=case.call.name,
            arguments=case.call.arguments if action is None else action.canonical_arguments,
            outcome=outcome,
            result=reason,
        )
        result, token = self.refusals.refuse(fields, at, for_people=for_people)
        return Denied(action=case.id, result=result, receipt=token, outcome=outcome)


async def resolve_resources(
    tool: Tool, arguments: Arguments, context: ToolContext
) -> tuple[tuple[str, ...] | None, str]:
    """Return the resources of a call, or None and the reason why they are unknown."""
    try:
        async with asyncio.timeout(RESOLVE_S):
            named = await call(lambda: tool.resources(arguments, context))
    except TimeoutError:
        return None, "the tool took too long to name them"
    if isinstance(named, Raised):
        return None, named.line
    # A file's name may not be UTF-8, and a third party's tool may return anything.
    normal = call_now(lambda: normal_order(resource_form(name.encode().decode()) for name in named))
    if isinstance(normal, Raised):
        form = "UTF-8"
        if isinstance(normal.error, ValueError) and not isinstance(normal.error, UnicodeError):
            form = "normal form"
        return None, f"the tool named one without {form}"
    return normal, ""


async def _run_sized(work: Callable[[], _Result], *, text: str) -> _Result:
    """Run work whose time grows with a text, for a long one in a thread."""
    return await asyncio.to_thread(work) if len(text) > AT_ONCE_CHARS else work()


def _is_in_message(ready: _Ready, taint: Taint) -> bool:
    return not isinstance(ready.written, Raised) and taint.is_in_message(
        ready.written, ready.tool.spec.parameters, ready.facts
    )


def _leaves_a_trace(setting: Setting, facts: ToolFacts) -> bool:
    """Whether a call would leave a trace of a conversation off the record."""
    return is_off_the_record(setting.context.conversation) and not leaves_no_trace(facts)


def _reason_for_people(ruled: _Ruled) -> str:
    """Return the reason of a refusal, for a person who called the tool themselves."""
    language = _language_of(ruled.setting)
    if _leaves_a_trace(ruled.setting, ruled.ready.facts):
        return catalogue.LEAVES_A_TRACE.to(language)
    if ruled.ruling.by != "policy":
        return ruled.ruling.decision.reason
    return ruling_reason(ruled.policy, ruled.ruling.decision, ruled.query, language)


def _is_approved(approval: Approval, now: datetime) -> bool:
    return approval.state == "approved" and now < approval.deadline_at + APPROVED_FOR


def _is_bound(frozen: Frozen, setting: Setting, approval: Approval | None) -> bool:
    """Whether conversation, person and approval belong to exactly this call (P5)."""
    action, context = frozen.action, setting.context
    if (action.conversation, action.principal.id) != (context.conversation, context.principal.id):
        return False
    return approval is None or (approval.action, approval.action_hash) == (action.id, frozen.hash)


def _language_of(setting: Setting) -> Language:
    """Return the requester's language; an action has none, so that its hash does not depend on it."""
    return setting.context.principal.language


def _stopped(message: Localized, setting: Setting, *, by: str) -> Stopped:
    for_people = message.to(_language_of(setting))
    return Stopped(reason=message.to(ENGLISH), for_people=for_people, by=by)


# --- entries for the audit -----------------------------------------------------------------------


_MALFORMED = replace(denied("schema", ""), detail="malformed")


def _entries(entry: Entry, by: str, ruling: Ruling, verdict: Verdict) -> tuple[Entry, ...]:
    """Return the audit entries of a call that a person proposed and the gate decided.

    Args:
        entry: Their common fields.
        by: The person, as `Principal.id`.
        ruling: The decision.
        verdict: The verdict that followed from it.
    """
    decision = ruling.decision
    evaluated = replace(
        entry,
        kind=Kind.EVALUATED,
        by=ruling.by,
        decision=decision.effect,
        statements=decision.statements,
        approval=verdict.approval if isinstance(verdict, Asked) else "",
        detail=ruling.detail,
    )
    entries = (replace(entry, by=by), evaluated)
    if not isinstance(verdict, Denied):
        return entries
    end = replace(
        entry,
        kind=Kind.FAILED if verdict.outcome == "failed" else Kind.DENIED,
        by="unreachable" if decision.effect == "ask" else ruling.by,
        detail=ruling.detail,
        receipt=verdict.receipt,
    )
    return (*entries, end)
