"""The gate's input and output, and the messages that replace a result (pure)."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Literal

from zeroclaw.envelope import ActionId, ApprovalId, Principal, TurnId
from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.foreign import Raised
from zeroclaw.gate import receipt
from zeroclaw.gate.action import Frozen, to_put
from zeroclaw.gate.approval import Approval
from zeroclaw.gate.audit import Entry
from zeroclaw.gate.grant import Grant
from zeroclaw.gate.policy import PolicySet
from zeroclaw.gate.receipt import Fields, Key
from zeroclaw.gate.taint import Taint
from zeroclaw.message import ToolMessage
from zeroclaw.redact import LONGEST_VALUE, LONGEST_WORD, Redaction, Redactor
from zeroclaw.store import Put
from zeroclaw.text.escape import escape_invisible
from zeroclaw.tool import Tool, ToolContext
from zeroclaw.value import Struct, Value, replace


class Setting(Value):
    """Where and for whom a batch is gated.

    Attributes:
        context: The context for the tools; contains conversation and principal.
        turn: The turn of the batch.
        grants: All grants of the conversation; ended ones are ignored.
        current_principal: The principal's current data, because roles change; None if unchanged
            since the turn began.
        revoked_by: The operator who has revoked the principal since, empty for none.
        taint: The current taint of the turn.
        compaction: As in `Query`.
    """

    context: ToolContext
    turn: TurnId
    grants: tuple[Grant, ...] = ()
    current_principal: Principal | None = None
    revoked_by: str = ""
    taint: Taint = Taint()
    compaction: bool = False

    @property
    def principal(self) -> Principal:
        """The principal with their current data."""
        return self.current_principal or self.context.principal


class Allowed(Value):
    """The call may run.

    Attributes:
        sequential: The whole batch runs one call after the other (S1-22).
        delegated: A sub-agent runs it; never yet, but stored with every verdict.
    """

    action: ActionId
    sequential: bool = False
    delegated: bool = False


class Asked(Value):
    """An approver decides.

    Attributes:
        deadline_at: When it is denied for lack of an answer, UTC.
        sequential: As in `Allowed`.
        delegated: As in `Allowed`.
    """

    action: ActionId
    approval: ApprovalId
    deadline_at: datetime
    sequential: bool = False
    delegated: bool = False


class Denied(Value):
    """The call does not run; also used for malformed calls.

    Attributes:
        action: The id in audit and receipt; a malformed call has one but was never frozen, and a
            row of an earlier release has none.
        result: The message for the model.
        receipt: The token at the end of the result, empty for none.
        outcome: `failed` for malformed calls.
    """

    action: ActionId | None
    result: ToolMessage
    receipt: str = ""
    outcome: Literal["denied", "failed"] = "denied"


Verdict = Allowed | Asked | Denied
"""The gate's answer for one call, as the journal stores it; class and field names are on disk."""


class Cleared(Value):
    """The last check lets the call run.

    Attributes:
        tool: The tool.
        permits: Whether the run may touch a file that it walks to, see `ToolContext.permits`.
        in_message: As in `Query`.
        policy: The policy that decided.
    """

    tool: Tool
    permits: Callable[[str], bool]
    in_message: bool
    policy: PolicySet


class GatedBatch(Value):
    """One verdict for each call, and the records that must be durable with them.

    Attributes:
        verdicts: In request order.
        approvals: The approval requests in request order, for the caller to store.
        audited: The audit entries, to be chained in this order.
        frozen: The well-formed calls, in request order.
        cleared: The calls that are allowed without asking.
    """

    verdicts: tuple[Verdict, ...]
    approvals: tuple[Approval, ...]
    audited: tuple[Entry, ...]
    frozen: tuple[Frozen, ...]
    cleared: tuple[Cleared, ...]

    @property
    def writes(self) -> tuple[Put, ...]:
        """One row for each frozen call."""
        return tuple(map(to_put, self.frozen))

    @property
    def starts(self) -> bool:
        """Whether some of its calls run without an approval before them."""
        return not self.approvals and any(isinstance(verdict, Allowed) for verdict in self.verdicts)


class Stopped(Value):
    """The call does not run after all.

    Attributes:
        reason: One line, for `refuse` with the outcome `denied`.
        for_people: The same in the language of a person who called the tool themselves.
        by: For the audit: `people`, `policy`, `protection`, `approvers`, `integrity` or
            `resources`.
    """

    reason: str
    for_people: str
    by: str


# Enough for the first faults; a text with hundreds of schema faults is cut.
REASON_CHARS = 4_000
_SCANNED_CHARS = REASON_CHARS + LONGEST_VALUE + LONGEST_WORD
NAME_CHARS = 64


class Refusals(Struct, eq=False):
    """Makes refusals that contain no secret and end with a true receipt."""

    redactor: Redactor
    key: Key

    def refuse(
        self, fields: Fields, at: datetime, *, for_people: str = ""
    ) -> tuple[ToolMessage, str]:
        """Return the message that replaces a result, and the receipt at its end (S2-09).

        Args:
            fields: The call and its outcome; `result` is the reason, from which this method removes
                secrets and imitations of receipts. A malformed call has an id, too, and its
                arguments are as the model wrote them.
            at: The time of the receipt.
            for_people: The reason in the language of a person who called the tool themselves; made
                safe like `result`. Empty where `result` is for people, too.
        """
        safe = replace(
            fields,
            tool=encodable(fields.tool),
            arguments=encodable(fields.arguments),
            result=self._safe(fields.result),
        )
        return receipt.signed(self.key, safe, at, for_people=self._safe(for_people))

    def _safe(self, text: str) -> str:
        state, safe = self.redactor.feed(Redaction(), text[:_SCANNED_CHARS])
        if len(text) <= _SCANNED_CHARS:
            safe += self.redactor.flush(state)
        # Otherwise the pending rest could be half of a secret.
        if len(safe) > REASON_CHARS or len(text) > _SCANNED_CHARS:
            safe = f"{safe[:REASON_CHARS]} …"
        return receipt.defang(escape_invisible(encodable(safe)))


def unknown_tool(name: str, tools: Iterable[str]) -> str:
    """Return the text for the model about a tool that does not exist."""
    from difflib import get_close_matches

    names = sorted(tools)
    near = get_close_matches(name[:NAME_CHARS], names)
    if near:
        hint = f"did you mean {_listed(near)}"
    else:
        hint = f"the tools are {_listed(names)}" if names else "there are no tools at all"
    return f"there is no tool `{displayed(name)}`, nothing ran; {hint}"


def too_many_calls(name: str, max_calls: int) -> str:
    """Return the text for the model about a call beyond a batch's limit."""
    return (
        f"`{displayed(name)}` did not run: one batch has room for {max_calls} calls, and this one came after"
        " them; ask for it in the next batch"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def invalid_arguments(name: str, raised: Raised) -> str:
    """Return the text for the model about invalid arguments."""
    error = raised.error
    faults = "; ".join(error.faults) if isinstance(error, ToolArgumentsInvalid) else raised.line
    return f"the arguments of `{displayed(name)}` can't be used, nothing ran: {faults}"


def displayed(name: str) -> str:
    """Return a name that a model made up, short and on one line."""
    return encodable(" ".join(name.split()))[:NAME_CHARS]


def encodable(text: str) -> str:
    """Return text that UTF-8 can encode: JSON escapes can make half a surrogate pair."""
    return text.encode(errors="backslashreplace").decode()
