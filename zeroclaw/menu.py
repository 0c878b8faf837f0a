"""What a platform may list of the commands: for everybody, and for operators in their own chats."""

from collections.abc import Mapping

from zeroclaw.text.language import Language
from zeroclaw.value import Value


class MenuEntry(Value):
    """One command.

    Attributes:
        name: Without the slash: lower-case letters, digits and underscores.
        does: What it does, in each language; one short line without markup.
    """

    name: str
    does: Mapping[Language, str]


class Menu(Value):
    """The commands as they can be used in private chats.

    Attributes:
        everyone: What everybody may use, in order; empty where nothing is to be listed.
        operators: What operators may use, in order.
        operator_senders: The platform's ids of the operators of this channel.
    """

    everyone: tuple[MenuEntry, ...] = ()
    operators: tuple[MenuEntry, ...] = ()
    operator_senders: tuple[str, ...] = ()


NO_MENU = Menu()
