"""What happens to a draft, and what it asks for: its calls, their outcomes, its effects."""

from zeroclaw.value import Value


class Send(Value):
    """Post a message. `call` names the call in its outcome."""

    call: int
    key: str
    text: str
    plain: bool


class Edit(Value):
    """Replace the text of a message, the draft's `part`th."""

    call: int
    part: int
    message: str
    key: str
    text: str
    plain: bool


class Delete(Value):
    """Remove a message that the text no longer needs."""

    call: int
    part: int
    message: str


class Preview(Value):
    """Show the text of what is not sent yet.

    Attributes:
        key: Of the message that it would become.
    """

    call: int
    key: str
    text: str
    plain: bool


Call = Send | Edit | Delete | Preview


class Showed(Value):
    """The runtime has a newer text, whole, cut into parts; a blank one changes nothing.

    Attributes:
        is_last: The final, or a tool, follows at once.
    """

    turn: str
    fence: int
    number: int
    parts: tuple[str, ...]
    is_last: bool = False


class Granted(Value):
    """The call that was asked for may be made."""


class Sent(Value):
    """A send has arrived as this message."""

    call: int
    message: str


class Done(Value):
    """An edit, a deletion or a preview was carried out."""

    call: int


class Failed(Value):
    """Nothing arrived: the platform asked to wait, or could not be reached."""

    call: int


class Rejected(Value):
    """The platform refused the call for good; see `ChannelRejected`."""

    call: int
    gone: bool = False
    markup: bool = False


class Unknown(Value):
    """It may have arrived; a time-out counts as this."""

    call: int


class Closed(Value):
    """The turn is over; the final takes the messages from here."""


class Demanded(Value):
    """What is shown must stand as messages: somebody is waited for, and a preview would vanish."""


class Faded(Value):
    """The preview may no longer be seen, though nobody asked for that."""


Outcome = Sent | Done | Failed | Rejected | Unknown
Event = Showed | Granted | Outcome | Demanded | Faded | Closed


class Ask(Value):
    """Ask for a call; replaces what was asked before.

    Attributes:
        message: The message that it is about, empty for a new one; of a preview its key.
        soon: Somebody waits for it.
    """

    message: str
    soon: bool = False


class Withdraw(Value):
    """Take back what was asked."""


class Ended(Value):
    """The last effect: the messages that stand, in order."""

    messages: tuple[str, ...]


Effect = Ask | Withdraw | Call | Ended
