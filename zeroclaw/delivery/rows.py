"""What the outbox keeps: one row for each final, note, file, card and settled card.

A room that decides that something must be said puts such a row into the commit of the decision, and
hands its key to the outbox after it. Texts are redacted and screened before they come here. Keys
are ulids, and idempotency keys come from them.
"""

from datetime import timedelta
from typing import Literal, assert_never

from zeroclaw import codec
from zeroclaw.channel import Card, Outcome
from zeroclaw.clock import made_at
from zeroclaw.delivery.draft import message_key
from zeroclaw.envelope import Address, CheckedReceipt, ConversationId, MessageRef, TurnId
from zeroclaw.errors import StoreUnusable
from zeroclaw.store import Put, Row, RowKind
from zeroclaw.table import Age, Ages, Codec, Column, Table, UntilDue, Whose, Words, json_codec
from zeroclaw.text.language import ENGLISH, LANGUAGES, Language, Localized, Translations
from zeroclaw.value import TAG, Value, replace

State = Literal["pending", "sending", "delivered", "refused"]
OPEN_STATES: tuple[State, ...] = ("pending", "sending")
"""`sending`: a send that can't be repeated unseen was begun; found at a start, it may have
arrived."""


class Second(Value):
    """A message that was sent again, since the first was not seen.

    Attributes:
        ref: Where it stands.
        since: From where to look for the first, up to this one.
    """

    ref: MessageRef
    since: str


class Uncertainty(Value):
    """What is not known about the next send of a row; see `reconcile`.

    Attributes:
        may_stand: A message may stand already, of an earlier try or of a draft. Where the platform
            knows our keys the message is found by its key, where it can be looked up it is;
            elsewhere the next one says that it may be a repeat.
        mark: From where to look that message up, empty where that can't be done.
        late: It may come yet: the platform was only slow to answer.
        second: The one that was sent again, until it is certain that it alone stands.
    """

    may_stand: bool = False
    mark: str = ""
    late: bool = False
    second: Second | None = None


CERTAIN = Uncertainty()
"""Of a row of which every message is known."""


def after_loss(known: Uncertainty, *, late: bool) -> Uncertainty:
    """Return what is known after a send whose outcome is not; what was late once may always come."""
    return replace(known, may_stand=True, late=late or known.late)


def looked_up(known: Uncertainty, since: str) -> Uncertainty:
    """Return what is known after a lookup that found nothing: from where to go on."""
    if known.second is None:
        return replace(known, mark=since)
    return replace(known, second=replace(known.second, since=since))


class Text(Value):
    """A final or a note.

    Attributes:
        address: Where it is said.
        text: Markdown, whole.
        turn: Whose final this is, None for a note.
        refs: The messages that carry it, in order; at first those of the draft.
        done: How many parts stand as they should.
        plain: The platform could not read the markup.
        uncertainty: Of the next part, or of a message of the draft.
        posted: How many messages the turn has posted, those that are gone included; None: as many
            as there are refs. It numbers the key of the next one.
        quiet: Operators are not told when this is refused; for what is said to the operator about that.
        reply_to: The message that this answers, empty for none.
        language: What is said in if the delivery itself has something to say.
        receipts: As in `Outgoing`; they stand with the first part.
    """

    address: Address
    text: str
    turn: TurnId | None = None
    refs: tuple[MessageRef, ...] = ()
    done: int = 0
    plain: bool = False
    uncertainty: Uncertainty = CERTAIN
    posted: int | None = None
    quiet: bool = False
    reply_to: str = ""
    language: Language = "en"
    receipts: tuple[CheckedReceipt, ...] = ()


class File(Value):
    """A file of a turn; its bytes are a blob, put in the commit that makes the row.

    Attributes:
        address: Where it goes.
        name: One name, no path.
        digest: Of the blob.
        caption: Plain text, empty for none.
        turn: Whose file this is.
        ref: Where it stands, None until it was sent.
        uncertainty: Of its one message; a repeat's caption says that it may be one.
        reply_to: As in `Text`.
        language: As in `Text`.
    """

    address: Address
    name: str
    media_type: str
    digest: str
    size_bytes: int
    turn: TurnId
    caption: str = ""
    ref: MessageRef | None = None
    uncertainty: Uncertainty = CERTAIN
    reply_to: str = ""
    language: Language = "en"


class Ask(Value):
    """An approval card.

    Attributes:
        address: The approver's chat.
        approvals: The keys of the approval rows that it shows.
        ref: Where it stands, None until it was sent.
        uncertainty: Of its one message.
    """

    address: Address
    card: Card
    approvals: tuple[str, ...]
    ref: MessageRef | None = None
    uncertainty: Uncertainty = CERTAIN


class Settle(Value):
    """How a card ended, shown on one of its messages."""

    ref: MessageRef
    outcome: Outcome


class Left(Value):
    """What a draft left for its final.

    Attributes:
        refs: The messages that stand, in order.
        uncertainty: Of one more, whose send it began.
        posted: How many it posted, those that are gone included; None: as many as stand.
        inherited: A former life of the turn may have posted the next message, with another text.
    """

    refs: tuple[MessageRef, ...] = ()
    uncertainty: Uncertainty = CERTAIN
    posted: int | None = None
    inherited: bool = False

    @property
    def is_begun(self) -> bool:
        """A message of the draft stands, stood or may stand."""
        return bool(self.refs or self.uncertainty.may_stand or self.posted)


Item = Text | File | Ask | Settle


class _Said(Value):
    """The body of a row."""

    item: Item


def outbox_row(
    key: str, item: Item, conversation: ConversationId | None = None, *, state: State = "pending"
) -> Put:
    """Return the write that has something delivered; a file's blob belongs into the same commit.

    Args:
        key: A new ulid.
        item: As it is before anything of it was sent; a text is not blank.
        conversation: The one that says or asks it, None for what belongs to no conversation.
        state: `sending` where it is sent as soon as it is committed, see `Outbox.begins`.
    """
    place = address_of(item).key()
    return OUTBOX.put(key, item, conversation=conversation, state=state, place=place, expect=0)


def lost_from(mark: str) -> Uncertainty:
    """Return what is known when a draft's message may stand below a mark; empty for none."""
    return Uncertainty(may_stand=bool(mark), mark=mark)


def is_final(row: Row) -> bool:
    """Tell whether a row carries the answer of a turn."""
    item = OUTBOX.of(row)
    return isinstance(item, Text) and item.turn is not None


def _sooner(row: Row) -> Age | None:
    """A card without its questions would look as if it were still open."""
    return Age.APPROVALS if isinstance(OUTBOX.of(row), Ask | Settle) else None


def _whose(row: Row) -> Whose:
    item = OUTBOX.of(row)
    return Whose(turn=item.turn or "" if isinstance(item, Text | File) else "")


def _blobs(row: Row) -> tuple[str, ...]:
    item = OUTBOX.of(row)
    return (item.digest,) if isinstance(item, File) else ()


def _decoded(body: bytes) -> Item:
    """Read the body of a row; older ones hold an uncertainty as four fields."""
    try:
        return codec.decode(_Said, body).item
    except StoreUnusable:
        said = codec.decode(dict[str, str | dict[str, object]], body)
        item = said.get("item")
        if not isinstance(item, dict) or "uncertain" not in item:
            raise
        names = {"uncertain": "may_stand", "mark": "mark", "late": "late", "second": "second"}
        kept = {new: item.pop(old) for old, new in names.items() if old in item}
        item["uncertainty"] = {TAG: Uncertainty.__name__, **kept}
        return codec.decode(_Said, codec.encode(said)).item


OUTBOX: Table[Item] = Table(
    kind=RowKind.OUTBOX,
    owner="delivery",
    codec=Codec(encode=lambda item: codec.encode(_Said(item=item)), decode=_decoded),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.PLACE, Column.DUE_AT}),
    keeps=Ages(age=Age.MESSAGES, ended=frozenset({"delivered", "refused"}), sooner=_sooner),
    words=Words.WRITER,
    whose=_whose,
    blobs=_blobs,
    busy=frozenset(OPEN_STATES),
)


class Notice(Value):
    """A sentence to operators about trouble, until it stands in the rows of their chats.

    Attributes:
        text: In English.
        others: In each language.
        but: The key of an address that is left out.
        but_channel: The name of a channel that is left out.
    """

    text: str
    others: Translations = ()
    but: str = ""
    but_channel: str = ""


NOTICES = Table(
    kind=RowKind.NOTICE,
    owner="delivery",
    codec=json_codec(Notice),
    columns=frozenset({Column.CONVERSATION, Column.DUE_AT}),
    keeps=UntilDue(),
    words=Words.CONVERSATION,
)
NOTICE_DAYS = 7
"""For so long a notice waits for an operator; what is older helps nobody."""


def notice_row(key: str, says: Localized, *, but: str = "", but_channel: str = "") -> Put:
    """Return the write that has operators told, as soon as one of them can be reached.

    Args:
        key: A new ulid.
        says: The sentence; each reads it in their own language.
        but: As in `Notice`.
        but_channel: As in `Notice`.
    """
    others: Translations = tuple((one, says.to(one)) for one in LANGUAGES)
    told = Notice(text=says.to(ENGLISH), others=others, but=but, but_channel=but_channel)
    return NOTICES.put(key, told, due_at=made_at(key) + timedelta(days=NOTICE_DAYS), expect=0)


def part_key(key: str, item: Text) -> str:
    """Return the idempotency key of the next message that a text posts.

    A final goes on with its draft's keys, so that a message of which it is not recorded that it
    arrived is found again instead of standing there twice.

    Args:
        key: The row's.
        item: The row's.
    """
    if item.turn is None:
        return f"{key}:{item.done}"
    return message_key(item.turn, posted(item))


def first_key(key: str, item: Text) -> str:
    """Return the idempotency key of a text's first message, where no message was lost."""
    return part_key(key, replace(item, refs=(), done=0, posted=None))


def posted(item: Text) -> int:
    """Return how many messages the turn of a final has posted."""
    return len(item.refs) if item.posted is None else item.posted


def address_of(item: Item) -> Address:
    """Return where it is said."""
    return item.ref.address if isinstance(item, Settle) else item.address


def messages(item: Item) -> tuple[MessageRef, ...]:
    """Return the messages that are known to carry it.

    A card's are told by its `Ask` alone: one that was pressed before its send was recorded is still
    looked for, while how it ends waits to be shown there.
    """
    match item:
        case Text():
            return item.refs
        case Settle():
            return ()
        case File() | Ask():
            return () if item.ref is None else (item.ref,)
        case _:
            assert_never(item)


def changed(row: Row, item: Item, state: State) -> Put:
    """Return the write that moves a row on, unless another writer did meanwhile."""
    return OUTBOX.put(
        row.key,
        item,
        conversation=row.conversation,
        state=state,
        place=row.place,
        due_at=row.due_at,
        expect=row.version,
    )


def stored(put: Put, version: int) -> Row:
    """Return the row that a put makes."""
    return Row(
        kind=put.kind,
        key=put.key,
        version=version,
        body=put.body,
        conversation=put.conversation,
        state=put.state,
        place=put.place,
        due_at=put.due_at,
    )


def with_draft(item: Text, left: Left) -> Text:
    """Return the final with what was learned about its draft after it was committed."""
    refs = (*left.refs, *(ref for ref in item.refs if ref not in left.refs))
    counted = None if left.posted is None or left.posted == len(refs) else left.posted
    mine, its = item.uncertainty, left.uncertainty
    known = replace(
        mine,
        may_stand=mine.may_stand or its.may_stand,
        mark=mine.mark or its.mark,
        late=mine.late or its.late,
    )
    return replace(item, refs=refs, uncertainty=known, posted=counted)
