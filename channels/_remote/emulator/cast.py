"""The people on an emulator's page: Ann, who talks with the bot, and Olga, an operator."""

from collections.abc import Mapping

from msgspec import ValidationError, convert

from channels._remote.emulator.site import Unusable
from zeroclaw import Value

Json = Mapping[str, object]

# A small model calls no tools, so Ann gets `/tool` to show how an approval request looks.
_TOOLS_FOR_ANN = {
    "id": "ann-tries-tools",
    "effect": "allow",
    "principals": ["person:ann"],
    "actions": ["command:tool"],
}


class Attached(Value):
    """A file sent by the page."""

    name: str
    base64: bytes  # decoded by msgspec


class ActionRequest(Value):
    """A request of the page to act; each kind uses some of the fields."""

    do: str
    person: str = ""
    chat: str = ""
    message: str = ""
    reply_to: str = ""
    text: str = ""
    caption: str = ""
    data: str = ""
    name: str = "file.bin"
    base64: bytes = b""
    photos: tuple[Attached, ...] = ()
    how: str = ""


def parse_action_request(body: Json) -> ActionRequest:
    """Parse a request of the page to act.

    Raises:
        Unusable: A field has the wrong type.
    """
    try:
        return convert(body, ActionRequest)
    except ValidationError as error:
        raise Unusable(str(error)) from error


class Cast(Value):
    """The two people, by their ids on a platform.

    Attributes:
        ann: Ann's id.
        olga: Olga's id.
        chats: The private chats with the bot, first Ann's, then Olga's.
        room: A chat with both.
    """

    ann: int | str
    olga: int | str
    chats: tuple[int | str, int | str]
    room: int | str

    def shown(self) -> Json:
        """Return the people and chats in the page's form."""
        roles = (
            (self.ann, "Ann", "somebody who talks with the bot"),
            (self.olga, "Olga", "an operator, who is asked"),
        )
        people = [
            {"id": id_, "chat": chat, "name": name, "role": role}
            for (id_, name, role), chat in zip(roles, self.chats, strict=True)
        ]
        return {"people": people, "room": self.room}

    def tables(self, channel: str, keys: Json) -> Json:
        """Return the configuration that lets them use the bot.

        Args:
            channel: The name of the platform's channel.
            keys: The channel's other keys, besides `allowed_users`.
        """
        allowed = [str(self.ann), str(self.olga)]
        return {
            "channels": {channel: {**keys, "allowed_users": allowed}},
            "policy": {"statement": [_TOOLS_FOR_ANN]},
            "people": [
                {"name": "ann", "ids": [f"{channel}:{self.ann}"]},
                {"name": "olga", "ids": [f"{channel}:{self.olga}"], "roles": ["operator"]},
            ],
        }
