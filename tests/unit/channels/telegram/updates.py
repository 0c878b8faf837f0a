"""Updates as the Bot API sends them."""

from channels._remote.limits import units
from channels.telegram.decode import Bot, Decoded, Skipped, decode
from zeroclaw import Address, Envelope

ME = Bot(channel="telegram", id=42, username="zero_bot")
ANN = {"id": 7, "is_bot": False, "first_name": "Ann", "last_name": "Lee"}
BOB = {"id": 8, "is_bot": False, "first_name": "Bob"}
BOT = {"id": 42, "is_bot": True, "first_name": "Zero", "username": "zero_bot"}
PRIVATE = {"id": 7, "type": "private", "first_name": "Ann"}
GROUP = {"id": -1000000000100, "type": "supergroup", "title": "Team"}
ANNS_CHAT = Address(channel="telegram", account="42", chat="7", direct=True)
TEAM = Address(channel="telegram", account="42", chat="-1000000000100")


def message(**fields: object) -> dict[str, object]:
    """A private message from Ann."""
    plain = {"message_id": 3, "date": 1_790_000_000, "chat": PRIVATE, "from": ANN}
    return {**plain, **fields}


def new(**fields: object) -> dict[str, object]:
    """An update with a new message."""
    return {"update_id": 1, "message": message(**fields)}


def group_message(text: str, /, **fields: object) -> dict[str, object]:
    """An update with a new message in a group; each @name in it is an entity."""
    mentions = [word for word in text.split() if word.startswith("@")]
    entities = [
        {"type": "mention", "offset": units(text[: text.index(mention)]), "length": len(mention)}
        for mention in mentions
    ]
    return new(**{"chat": GROUP, "text": text, "entities": entities, **fields})


def decoded(update: object, bot: Bot = ME) -> Envelope:
    event = decode(update, bot)
    assert isinstance(event, Decoded)
    return event.envelope


def skip_reason(update: object, bot: Bot = ME) -> str:
    event = decode(update, bot)
    assert isinstance(event, Skipped)
    return event.reason
