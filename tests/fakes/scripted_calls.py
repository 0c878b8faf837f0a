"""What the scripted channel was asked, what it shows, and what it runs into."""

from dataclasses import dataclass, field
from typing import Literal

from zeroclaw.channel import Card, Outcome
from zeroclaw.envelope import Address, MessageRef, OutgoingFile

CallName = Literal[
    "look", "send", "send_file", "edit", "delete", "ask", "settle", "typing", "preview", "fetch"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A scripted fault: the call is carried out, but its answer never comes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """A scripted fault: the call never returns; nothing is carried out."""


Fault = Exception | Lost | Hang


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that reached the platform; `text` is empty where there is none.

    Attributes:
        at: Monotonic seconds when it began.
        message: The platform's id that it was about, empty for a new one.
    """

    name: CallName
    at: float
    address: Address
    message: str = ""
    text: str = ""
    key: str = ""
    draft: bool = False
    plain: bool = False
    reply_to: str = ""


@dataclass(kw_only=True)
class Shown:
    """A message as it stands in the chat."""

    ref: MessageRef
    text: str
    key: str
    draft: bool = False
    card: Card | None = None
    outcome: Outcome | None = None
    file: OutgoingFile | None = None
    history: list[str] = field(default_factory=list[str])
