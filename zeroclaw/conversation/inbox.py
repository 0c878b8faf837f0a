"""The items of a conversation's inbox, and their states.

There are two lanes. Items that start turns wait in order (`queued`); items that steer a running
turn are handled at once (`control`). Every item ends in exactly one of the final states (P1).
"""

from datetime import datetime, timedelta
from typing import Literal

from zeroclaw.clock import made_at
from zeroclaw.config.model import WhileBusy
from zeroclaw.envelope import (
    Address,
    ApprovalId,
    Attachment,
    ConversationId,
    ItemId,
    Principal,
    TurnId,
)
from zeroclaw.store import Put, RowKind
from zeroclaw.table import Age, Ages, Column, Owner, Table, json_codec
from zeroclaw.value import Value

LONGEST_STOP = timedelta(hours=1)
"""Longest time for which a stop waits in the control lane, by far."""


class Fragment(Value, stored_as="Piece"):
    """The place of one part in a message that its client split.

    Attributes:
        run: The item of the first part.
        group: As in `Continues`.
        more_s: How many seconds the next part may take to arrive; 0 for the last part.
        room: As in `Continues`.
        lead: As in `Continues`.
    """

    run: ItemId
    group: str = ""
    more_s: float = 0.0
    room: int = 0
    lead: str = ""


class PersonMessage(Value, stored_as="Ask"):
    """A person's message, for the model.

    Attributes:
        while_busy: What happens if a turn of the same person is running: the message waits; it
            waits to be answered together with others; it joins the turn after its next batch of
            calls; or it ends the turn.
        attachments: The attached files; fetched before the turn starts.
        not_taken: How many more files were dropped because there were too many.
        piece: None for a message that was not split.
        own: The part that the person wrote themselves; None if an older release did not store it.
    """

    text: str
    while_busy: WhileBusy = "queue"
    attachments: tuple[Attachment, ...] = ()
    not_taken: int = 0
    piece: Fragment | None = None
    own: str | None = None


class UseTool(Value):
    """A tool call that a person typed; `arguments` is raw JSON text."""

    tool: str
    arguments: str


class Again(Value):
    """Retry the message of the newest failed or stopped turn."""


class Summarise(Value):
    """Replace the older part of the conversation by a summary."""


class Obeyed(Value):
    """A command that took effect when it was admitted; stored as part of the transcript."""

    text: str


class TooOld(Value):
    """One person's consecutive messages that arrived too late to be answered, in one row.

    Attributes:
        text: Their messages and calls, as many as fit; stored as part of the transcript.
        count: How many there were.
    """

    text: str
    count: int = 1


class Unread(Value):
    """One person's consecutive messages refused by a limit, in one row and without their text.

    So a flood can't fill the disk.

    Attributes:
        over: The limit; `queue` for the limit on waiting messages in one conversation.
        count: How many messages and commands were refused.
    """

    over: Literal["person", "conversation", "day", "queue"]
    count: int = 1


Cause = Literal["stop", "new", "forget", "halt", "interrupt", "revoked"]
"""Why a turn is ended from outside. A shutdown is not a cause: it takes no step, and the turn is
resumed from its journal."""


class Stop(Value):
    """End the running turn.

    Attributes:
        before: End only a turn that began with an item older than this one; None for any.
    """

    cause: Cause
    before: ItemId | None = None


class ApprovalAnswered(Value, stored_as="Answer"):
    """An approval of this conversation was answered; its row has the answer."""

    approval: ApprovalId


class Amend(Value):
    """A message was edited after its turn began.

    Attributes:
        own: As in `PersonMessage`.
    """

    message: str
    text: str
    own: str | None = None


class Withdraw(Value):
    """A message was deleted after its turn began."""

    message: str


class Revoked(Value):
    """A grant of this conversation was revoked; its holder still has to write the audit entry.

    Attributes:
        grant: Its id; its row is already deleted.
        tool: Its tool.
    """

    grant: str
    tool: str


Opening = PersonMessage | UseTool | Again | Summarise
Control = Stop | ApprovalAnswered | Amend | Withdraw | Revoked
Content = Opening | Obeyed | TooOld | Unread | Control
State = Literal[
    "queued", "control", "taken", "answered", "joined", "superseded", "stopped", "failed"
]


class Item(Value):
    """One admitted event.

    Attributes:
        id: A ULID; gives the order within the lane.
        message: The platform's id of the message, empty for none.
        turn: The turn that took it, None before.
        sent_at: When it was written according to the platform; None if it does not say.
        refused: Keys of the newest refused messages that this item counts, to recognise them when
            they are delivered again.
    """

    id: ItemId
    conversation: ConversationId
    address: Address
    principal: Principal
    content: Content
    admitted_at: datetime
    message: str = ""
    turn: TurnId | None = None
    sent_at: datetime | None = None
    refused: tuple[str, ...] = ()


def words_of(content: Content) -> str:
    """Return the text or the command of a person; empty for items that no person typed."""
    match content:
        case PersonMessage(text=text) | Obeyed(text=text) | TooOld(text=text) | Amend(text=text):
            return text
        case UseTool(tool=tool, arguments=arguments):
            return f"/tool {tool} {arguments}"
        case Again():
            return "/retry"
        case Summarise():
            return "/compact"
        case _:
            return ""


INBOX = Table(
    kind=RowKind.INBOX,
    codec=json_codec(Item),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.PLACE}),
    keeps=Ages(
        age=Age.MESSAGES, ended=frozenset({"answered", "joined", "superseded", "stopped", "failed"})
    ),
    owner=lambda row: Owner(person=INBOX.of(row).principal.id),
    busy=frozenset({"queued", "control", "taken"}),
)


def item_put(item: Item, state: State) -> Put:
    """Return the write that records an item in a state."""
    return INBOX.put(
        item.id, item, conversation=item.conversation, state=state, place=item.address.key()
    )


def said_by(item: Item, *texts: str) -> str:
    """Return one person's messages as the model reads them, with the speaker's name in groups.

    A self-chosen name may be another person's, so it follows in quotes after the operator's name
    for them, or their id.
    """
    speaker = "" if item.address.direct else f"{item.principal.label}: "
    return speaker + "\n\n".join(texts)


def came_after(stop: str, item: str) -> bool:
    """Whether a stop, by its id, came after an item.

    A stop is taken within seconds. If it seems to be older by hours, the clock was set back between.
    """
    return item < stop or made_at(item) - made_at(stop) > LONGEST_STOP
