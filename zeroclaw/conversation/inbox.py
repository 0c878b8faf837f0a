"""What waits in a conversation's inbox, and its one recorded state after another.

Two lanes: what starts turns waits in order (`queued`), what steers a running one is served at
once (`control`). Every item ends in exactly one of the ended states (P1).
"""

from datetime import datetime
from typing import Literal

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
from zeroclaw.table import Age, Ages, Column, Table, Whose, Words, json_codec
from zeroclaw.value import Value


class Piece(Value):
    """What a message is of one that its client sent in several.

    Attributes:
        run: The item of the first of them.
        group: As in `Continues`.
        more_s: For how long the next may come, in seconds; 0 for the last one.
        room: As in `Continues`.
        lead: As in `Continues`.
    """

    run: ItemId
    group: str = ""
    more_s: float = 0.0
    room: int = 0
    lead: str = ""


class Ask(Value):
    """A person's words, for the model.

    Attributes:
        while_busy: What they do when a turn of the same person runs: wait, wait and be taken
            together with others, join it after its next batch of calls, or end it.
        attachments: What came with them, to be fetched before their turn starts.
        not_taken: How many more came that were too many.
        piece: None for a message that is whole.
        own: The words of it that they wrote themselves; None where an older release kept none.
    """

    text: str
    while_busy: WhileBusy = "queue"
    attachments: tuple[Attachment, ...] = ()
    not_taken: int = 0
    piece: Piece | None = None
    own: str | None = None


class UseTool(Value):
    """A tool call that a person wrote themselves; `arguments` is raw JSON text."""

    tool: str
    arguments: str


class Again(Value):
    """Start anew from the newest failed or stopped turn's message."""


class Summarise(Value):
    """Have a summary stand for the older part of the conversation."""


class Obeyed(Value):
    """A command that was carried out as it was admitted; kept because it was said."""

    text: str


class TooOld(Value):
    """What one person wrote that came too late to be answered, in one row until they are answered.

    Attributes:
        text: Their messages and calls, as many as there is room for; kept because they were said.
        count: How many there were.
    """

    text: str
    count: int = 1


class Unread(Value):
    """What came over a limit until it let messages through again, in one row and without its words.

    So a flood fills no disk.

    Attributes:
        over: The limit; `queue` for that on the messages that wait in one conversation.
        count: How many messages and commands were turned away.
    """

    over: Literal["person", "conversation", "day", "queue"]
    count: int = 1


Cause = Literal["stop", "new", "halt", "interrupt", "revoked"]


class Stop(Value):
    """End the running turn.

    Attributes:
        before: Only a turn that began with an item older than this one; None for any.
    """

    cause: Cause
    before: ItemId | None = None


class Answer(Value):
    """An approval of this conversation has been answered; its row says how."""

    approval: ApprovalId


class Amend(Value):
    """A message whose turn had begun was edited.

    Attributes:
        own: As in `Ask`.
    """

    message: str
    text: str
    own: str | None = None


class Withdraw(Value):
    """A message whose turn had begun was deleted."""

    message: str


class Revoked(Value):
    """A grant of this conversation was ended; only the audit has still to hear of it.

    Attributes:
        grant: Its id; its row is gone.
        tool: What it was for.
    """

    grant: str
    tool: str


Opening = Ask | UseTool | Again | Summarise
Control = Stop | Answer | Amend | Withdraw | Revoked
Content = Opening | Obeyed | TooOld | Unread | Control
State = Literal[
    "queued", "control", "taken", "answered", "joined", "superseded", "stopped", "failed"
]


class Item(Value):
    """One admitted event.

    Attributes:
        id: A ULID; the lane's order.
        message: The platform's id of the message, empty for none.
        turn: The turn that took it, None before.
        sent_at: When it was written, as the platform says; None where it does not say.
        refused: Of what was turned away and is only counted here, what the newest are known by when
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


class Waiting(Value):
    """An item that starts a turn, and the version of its row as it was read."""

    item: Item
    version: int


def words_of(content: Content) -> str:
    """Return what somebody said, or the command that they gave; empty for what was not said."""
    match content:
        case Ask(text=text) | Obeyed(text=text) | TooOld(text=text):
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
    owner="conversation",
    codec=json_codec(Item),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.PLACE}),
    keeps=Ages(
        age=Age.MESSAGES, ended=frozenset({"answered", "joined", "superseded", "stopped", "failed"})
    ),
    words=Words.WRITER,
    whose=lambda row: Whose(person=INBOX.of(row).principal.id),
    busy=frozenset({"queued", "control", "taken"}),
)


def item_put(item: Item, state: State, *, expect: int | None = None) -> Put:
    """Return the write that records an item in a state."""
    return INBOX.put(
        item.id,
        item,
        conversation=item.conversation,
        state=state,
        place=item.address.key(),
        expect=expect,
    )


def said_by(item: Item, *texts: str) -> str:
    """Return what the model reads of messages of one person: who speaks where several do.

    A name that a person chose may be another person's, so it follows what the operator calls them,
    or their id, in quotes.
    """
    who = "" if item.address.direct else f"{item.principal.label}: "
    return who + "\n\n".join(texts)
