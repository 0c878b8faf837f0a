"""What the gate is told, and what it answers: values only."""

from collections.abc import Callable
from typing import Literal

from zeroclaw.envelope import ActionId, Principal, TurnId
from zeroclaw.gate.action import Frozen
from zeroclaw.gate.approval import Approval
from zeroclaw.gate.audit import Entry
from zeroclaw.gate.grant import Grant
from zeroclaw.gate.taint import Taint
from zeroclaw.message import ToolMessage
from zeroclaw.store import Write
from zeroclaw.tool import Tool, ToolContext, ToolSpec
from zeroclaw.value import Value


class GateSettings(Value):
    """How the gate asks, and how long it waits for a tool.

    Attributes:
        approval_timeout_s: Seconds until silence is a denial.
        approvers: Whom a card names; whether an answer counts is the policy's.
        requester_may_answer: Whether the requester may be the approver.
        grant_s: Seconds that an approval "for a time" holds.
        resolve_timeout_s: Seconds that a tool may take to say what it would touch.
    """

    approval_timeout_s: float
    approvers: tuple[str, ...] = ("role:operator",)
    requester_may_answer: bool = True
    grant_s: float = 3600.0
    resolve_timeout_s: float = 10.0


class Setting(Value):
    """Where and for whom a batch is gated.

    Attributes:
        context: What the tools are handed; holds conversation and principal.
        turn: The turn that asks.
        direct: Exactly one person reads the chat.
        grants: All of the conversation; ended ones are passed over.
        known: Who the principal is by now; roles come and go. None for as the turn began.
        out: Who put the principal out since, empty for nobody.
        taint: Where the text of the turn came from, by now.
    """

    context: ToolContext
    turn: TurnId
    direct: bool
    grants: tuple[Grant, ...] = ()
    known: Principal | None = None
    out: str = ""
    taint: Taint = Taint()


class Refusal(Value):
    """What stands in the place of a result when a call does not run.

    Attributes:
        message: For the model; its last line is the receipt.
        receipt: The token.
    """

    message: ToolMessage
    receipt: str


class Allowed(Value):
    """The call may run."""

    frozen: Frozen
    spec: ToolSpec


class Asked(Value):
    """A person decides.

    Attributes:
        approval: The question; not yet numbered, and stored by the caller.
    """

    frozen: Frozen
    spec: ToolSpec
    approval: Approval


class Denied(Value):
    """The call does not run; malformed calls too.

    Attributes:
        id: The id that audit and receipt carry; a malformed call has one but was never frozen.
        outcome: `failed` for malformed calls.
        frozen: The call, None for a malformed one.
    """

    id: ActionId
    refusal: Refusal
    outcome: Literal["denied", "failed"]
    frozen: Frozen | None = None


Verdict = Allowed | Asked | Denied


class GatedBatch(Value):
    """One verdict for each call in request order, and what has to be durable with them.

    Attributes:
        verdicts: In request order.
        audited: To be chained in this order.
        writes: One row for each call that was frozen; approvals are the caller's to number and put.
    """

    verdicts: tuple[Verdict, ...]
    audited: tuple[Entry, ...]
    writes: tuple[Write, ...]


class Cleared(Value):
    """The last check has nothing against the run.

    Attributes:
        permits: What of a directory that it walks the run may touch, see `ToolContext.permits`.
        in_message: As in `Query`.
    """

    tool: Tool
    permits: Callable[[str], bool]
    in_message: bool


class Stopped(Value):
    """The call does not run after all.

    Attributes:
        reason: One line, for `refuse` with outcome `denied`.
        by: For the audit: `policy`, `protection`, `integrity` or `resources`.
    """

    reason: str
    by: str
