"""The gate phase of one batch, in its order, and the last check before a call runs.

For each call, one after the other in request order (K3):

    parse JSON → [transform hooks] → schema → resources → freeze and hash → PROPOSED
    → people → protection → policy (with taint) → grants → [shield] → verdict → EVALUATED

Before a run: the hash is recomputed (S3-25), the tool must still exist, [guard hooks], the
resources are resolved again and compared, protection and policy decide again with the current
taint, [snapshot]. Steps in brackets are not implemented; they belong exactly there. Nothing here
commits: what must be durable is returned, and the caller writes it in the one commit `gated`.
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
from zeroclaw.gate.card_arguments import MOST_CARD_CHARS, CardArguments, Unshowable, card_arguments
from zeroclaw.gate.conditions import Query, ToolFacts, any_call, facts_of, leaves_no_trace
from zeroclaw.gate.grant import covers
from zeroclaw.gate.policy import PolicySet, reasons_of, why_ruled
from zeroclaw.gate.protection import Protected
from zeroclaw.gate.receipt import Fields, fields_of
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

_Done = TypeVar("_Done")

MOST_CALLS = 32
"""Calls of one batch that are gated; models that call in parallel send a handful. Each call can become
a question to people, a process or a megabyte of output."""
AT_ONCE_CHARS = 2_048
"""Longest arguments that are parsed, judged, hashed and described on the event loop; the worst JSON of
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
        unresolved: Why its resources are unknown, empty when they are known.
        written: Its arguments as the model wrote them, before defaults.
    """

    tool: Tool
    action: Action
    written: Mapping[str, object] | Raised
    unresolved: str = ""

    @property
    def facts(self) -> ToolFacts:
        """What the tool declares."""
        return facts_of(self.tool.spec)


class _Ruled(Value):
    """A call that was decided, and by what.

    Attributes:
        policy: The policy that decided; it may have been replaced since.
    """

    ready: _Ready
    setting: Setting
    query: Query
    policy: PolicySet
    ruling: Ruling


class _Gated(Value):
    """The outcome for one call; `approval` is its question, `frozen` is None for a malformed call."""

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
        redactor: Finds secrets in what cards show.
        refusals: Words the results of calls that do not run.
        clock: Dates decisions and deadlines.
        ids: Makes ids of actions, cards and approvals.
        settings: Deadlines and approvers.
        approvers: Returns who is asked about this principal's calls of these tools in this chat;
            empty when no approver can be reached.
        approver_now: Returns who has an identity, `<channel>:<sender id>`, if they may answer
            requests about a tool now; else None.
        resolve_timeout_s: Seconds that a tool may take to say what it would touch.
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
    resolve_timeout_s: float = 10.0

    async def gate_batch(self, calls: Iterable[ToolCall], setting: Setting) -> GatedBatch:
        """Decide about every call of a batch, before any of them runs (S1-19, K3)."""
        card = self.ids.ulid()
        gated: list[_Gated] = []
        room = MOST_CARD_CHARS
        for order, one in enumerate(calls):
            if order >= MOST_CALLS:
                await asyncio.sleep(0)  # a hostile model may send thousands
            name = ActionId(self.ids.ulid())
            case = _Case(call=one, id=name, setting=setting, card=card, order=order, room=room)
            gated.append(await self._gate(case))
            if gated[-1].approval is not None:
                room -= len(gated[-1].approval.arguments)
        return GatedBatch(
            verdicts=tuple(one.verdict for one in gated),
            approvals=tuple(one.approval for one in gated if one.approval is not None),
            audited=tuple(entry for one in gated for entry in one.audited),
            frozen=tuple(one.frozen for one in gated if one.frozen is not None),
            cleared=tuple(one.cleared for one in gated if one.cleared is not None),
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
        resources, unresolved = await resolve_resources(
            tool, action.arguments, setting.context, timeout_s=self.resolve_timeout_s
        )
        if resources != action.resources:
            return _stopped(catalogue.WHAT_IT_TOUCHES_CHANGED, setting, by="resources")
        policy = self.policy()
        if cleared is not None and cleared.policy is policy and not policy.is_timed:
            return cleared
        at, raw = self.clock.now(), action.canonical_arguments if written is None else written

        def rechecked() -> Cleared | Stopped:
            said = call_now(lambda: parse_arguments(raw))
            ready = _Ready(tool=tool, action=action, written=said, unresolved=unresolved)
            return self._rechecked(ready, setting, approval, at)

        return await _done(rechecked, about=raw)

    def _rechecked(
        self, ready: _Ready, setting: Setting, approval: Approval | None, at: datetime
    ) -> Cleared | Stopped:
        one = self._ruled(ready, setting, at)
        effect, why = one.ruling.decision.effect, one.ruling.decision.why
        if effect == "ask" and approval is not None and _is_approved(approval, at):
            if not self._counts(approval.answerer, approval.tool, setting):
                says = catalogue.MAY_NO_LONGER_APPROVE.about(who=by_whom(approval.by))
                return _stopped(says, setting, by="approvers")
            effect = "allow"
        if effect == "allow":
            return self._cleared(one)
        told = _told(one)
        if effect == "ask":
            why = catalogue.NEEDS_APPROVAL_BY_NOW.to(ENGLISH, why=why)
            told = catalogue.NEEDS_APPROVAL_BY_NOW.to(_language_of(setting), why=told)
        return Stopped(reason=why, for_people=told, by=one.ruling.by)

    def _cleared(self, one: _Ruled) -> Cleared:
        return Cleared(
            tool=one.ready.tool,
            permits=permits(one.query, one.ruling, policy=one.policy, protected=self.protected),
            in_message=one.query.in_message is True,
            policy=one.policy,
        )

    async def _gate(self, case: _Case) -> _Gated:
        ready = await self._prepare(case)
        at = self.clock.now()
        if isinstance(ready, str):
            verdict = self._denied(case, ready, at)
            # An unknown tool's name is the model's own text.
            here, name = case.setting.context.conversation, case.call.name
            tool = "" if is_off_the_record(here) and name not in self.tools else name
            entry = Entry(kind=Kind.PROPOSED, at=at, action=case.id, tool=tool[:NAME_CHARS])
            by = case.setting.context.principal.id
            return _Gated(verdict=verdict, audited=_audited(entry, by, _MALFORMED, verdict))
        return await _done(lambda: self._decided(case, ready, at), about=case.call.arguments)

    def _decided(self, case: _Case, ready: _Ready, at: datetime) -> _Gated:
        one, action = self._ruled(ready, case.setting, at), ready.action
        frozen, approval, cleared = freeze(action), None, None
        execution = self.settings.config.runtime.tool_execution
        sequential = "sequential" in {ready.tool.spec.execution, execution}
        match one.ruling.decision.effect:
            case "allow":
                verdict = Allowed(action=case.id, sequential=sequential)
                cleared = self._cleared(one)
            case "ask":
                shown = card_arguments(action.arguments, self.redactor, case.room)
                where = case.setting.context.address
                if isinstance(shown, Unshowable):
                    decision = replace(one.ruling.decision, effect="deny", why=shown.why)
                    ruling = Ruling(decision=decision, by="card", detail=shown.why)
                    one = replace(one, ruling=ruling)
                    verdict = self._ruled_out(case, one)
                elif not self.approvers(action.principal, where, (action.tool,)):
                    verdict = self._unreachable(case, action, at)
                else:
                    approval = self._approval(case, one, frozen, shown)
                    verdict = Asked(
                        action=case.id,
                        approval=approval.id,
                        deadline_at=approval.deadline_at,
                        sequential=sequential,
                    )
            case "deny":
                verdict = self._ruled_out(case, one)
            case _:
                assert_never(one.ruling.decision.effect)
        entry = Entry(kind=Kind.PROPOSED, at=at, action=case.id, tool=action.tool, hash=frozen.hash)
        return _Gated(
            verdict=verdict,
            audited=_audited(entry, action.principal.id, one.ruling, verdict),
            frozen=frozen,
            approval=approval,
            cleared=cleared,
        )

    # --- the steps, in order ---------------------------------------------------------------------

    async def _prepare(self, case: _Case) -> _Ready | str:
        """Parse, check and resolve; return a text for the model if that fails."""
        name, context = case.call.name, case.setting.context
        if case.order >= MOST_CALLS:
            return too_many_calls(name, MOST_CALLS)
        raw = case.call.arguments
        parsed = await _done(lambda: call_now(lambda: parse_arguments(raw)), about=raw)
        if isinstance(parsed, Raised):
            return invalid_arguments(name, parsed)
        tool = self.tools.get(name)
        if tool is None:
            return unknown_tool(name, self._known_to(case.setting))
        proposed = partial(
            propose,
            id=case.id,
            conversation=context.conversation,
            principal=context.principal,
            turn=case.setting.turn,
            tool=name,
            resources=None,
        )
        action = await _done(
            lambda: call_now(lambda: proposed(arguments=tool.check(parsed))), about=raw
        )
        if isinstance(action, Raised):
            return invalid_arguments(name, action)
        resources, unresolved = await resolve_resources(
            tool, action.arguments, context, timeout_s=self.resolve_timeout_s
        )
        action = replace(action, resources=resources)
        return _Ready(tool=tool, action=action, written=parsed, unresolved=unresolved)

    def _known_to(self, setting: Setting) -> list[str]:
        """Return the tools that the requester may use for some call."""
        whose, policy = setting.known or setting.context.principal, self.policy()
        calls = {
            name: any_call(
                tool.spec, whose, now=self.clock.now(), direct=setting.context.address.direct
            )
            for name, tool in self.tools.items()
        }
        return [name for name, query in calls.items() if policy.could(query)]

    def _ruled(self, ready: _Ready, setting: Setting, at: datetime) -> _Ruled:
        action, facts, policy = ready.action, ready.facts, self.policy()
        query = Query(
            principal=setting.known or setting.context.principal,
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
        out = f"whoever set it off may no longer talk to this bot, by {setting.out}"
        if _leaves_a_trace(setting, facts):
            ruling = denied("protection", catalogue.LEAVES_A_TRACE.to(ENGLISH))
        else:
            ruling = rule(
                query,
                policy=policy,
                protected=self.protected,
                out=out if setting.out else "",
                unresolved=ready.unresolved,
                grants=(
                    one
                    for one in setting.grants
                    if covers(one, action, facts, at)
                    and self._counts(one.granter_sender, one.tool, setting)
                ),
            )
        return _Ruled(ready=ready, setting=setting, query=query, policy=policy, ruling=ruling)

    def _counts(self, answerer: str, tool: str, setting: Setting) -> bool:
        """Whether a yes still counts: who gave it may approve such a call of this person now (P5)."""
        may_answer = self.settings.config.approvals.requester_may_answer
        if not answerer:  # a row of an earlier release
            return may_answer
        approver, asks = self.approver_now(answerer, tool), setting.context.principal
        return approver is not None and (
            may_answer
            or not any(is_same_person(one, approver) for one in (asks, setting.known or asks))
        )

    def _approval(self, case: _Case, one: _Ruled, frozen: Frozen, shown: CardArguments) -> Approval:
        ready, settings = one.ready, self.settings.config.approvals
        action, facts = ready.action, ready.facts
        decision, scope = one.ruling.decision, None
        if may_be_granted(one.query, decision, one.policy):
            workspace = str(case.setting.context.workspace)
            scope = scope_of(action, facts, settings.grant_s, workspace)
        choices = ("once", "deny", "deny_with_reason") if scope is None else ALL_CHOICES
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
            summary=self._summary(ready, ENGLISH),
            summaries=tuple(
                (other, self._summary(ready, other)) for other in LANGUAGES if other != ENGLISH
            ),
            arguments=shown.text,
            hidden=shown.hidden,
            scope=scope,
            why=decision.why,
            reasons=reasons_of(one.policy, decision, case.setting.taint.sources_for(facts)),
            card=case.card,
            order=case.order,
            choices=choices,
            deadline_at=one.query.now + timedelta(seconds=settings.timeout_s),
        )

    def _summary(self, ready: _Ready, language: Language) -> str:
        """Return the tool's line about the call; only the tool's name if the line contains a secret."""
        line = call_now(lambda: line_of(ready.tool, ready.action.arguments, language))
        said = "" if isinstance(line, Raised) else line
        if not said or self.redactor.finds(said, known_only=True):
            return catalogue.WOULD_RUN_TOOL.to(language, tool=ready.action.tool)
        return said if len(said) <= SUMMARY_CHARS else f"{said[:SUMMARY_CHARS]} …"

    def _ruled_out(self, case: _Case, one: _Ruled) -> Denied:
        language, action = _language_of(case.setting), one.ready.action
        told = catalogue.CALL_DID_NOT_RUN.to(language, tool=action.tool, why=_told(one))
        why = f"`{action.tool}` may not run: {one.ruling.decision.why}"
        return self._denied(case, why, one.query.now, action, for_people=told)

    def _unreachable(self, case: _Case, action: Action, at: datetime) -> Denied:
        """Return the denial of a call when no approver can be reached."""
        told = catalogue.CALL_UNREACHABLE.to(_language_of(case.setting), tool=action.tool)
        return self._denied(case, wording.unreachable(action.tool), at, action, for_people=told)

    def _denied(
        self,
        case: _Case,
        why: str,
        at: datetime,
        action: Action | None = None,
        *,
        for_people: str = "",
    ) -> Denied:
        """Return the denial of a call; without an action, of a malformed one."""
        if action is not None:
            fields = fields_of(action, "denied", why)
        else:
            fields = Fields(
                conversation=case.setting.context.conversation,
                action=case.id,
                tool=case.call.name,
                arguments=case.call.arguments,
                outcome="failed",
                result=why,
            )
        result, token = self.refusals.refuse(fields, at, for_people=for_people)
        outcome = "failed" if action is None else "denied"
        return Denied(action=case.id, result=result, receipt=token, outcome=outcome)


async def resolve_resources(
    tool: Tool, arguments: Arguments, context: ToolContext, *, timeout_s: float
) -> tuple[tuple[str, ...] | None, str]:
    """Return what a call would touch, or None and why that is unknown."""
    try:
        async with asyncio.timeout(timeout_s):
            found = await call(lambda: tool.resources(arguments, context))
    except TimeoutError:
        return None, "the tool took too long to say"
    if isinstance(found, Raised):
        return None, found.line
    # A file's name may not be UTF-8, and a third party's tool may return anything.
    spelled = call_now(lambda: normal_order(resource_form(one.encode().decode()) for one in found))
    if isinstance(spelled, Raised):
        what = "UTF-8"
        if isinstance(spelled.error, ValueError) and not isinstance(spelled.error, UnicodeError):
            what = "normal form"
        return None, f"what it said has no {what}"
    return spelled, ""


async def _done(work: Callable[[], _Done], *, about: str) -> _Done:
    """Run work that takes time per character of the arguments; for long ones in a thread."""
    return await asyncio.to_thread(work) if len(about) > AT_ONCE_CHARS else work()


def _is_in_message(ready: _Ready, taint: Taint) -> bool:
    return not isinstance(ready.written, Raised) and taint.is_in_message(
        ready.written, ready.tool.spec.parameters, ready.facts
    )


def _leaves_a_trace(setting: Setting, facts: ToolFacts) -> bool:
    """Whether a call would leave a trace of a conversation off the record."""
    return is_off_the_record(setting.context.conversation) and not leaves_no_trace(facts)


def _told(one: _Ruled) -> str:
    """Return why a call is not allowed, for a person who called the tool themselves."""
    language = _language_of(one.setting)
    if _leaves_a_trace(one.setting, one.ready.facts):
        return catalogue.LEAVES_A_TRACE.to(language)
    if one.ruling.by != "policy":
        return one.ruling.decision.why
    return why_ruled(one.policy, one.ruling.decision, one.query, language)


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


def _stopped(why: Localized, setting: Setting, *, by: str) -> Stopped:
    told = why.to(_language_of(setting))
    return Stopped(reason=why.to(ENGLISH), for_people=told, by=by)


# --- entries for the audit -----------------------------------------------------------------------


_MALFORMED = replace(denied("schema", ""), detail="malformed")


def _audited(entry: Entry, by: str, ruling: Ruling, verdict: Verdict) -> tuple[Entry, ...]:
    """Return the entries of a call that was decided, proposed by this person.

    Args:
        entry: What all of them say.
        by: The person, as `Principal.id`.
        ruling: The decision.
        verdict: What became of the call.
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
