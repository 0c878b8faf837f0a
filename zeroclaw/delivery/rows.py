"""The rows of the outbox: one for each final, note, file, card and settled card.

Code that decides to send a message puts such a row into the commit of the decision, and then hands
it to the outbox. Texts are redacted and screened before they come here. Keys are
ulids, and idempotency keys are derived from them.
"""

from datetime import timedelta
from typing import Literal, assert_never

from msgspec.structs import asdict

from zeroclaw import codec
from zeroclaw.channel import Card, Outcome
from zeroclaw.clock import made_at
from zeroclaw.delivery.draft import message_key
from zeroclaw.envelope import Address, CheckedReceipt, ConversationId, MessageRef, TurnId
from zeroclaw.errors import RecordUnreadable
from zeroclaw.store import Put, Row, RowKind
from zeroclaw.table import Age, Ages, Codec, Column, Owner, Table, UntilDue, json_codec
from zeroclaw.text.language import ENGLISH, LANGUAGES, Language, Localized, Translations
from zeroclaw.value import TAG, Value, replace

State = Literal["pending", "sending", "delivered", "refused"]
OPEN_STATES: tuple[State, ...] = ("pending", "sending")
"""In `sending` a send without an idempotency key was begun; found at a start, it may have
arrived."""


class Second(Value):
    """A message that was sent again because the first was not found.

    Attributes:
        ref: The second message.
        since: The mark from which to look for the first, up to this one.
    """

    ref: MessageRef
    since: str


class Uncertainty(Value):
    """The uncertainty about the next send of a row; see `reconcile`.

    Attributes:
        may_stand: A message of an earlier try, or of a draft, may exist. It is found by its key if
            the platform knows our keys, or by a lookup if it has one; otherwise the next message
            says that it may be a repeat.
        mark: The mark to look the message up from, empty where no lookup is possible.
        late: It may still arrive: the platform was only slow to answer.
        second: The message that was sent again, until it is certain that only one exists.
    """

    may_stand: bool = False
    mark: str = ""
    late: bool = False
    second: Second | None = None


CERTAIN = Uncertainty()
"""The uncertainty of a row whose messages are all known."""


def looked_up(uncertainty: Uncertainty, since: str) -> Uncertainty:
    """Return the uncertainty after a lookup without a find, which continues from `since`."""
    if uncertainty.second is None:
        return replace(uncertainty, mark=since)
    return replace(uncertainty, second=replace(uncertainty.second, since=since))


class TextPost(Value, stored_as="Text"):
    """A final or a note.

    Attributes:
        address: The chat that it goes to.
        text: The complete Markdown.
        turn: The turn that it is the final of, None for a note.
        refs: The messages that carry it, in order; at first those of the draft.
        done: Count of parts that are shown as they should be.
        plain: The platform could not read the markup.
        uncertainty: About the next part, or a message of the draft.
        posted: Count of messages that the turn has posted, including deleted ones; None for as many
            as there are refs. It numbers the key of the next one.
        quiet: A refusal is not reported to operators; set for notes to operators about a refusal.
        reply_to: The message that this answers, empty for none.
        language: The language of notes that the delivery itself adds.
        receipts: As in `Outgoing`; sent with the last part, which stands below the card of a call.
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


class FilePost(Value, stored_as="File"):
    """A file of a turn; its bytes are a blob, put in the commit that makes the row.

    Attributes:
        address: The chat that it goes to.
        name: A file name without a path.
        digest: The digest of the blob.
        caption: Plain text, empty for none.
        turn: The turn that sends it.
        ref: Its message, None until it was sent.
        uncertainty: About its one message; a repeat's caption says that it may be one.
        reply_to: As in `TextPost`.
        language: As in `TextPost`.
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


class ApprovalCard(Value, stored_as="Ask"):
    """An approval card.

    Attributes:
        address: The approver's chat.
        approvals: The keys of the approval rows that it shows.
        ref: Its message, None until it was sent.
        uncertainty: About its one message.
    """

    address: Address
    card: Card
    approvals: tuple[str, ...]
    ref: MessageRef | None = None
    uncertainty: Uncertainty = CERTAIN


class Settle(Value):
    """How a card ended, to be shown on one of its messages."""

    ref: MessageRef
    outcome: Outcome


class DraftRemainder(Value):
    """The state that a draft leaves to its final.

    Attributes:
        refs: The messages that exist, in order.
        ended: The texts of the first ones, as far as they are shown as texts that grow no more.
        uncertainty: About one more message, whose send it began.
        posted: Count of messages it posted, including deleted ones.
        inherited: The next message may have been posted before a restart, with another text.
    """

    refs: tuple[MessageRef, ...] = ()
    ended: tuple[str, ...] = ()
    uncertainty: Uncertainty = CERTAIN
    posted: int = 0
    inherited: bool = False

    @property
    def is_begun(self) -> bool:
        """Whether the draft has posted a message, or may have."""
        return bool(self.refs or self.uncertainty.may_stand or self.posted)


Item = TextPost | FilePost | ApprovalCard | Settle


class _Body(Value, stored_as="_Said"):
    """The body of a row."""

    item: Item


def outbox_row(
    key: str, item: Item, conversation: ConversationId | None = None, *, state: State = "pending"
) -> Put:
    """Return the write that queues an item for delivery; put a file's blob into the same commit.

    Args:
        key: A new ulid.
        item: The item before its first send; a text is not blank.
        conversation: The conversation that it belongs to, None for none.
        state: `sending` if it is sent as soon as it is committed, see `Outbox.mark_if_sent_now`.
    """
    place = address_of(item).key()
    return OUTBOX.put(key, item, conversation=conversation, state=state, place=place)


def is_final(row: Row) -> bool:
    """Whether a row carries the answer of a turn."""
    item = OUTBOX.of(row)
    return isinstance(item, TextPost) and item.turn is not None


def _age_of(row: Row) -> Age | None:
    """Keep a card no longer than its approvals; without them it would look as if still open."""
    return Age.APPROVALS if isinstance(OUTBOX.of(row), ApprovalCard | Settle) else None


def _owner_of(row: Row) -> Owner:
    item = OUTBOX.of(row)
    match item:
        case TextPost(turn=turn) | FilePost(turn=turn):
            return Owner(turn=turn or "")
        case ApprovalCard(approvals=approvals):
            return Owner(approvals=frozenset(approvals))
        case Settle(outcome=outcome):
            return Owner(approvals=frozenset(call.approval for call in outcome.card.calls))
        case _:
            assert_never(item)


def _blobs(row: Row) -> tuple[str, ...]:
    item = OUTBOX.of(row)
    return (item.digest,) if isinstance(item, FilePost) else ()


def _decoded(body: bytes) -> Item:
    """Decode the body of a row; older ones store an uncertainty as four fields."""
    try:
        return codec.decode(_Body, body).item
    except RecordUnreadable:
        fields = codec.decode(dict[str, str | dict[str, object]], body)
        item = fields.get("item")
        if not isinstance(item, dict) or "uncertain" not in item:
            raise
        names = {"uncertain": "may_stand", "mark": "mark", "late": "late", "second": "second"}
        moved = {new: item.pop(old) for old, new in names.items() if old in item}
        item["uncertainty"] = {TAG: Uncertainty.__name__, **moved}
        return codec.decode(_Body, codec.encode(fields)).item


OUTBOX: Table[Item] = Table(
    kind=RowKind.OUTBOX,
    codec=Codec(encode=lambda item: codec.encode(_Body(item=item)), decode=_decoded),
    columns=frozenset({Column.CONVERSATION, Column.STATE, Column.PLACE, Column.DUE_AT}),
    keeps=Ages(age=Age.MESSAGES, ended=frozenset({"delivered", "refused"}), sooner=_age_of),
    owner=_owner_of,
    blobs=_blobs,
    busy=frozenset(OPEN_STATES),
)


class Notice(Value):
    """A sentence to operators about a problem, until it is in the outbox rows of their chats.

    Attributes:
        text: The sentence in English.
        others: The sentence in each language.
        but: The key of an address that does not get it.
        but_channel: The name of a channel that does not get it.
    """

    text: str
    others: Translations = ()
    but: str = ""
    but_channel: str = ""


NOTICES = Table(
    kind=RowKind.NOTICE,
    codec=json_codec(Notice),
    columns=frozenset({Column.CONVERSATION, Column.DUE_AT}),
    keeps=UntilDue(),
)
NOTICE_DAYS = 7
"""Days that a notice waits for an operator; an older one is no longer useful."""


def notice_row(key: str, says: Localized, *, but: str = "", but_channel: str = "") -> Put:
    """Return the write that notifies operators, as soon as one of them can be reached.

    Args:
        key: A new ulid.
        says: The sentence; each operator reads it in their own language.
        but: As in `Notice`.
        but_channel: As in `Notice`.
    """
    others: Translations = tuple((language, says.to(language)) for language in LANGUAGES)
    notice = Notice(text=says.to(ENGLISH), others=others, but=but, but_channel=but_channel)
    return NOTICES.put(key, notice, due_at=made_at(key) + timedelta(days=NOTICE_DAYS))


def part_key(key: str, item: TextPost) -> str:
    """Return the idempotency key of the next message that a text posts.

    A final continues its draft's keys, so that a message whose arrival was not recorded is found
    again instead of being shown twice.

    Args:
        key: The row's key.
        item: The row's item.
    """
    if item.turn is None:
        return f"{key}:{item.done}"
    return message_key(item.turn, posted(item))


def first_key(key: str, item: TextPost) -> str:
    """Return the idempotency key of a text's first message, if no message was lost."""
    return part_key(key, replace(item, refs=(), done=0, posted=None))


def posted(item: TextPost) -> int:
    """Return the count of messages that the turn of a final has posted."""
    return len(item.refs) if item.posted is None else item.posted


def address_of(item: Item) -> Address:
    """Return the address of an item."""
    return item.ref.address if isinstance(item, Settle) else item.address


def messages(item: Item) -> tuple[MessageRef, ...]:
    """Return the messages that are known to carry an item.

    Only an `ApprovalCard` names the messages of its card: if the card was pressed before its send was
    recorded, a lookup must still find it while its outcome waits to be shown there.
    """
    match item:
        case TextPost():
            return item.refs
        case Settle():
            return ()
        case FilePost() | ApprovalCard():
            return () if item.ref is None else (item.ref,)
        case _:
            assert_never(item)


def changed(row: Row, item: Item | None, state: State) -> Put:
    """Return the write that changes a row.

    Without an item the row keeps its body, which may be damaged.
    """
    return Put(
        kind=row.kind,
        key=row.key,
        body=row.body if item is None else OUTBOX.codec.encode(item),
        conversation=row.conversation,
        state=state,
        place=row.place,
    )


def stored(put: Put, version: int) -> Row:
    """Return the row that a put makes."""
    return Row(version=version, **asdict(put))


def with_draft(item: TextPost, draft: DraftRemainder) -> TextPost:
    """Return the final with the remainder of its draft, known only after the commit."""
    refs = (*draft.refs, *(ref for ref in item.refs if ref not in draft.refs))
    counted = None if draft.posted == len(refs) else draft.posted
    # A send that the row has noted itself is later than the draft's.
    uncertainty = item.uncertainty if item.uncertainty.may_stand else draft.uncertainty
    return replace(item, refs=refs, uncertainty=uncertainty, posted=counted)
