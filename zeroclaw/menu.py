"""The commands that a platform may list: for everyone, and for operators in their own chats."""

from collections.abc import Mapping

from zeroclaw.text.language import Language
from zeroclaw.value import Value, field


class MenuEntry(Value):
    """One command.

    Attributes:
        name: Without the slash: lower-case letters, digits and underscores.
        does: What it does, by language; one short line without markup.
    """

    name: str
    does: Mapping[Language, str]


class Menu(Value):
    """The commands that work in private chats.

    Attributes:
        everyone: The commands for everyone, in order; empty to list none.
        operators: The commands for operators, in order.
        operator_senders: The platform's ids of this channel's operators.
        ask: Describes a command that asks the bot a question, for platforms whose commands are not
            messages; empty to list none.
        typed: Describes the text that is typed after a command.
    """

    everyone: tuple[MenuEntry, ...] = ()
    operators: tuple[MenuEntry, ...] = ()
    operator_senders: tuple[str, ...] = ()
    ask: Mapping[Language, str] = field(default_factory=dict[Language, str])
    typed: Mapping[Language, str] = field(default_factory=dict[Language, str])


NO_MENU = Menu()
