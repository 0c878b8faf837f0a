"""Turn what a person does at a local chat into envelopes."""

import re
from collections.abc import Mapping
from typing import Annotated, TypeVar, assert_never

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from zeroclaw import (
    Address,
    ApprovalId,
    Attachment,
    Choice,
    Command,
    Envelope,
    MessageRef,
    Pressed,
    Said,
    Sender,
    Value,
)

ACCOUNT = "local"
CHAT = "operator"
"""The one chat and the one person of such a channel."""

MOST_ID_CHARS = 64
Key = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{8,64}$")]
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*)(?:\s+(.*))?", re.DOTALL)
P = TypeVar("P", bound=BaseModel)


class Unreadable(Value):
    """What is no event; `why` is one line for whoever sent it, `id` is empty where there is none."""

    why: str
    id: str = ""


class Posted(BaseModel):
    """An event; `id` is made where it happens, and stays the same when it is sent again."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Key


class Press(Posted):
    """An answer to an approval."""

    approval: Annotated[str, Field(min_length=1, max_length=200)]
    choice: Choice
    reason: Annotated[str, Field(max_length=2_000)] = ""
    card: Annotated[str, Field(max_length=200)] = ""


def address(channel: str) -> Address:
    """Return the one chat of a channel."""
    return Address(channel=channel, account=ACCOUNT, chat=CHAT, direct=True)


def read(model: type[P], sent: bytes | Mapping[str, object]) -> P | Unreadable:
    """Return what was sent, as JSON or parsed already, checked against its model."""
    try:
        if isinstance(sent, bytes):
            return model.model_validate_json(sent)
        return model.model_validate(sent)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        why = f"{where or 'body'}: {first['msg'].lower()}"
        return Unreadable(why=why, id="" if isinstance(sent, bytes) else id_of(sent))


def id_of(sent: Mapping[str, object]) -> str:
    """Return the id that something carries, whatever else it is; empty for none."""
    found = sent.get("id")
    return found[:MOST_ID_CHARS] if isinstance(found, str) else ""


def said(
    channel: str, kind: str, key: str, text: str, files: tuple[Attachment, ...] = ()
) -> Envelope | Unreadable:
    """Return the envelope of a message; a text that begins with `/word` is a command.

    Args:
        channel: The channel's name.
        kind: Under which keys of this kind are remembered; stored, so it stays what it is.
        key: The event's own id.
        text: As it was typed.
        files: That came with it.
    """
    if not text.strip() and not files:
        return Unreadable(why="the message is empty", id=key)
    return Envelope(
        address=address(channel),
        sender=_operator(),
        dedup=(f"{kind}/{key}",),
        body=said_or_command(text),
        message=key,
        attachments=files,
    )


def pressed(channel: str, kind: str, press: Press) -> Envelope:
    """Return the envelope of an answer; `kind` as in `said`."""
    here = address(channel)
    return Envelope(
        address=here,
        sender=_operator(),
        dedup=(f"{kind}/{press.id}",),
        body=Pressed(
            approval=ApprovalId(press.approval),
            choice=press.choice,
            reason=press.reason.strip(),
            card=MessageRef(address=here, message=press.card) if press.card else None,
        ),
    )


def said_or_command(text: str) -> Said | Command:
    """Tell a command from a message; what follows its name is kept as typed, ends stripped."""
    found = _COMMAND.fullmatch(text.strip())
    if found is None:
        return Said(text=text)
    return Command(name=found[1].lower(), rest=found[2] or "")


def typed(body: Said | Command) -> str:
    """Return what a person wrote."""
    match body:
        case Said(text=text):
            return text
        case Command(name=name, rest=rest):
            return f"/{name} {rest}".rstrip()
        case _:
            assert_never(body)


def _operator() -> Sender:
    return Sender(id=CHAT, verified=True, display=CHAT)
