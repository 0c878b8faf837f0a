"""What a platform may list of the commands: for all people, and for operators in their own chats."""

from collections.abc import Mapping

from zeroclaw.text.language import Language
from zeroclaw.value import Value, field


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
        everyone: What all people may use, in order; empty where nothing is to be listed.
        operators: What operators may use, in order.
        operator_senders: The platform's ids of the operators of this channel.
        ask: What a command does that asks the bot something, for platforms whose commands are no
            messages; empty where none is to be listed.
        typed: What is typed behind a command.
    """

    everyone: tuple[MenuEntry, ...] = ()
    operators: tuple[MenuEntry, ...] = ()
    operator_senders: tuple[str, ...] = ()
    ask: Mapping[Language, str] = field(default_factory=dict[Language, str])
    typed: Mapping[Language, str] = field(default_factory=dict[Language, str])


NO_MENU = Menu()
