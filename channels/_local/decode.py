"""Turns the events of a local chat into envelopes."""

from collections.abc import Mapping
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from zeroclaw import (
    Address,
    ApprovalId,
    Attachment,
    Choice,
    Envelope,
    MessageRef,
    Pressed,
    Said,
    Sender,
    Value,
    command_of,
    replace,
)

ACCOUNT = "local"
CHAT = "operator"
"""The id of the one chat, and of the one person, of a local channel."""

MAX_ID_CHARS = 64
Key = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{8,64}$")]
P = TypeVar("P", bound=BaseModel)


class Received(Value):
    """The event was stored; `toast` is shown only to its sender."""

    id: str
    toast: str = ""


class RefusedPost(Value):
    """The event was not stored; `id` is empty if unknown, `again` means that a retry may succeed."""

    id: str
    reason: str
    again: bool = False


class Posted(BaseModel):
    """An event; `id` is made by the client, and stays the same when the event is sent again."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Key


class Message(Posted):
    """A message; a text that begins with `/word` is a command."""

    text: str

    def attachments(self) -> tuple[Attachment, ...]:
        """Return the files attached to it."""
        return ()


class Press(Posted):
    """An answer to an approval request."""

    approval: Annotated[str, Field(min_length=1, max_length=200)]
    choice: Choice
    reason: Annotated[str, Field(max_length=2_000)] = ""
    card: Annotated[str, Field(max_length=200)] = ""


def address(channel: str) -> Address:
    """Return the address of a channel's one chat."""
    return Address(channel=channel, account=ACCOUNT, chat=CHAT, direct=True)


def read(model: type[P], body: bytes | Mapping[str, object]) -> P | RefusedPost:
    """Validate an event, given as JSON or already parsed, against its model."""
    try:
        if isinstance(body, bytes):
            return model.model_validate_json(body)
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        reason = f"{path or 'body'}: {first['msg'].lower()}"
        return RefusedPost(id="" if isinstance(body, bytes) else id_of(body), reason=reason)


def id_of(body: Mapping[str, object]) -> str:
    """Return the id of an event that may be invalid otherwise; empty for none."""
    id_ = body.get("id")
    return id_[:MAX_ID_CHARS] if isinstance(id_, str) else ""


def envelope(channel: str, kind: str, posted: Message | Press) -> Envelope | RefusedPost:
    """Return the envelope of an event.

    Args:
        channel: The channel's name.
        kind: Prefix of the dedup key. It is stored, so it must never change.
        posted: The event.
    """
    to = address(channel)
    event = Envelope(
        address=to,
        sender=Sender(id=CHAT, verified=True, display=CHAT),
        dedup=(f"{kind}/{posted.id}",),
        body=Said(text=""),
    )
    if isinstance(posted, Press):
        card = MessageRef(address=to, message=posted.card) if posted.card else None
        approval, reason = ApprovalId(posted.approval), posted.reason.strip()
        pressed = Pressed(approval=approval, choice=posted.choice, reason=reason, card=card)
        return replace(event, body=pressed)
    files = posted.attachments()
    if not posted.text.strip() and not files:
        return RefusedPost(id=posted.id, reason="the message is empty")
    body = command_of(posted.text) or Said(text=posted.text)
    return replace(event, body=body, message=posted.id, attachments=files)
