"""What stands in the place of a result when a call does not run, and its wording for the model."""

import difflib
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from zeroclaw.envelope import ActionId, ConversationId
from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.foreign import Raised
from zeroclaw.gate import receipt
from zeroclaw.gate.receipt import Fields, Key
from zeroclaw.gate.verdict import Refusal
from zeroclaw.message import ToolCall, ToolMessage
from zeroclaw.redact import LONGEST_VALUE, LONGEST_WORD, Redaction, Redactor
from zeroclaw.unseen import spelled_out

# Enough to say what is wrong; a schema with hundreds of faults is cut.
REASON_CHARS = 4_000
_LOOKED_AT_CHARS = REASON_CHARS + LONGEST_VALUE + LONGEST_WORD
NAME_CHARS = 64
_NEAR_NAMES = 3


class Refusals:
    """Makes refusals that carry no secret and end with a true receipt."""

    def __init__(self, redactor: Redactor, key: Key) -> None:
        """Hold what every refusal needs."""
        self._redactor = redactor
        self._key = key

    def refuse(
        self,
        one: ToolCall,
        text: str,
        *,
        conversation: ConversationId,
        action: ActionId,
        arguments: str,
        outcome: Literal["denied", "failed", "cancelled", "unknown"],
        at: datetime,
        for_people: str = "",
    ) -> Refusal:
        """Return what is read in the place of a result, with a receipt (S2-09).

        Args:
            one: As the model wrote it.
            text: Why; secrets and what looks like a receipt are taken out here.
            conversation: Where.
            action: Its id; a malformed call has one, too.
            arguments: Canonical, or as the model wrote them when they never became so.
            outcome: What the receipt proves.
            at: When.
            for_people: Why, in the language of whoever called the tool themselves; as `text` is
                made safe. Empty where `text` is for people, too.
        """
        safe = self._safe(text)
        fields = Fields(
            conversation=conversation,
            action=action,
            tool=encodable(one.name),
            arguments=encodable(arguments),
            outcome=outcome,
            result=safe,
        )
        issued = receipt.issue(self._key, fields, at)
        message = ToolMessage(
            content=receipt.attach(safe, issued),
            tool_call_id=one.id,
            tool_name=one.name,
            is_error=True,
            for_people=self._safe(for_people),
        )
        return Refusal(message=message, receipt=issued.token)

    def _safe(self, text: str) -> str:
        state, safe = self._redactor.feed(Redaction(), text[:_LOOKED_AT_CHARS])
        if len(text) <= _LOOKED_AT_CHARS:
            safe += self._redactor.flush(state)
        # Else what is held back could be half of a secret.
        if len(safe) > REASON_CHARS or len(text) > _LOOKED_AT_CHARS:
            safe = f"{safe[:REASON_CHARS]} …"
        return receipt.defang(spelled_out(encodable(safe)))


def unknown_tool(name: str, tools: Iterable[str]) -> str:
    """Return what the model reads about a tool that does not exist."""
    known = sorted(tools)
    near = difflib.get_close_matches(name[:NAME_CHARS], known, n=_NEAR_NAMES)
    if near:
        hint = f"did you mean {_listed(near)}"
    else:
        hint = f"the tools are {_listed(known)}" if known else "there are no tools at all"
    return f"there is no tool `{shown(name)}`, nothing ran; {hint}"


def too_many_calls(name: str, most: int) -> str:
    """Return what the model reads about a call that one batch has no room for."""
    return (
        f"`{shown(name)}` did not run: one batch has room for {most} calls, and this one came after"
        " them; ask for it in the next batch"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def invalid_arguments(name: str, raised: Raised) -> str:
    """Return what the model reads about arguments that can't be used."""
    error = raised.error
    faults = "; ".join(error.faults) if isinstance(error, ToolArgumentsInvalid) else raised.line
    return f"the arguments of `{shown(name)}` can't be used, nothing ran: {faults}"


def shown(name: str) -> str:
    """Return a name that a model made up, short and on one line."""
    return encodable(" ".join(name.split()))[:NAME_CHARS]


def encodable(text: str) -> str:
    """Return text that has UTF-8: JSON escapes can make half a surrogate pair."""
    return text.encode(errors="backslashreplace").decode()
