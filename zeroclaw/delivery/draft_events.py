"""What happens to a draft, and what it asks for: its calls, their outcomes, its effects."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Post a message. `call` names the call in its outcome."""

    call: int
    key: str
    text: str
    plain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace the text of a message, the draft's `part`th."""

    call: int
    part: int
    message: str
    key: str
    text: str
    plain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Remove a message that the text no longer needs."""

    call: int
    part: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Show the text of what is not sent yet.

    Attributes:
        key: Of the message that it would become.
    """

    call: int
    key: str
    text: str
    plain: bool


Call = Send | Edit | Delete | Preview


@dataclass(frozen=True, slots=True, kw_only=True)
class Showed:
    """The runtime has a newer text, whole, cut into parts; a blank one changes nothing."""

    turn: str
    fence: int
    number: int
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The call that was asked for may be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A send has arrived as this message."""

    call: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An edit, a deletion or a preview was carried out."""

    call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Nothing arrived: the platform asked to wait, or could not be reached."""

    call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The platform refused the call for good; see `ChannelRejected`."""

    call: int
    gone: bool = False
    markup: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """It may have arrived; a time-out counts as this."""

    call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The turn is over; the final takes the messages from here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demanded:
    """What is shown must stand as messages: somebody is waited for, and a preview would vanish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faded:
    """The preview may no longer be seen, though nobody asked for that."""


Outcome = Sent | Done | Failed | Rejected | Unknown
Event = Showed | Granted | Outcome | Demanded | Faded | Closed


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Ask for a call; replaces what was asked before.

    Attributes:
        message: The message that it is about, empty for a new one; of a preview its key.
        soon: Somebody waits for it.
    """

    message: str
    soon: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """Take back what was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The last effect: the messages that stand, in order."""

    messages: tuple[str, ...]


Effect = Ask | Withdraw | Call | Ended
