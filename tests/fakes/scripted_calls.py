"""What the scripted channel was asked, what it shows, and what it runs into."""

from dataclasses import dataclass, field
from typing import Literal

from zeroclaw.channel import Card, Outcome
from zeroclaw.envelope import Address, CheckedReceipt, MessageRef, OutgoingFile
from zeroclaw.value import Value

CallName = Literal[
    "lookup", "send", "send_file", "edit", "delete", "ask", "settle", "typing", "preview", "fetch"
]


class Lost(Value):
    """A scripted fault: the call is carried out, but its answer never comes back."""


class Hang(Value):
    """A scripted fault: the call never returns; nothing is carried out."""


Fault = Exception | Lost | Hang


class Call(Value):
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
    receipts: tuple[CheckedReceipt, ...] = ()
