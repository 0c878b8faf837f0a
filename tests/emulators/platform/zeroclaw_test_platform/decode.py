"""Turns the platform's events into envelopes."""

from zeroclaw import (
    Address,
    ApprovalId,
    Attachment,
    Body,
    Command,
    Deleted,
    Edited,
    Envelope,
    Membership,
    MessageRef,
    Moved,
    Pressed,
    Said,
    Sender,
    command_of,
)
from zeroclaw_test_platform.wire import Json, choice_of, is_array, is_object, text_of


def envelope(channel: str, account: str, event: Json) -> Envelope | None:
    """Return the envelope of an event, None for one that bots ignore."""
    message = text_of(event, "message")
    address = address_of(channel, account, event)
    body = _body(channel, account, address, event)
    if body is None:
        return None
    files = event.get("files")
    return Envelope(
        address=address,
        sender=Sender(
            id=text_of(event, "who"),
            verified=event.get("verified") is True,
            display=text_of(event, "display"),
        ),
        dedup=_keys(event, message),
        body=body,
        message=message if isinstance(body, Said | Command) else "",
        attachments=tuple(
            _attachment(file) for file in (files if is_array(files) else []) if is_object(file)
        ),
    )


def address_of(channel: str, account: str, event: Json) -> Address:
    """Return the address of an event."""
    return Address(
        channel=channel,
        account=account,
        chat=text_of(event, "chat"),
        thread=text_of(event, "thread") or None,
        direct=event.get("direct") is True,
    )


def _keys(event: Json, message: str) -> tuple[str, ...]:
    """Return the event's own key and the key of its message.

    A platform may deliver one message as two events; a press has only its own key.
    """
    keys = [f"event/{text_of(event, 'id')}"]
    match event.get("kind"):
        case "said":
            keys.append(f"message/{message}")
        case "edited":
            keys.append(f"message/{message}/{event.get('version')}")
        case "deleted":
            keys.append(f"message/{message}/deleted")
        case _:
            pass
    return tuple(keys)


def _body(channel: str, account: str, address: Address, event: Json) -> Body | None:
    text, message = text_of(event, "text"), text_of(event, "message")
    match event.get("kind"):
        case "said":
            return command_of(text) or Said(text=text)
        case "edited":
            return Edited(message=message, said=Said(text=text))
        case "deleted":
            return Deleted(message=message)
        case "pressed":
            choice = choice_of(event.get("choice"))
            if choice is None:
                return None
            return Pressed(
                approval=ApprovalId(text_of(event, "approval")),
                choice=choice,
                reason=text_of(event, "reason"),
                card=MessageRef(address=address, message=message) if message else None,
            )
        case "moved":
            to = event.get("to")
            return Moved(to=address_of(channel, account, to)) if is_object(to) else None
        case "membership":
            return Membership(present=event.get("present") is True)
        case _:
            return None


def _attachment(file: Json) -> Attachment:
    size = file.get("size")
    return Attachment(
        reference=text_of(file, "reference"),
        name=text_of(file, "name"),
        media_type=text_of(file, "media_type"),
        size_bytes=size if isinstance(size, int) else None,
    )
