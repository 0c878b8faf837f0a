"""The platform's protocol: JSON objects, one a line, over TCP.

A call has a connection of its own: one request line, one answer line. Events have a lasting one:
`{"open": "events"}`, then the platform's events, each answered by a confirmation.
"""

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeGuard

from zeroclaw import ApprovalId, Card, CardCall, Choice, Ending

LONGEST_LINE = 64 * 1024 * 1024
_CHOICES: Mapping[str, Choice] = {
    "once": "once",
    "for_a_time": "for_a_time",
    "deny": "deny",
    "deny_with_reason": "deny_with_reason",
}
Json = Mapping[str, object]
Op = Literal["send", "send_file", "edit", "delete", "ask", "settle", "typing", "fetch"]


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Whether parsed JSON is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[object]]:
    """Whether parsed JSON is an array."""
    return isinstance(value, list)


def line(value: Json) -> bytes:
    """Encode one object; ASCII only, so that half a character can be sent."""
    return json.dumps(value).encode() + b"\n"


async def read(reader: asyncio.StreamReader) -> dict[str, object] | None:
    """Read one object, None at the end of the connection or of half a line."""
    raw = await reader.readline()
    if not raw.endswith(b"\n"):
        return None
    value: object = json.loads(raw)
    if not is_object(value):
        raise TypeError("a line of the platform's protocol is one object")
    return value


def text_of(body: Json, key: str) -> str:
    """Return a string, empty for anything else."""
    value = body.get(key)
    return value if isinstance(value, str) else ""


def choice_of(value: object) -> Choice | None:
    """Return a choice, None for anything else."""
    return _CHOICES.get(value) if isinstance(value, str) else None


def card_to_json(card: Card) -> Json:
    """Encode a card."""
    return {
        "key": card.key,
        "asked_by": card.asked_by,
        "deadline_at": card.deadline_at.isoformat(),
        "choices": list(card.choices),
        "calls": [
            {
                "approval": call.approval,
                "number": call.number,
                "tool": call.tool,
                "summary": call.summary,
                "arguments": call.arguments,
                "why": call.why,
                "hash8": call.hash8,
            }
            for call in card.calls
        ],
    }


def card_from_json(body: Json) -> Card:
    """Decode a card."""
    calls, choices = body.get("calls"), body.get("choices")
    if not is_array(calls) or not is_array(choices):
        raise TypeError("a card has calls and choices")
    return Card(
        key=text_of(body, "key"),
        asked_by=text_of(body, "asked_by"),
        deadline_at=datetime.fromisoformat(text_of(body, "deadline_at")),
        choices=tuple(choice for choice in map(choice_of, choices) if choice),
        calls=tuple(_call_from_json(call) for call in calls if is_object(call)),
    )


def _call_from_json(body: Json) -> CardCall:
    number = body.get("number")
    return CardCall(
        approval=ApprovalId(text_of(body, "approval")),
        number=number if isinstance(number, int) else 0,
        tool=text_of(body, "tool"),
        summary=text_of(body, "summary"),
        arguments=text_of(body, "arguments"),
        why=text_of(body, "why"),
        hash8=text_of(body, "hash8"),
    )


def ending_to_json(ending: Ending) -> Json:
    """Encode the ending of a call."""
    return {
        "approval": ending.approval,
        "how": ending.how,
        "by": ending.by,
        "at": ending.at.isoformat(),
        "reason": ending.reason,
    }


def ending_from_json(body: Json) -> Ending:
    """Decode the ending of a call."""
    hows: tuple[Literal["approved", "denied", "expired", "stopped"], ...] = (
        "approved",
        "denied",
        "expired",
        "stopped",
    )
    return Ending(
        approval=ApprovalId(text_of(body, "approval")),
        how=next(how for how in hows if how == body.get("how")),
        by=text_of(body, "by"),
        at=datetime.fromisoformat(text_of(body, "at")),
        reason=text_of(body, "reason"),
    )
