"""Who is on an emulator's page, Ann, who talks with the bot, and Olga, its operator; and what they do."""

from collections.abc import Mapping

from msgspec import ValidationError, convert

from channels._remote.emulator.site import Unusable
from zeroclaw import Value

Json = Mapping[str, object]

# A small model asks for no tools; so somebody who is no operator sees how one is asked for.
_TOOLS_FOR_ANN = {
    "id": "ann-tries-tools",
    "effect": "allow",
    "principals": ["person:ann"],
    "actions": ["command:tool"],
}


class Attached(Value):
    """A file as the page sends it."""

    name: str
    base64: bytes  # which msgspec reads


class Asked(Value):
    """A deed; each takes what it needs of it."""

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


def asked_of(asked: Json) -> Asked:
    """Read a deed.

    Raises:
        Unusable: A value in it has another type.
    """
    try:
        return convert(asked, Asked)
    except ValidationError as error:
        raise Unusable(str(error)) from error


class Cast(Value):
    """The two of them, by their ids on a platform.

    Attributes:
        ann: Her id.
        olga: Hers.
        chats: Their private chats with the bot, hers and hers.
        room: A chat with both.
    """

    ann: int | str
    olga: int | str
    chats: tuple[int | str, int | str]
    room: int | str

    def shown(self) -> Json:
        """Return who is who, as the page takes it."""
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
        """Return what a configuration needs to talk with them.

        Args:
            channel: The name of the platform's channel.
            keys: Of its table, beside who may write to it.
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
