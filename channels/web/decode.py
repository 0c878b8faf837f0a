"""Turn what the page posts into envelopes."""

import re
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
"""The one chat and the one person of this channel: whoever holds the login."""

Key = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{8,64}$")]
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*)(?:\s+(.*))?", re.DOTALL)
P = TypeVar("P", bound=BaseModel)


class Unreadable(Value):
    """A body that is no event; `why` is one line for whoever posted it."""

    why: str


class _Posted(BaseModel):
    """`id` is made by the page and stays the same when it posts again."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Key


class _File(BaseModel):
    """A file that was uploaded under this id before the message."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Key
    name: Annotated[str, Field(max_length=1_000)]
    type: Annotated[str, Field(max_length=1_000)] = ""
    size: Annotated[int, Field(ge=0)]


class _Message(_Posted):
    text: str
    files: Annotated[tuple[_File, ...], Field(max_length=100)] = ()


class _Answer(_Posted):
    approval: Annotated[str, Field(min_length=1, max_length=200)]
    choice: Choice
    reason: Annotated[str, Field(max_length=2_000)] = ""
    card: Annotated[str, Field(max_length=200)] = ""


def address(channel: str) -> Address:
    """Return the one chat of this channel."""
    return Address(channel=channel, account=ACCOUNT, chat=CHAT, direct=True)


def message(channel: str, body: bytes) -> Envelope | Unreadable:
    """Read `{id, text, files}`; a text that begins with `/word` is a command."""
    posted = _read(_Message, body)
    if isinstance(posted, Unreadable):
        return posted
    if not posted.text.strip() and not posted.files:
        return Unreadable(why="the message is empty")
    return Envelope(
        address=address(channel),
        sender=_operator(),
        dedup=(f"message/{posted.id}",),
        body=said_or_command(posted.text),
        message=posted.id,
        attachments=tuple(
            Attachment(reference=one.id, name=one.name, media_type=one.type, size_bytes=one.size)
            for one in posted.files
        ),
    )


def answer(channel: str, body: bytes) -> Envelope | Unreadable:
    """Read `{id, approval, choice, reason, card}`."""
    posted = _read(_Answer, body)
    if isinstance(posted, Unreadable):
        return posted
    here = address(channel)
    return Envelope(
        address=here,
        sender=_operator(),
        dedup=(f"answer/{posted.id}",),
        body=Pressed(
            approval=ApprovalId(posted.approval),
            choice=posted.choice,
            reason=posted.reason.strip(),
            card=MessageRef(address=here, message=posted.card) if posted.card else None,
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


def _read(model: type[P], body: bytes) -> P | Unreadable:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return Unreadable(why=f"{where or 'body'}: {first['msg'].lower()}")
