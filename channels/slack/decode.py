"""Turns Slack's events into envelopes, or into the reason why one is ignored; pure.

Live events and messages read from a history are treated alike. In a channel each thread is a
conversation: a message that mentions the bot begins one, the bot answers in its thread, and messages
there belong to the conversation without another mention.

A chat's reading position is one cursor: its newest message, and the newest message of each recently
active thread, because a chat's history leaves out the messages in threads.
"""

import json
import re
from collections.abc import Container, Mapping, Sequence
from datetime import datetime

from channels._remote.fields import Json, as_object, from_unix, inner, objects, parse_json, text
from channels._remote.incoming import (
    Skipped,
    after_mention,
    attachment,
    is_timely,
    plain_name,
    quote,
    text_hash,
)
from zeroclaw import (
    Address,
    ApprovalId,
    Attachment,
    Body,
    Choice,
    Command,
    Deleted,
    Edited,
    Envelope,
    Membership,
    MessageRef,
    Moved,
    Position,
    Pressed,
    Said,
    Sender,
    Value,
    command_of,
    field,
    replace,
)

DIRECT = "@"
"""Prefix of a person's id: names their direct chat, whose own id need not be known."""
MAX_THREADS = 20
"""Threads of one chat in its cursor; the most recently active ones."""
Above = Sequence[Json] | None
"""The messages of a thread above the one that calls the bot into it; None if they can't be read."""
MAX_ABOVE = 20
"""How many of these the bot reads in addition to the first one; the newest."""
NOT_READ = "[what stands above this in its thread could not be read]\n\n"

_TS = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}")
_ID = re.compile(r"[A-Z0-9]{2,30}")
_TAG = re.compile(r"<([^<>\n]{1,3000})>")
_MENTION = re.compile(r"@([A-Z0-9]{2,30})(?:\|[^<>|]*)?")
_NAMED = re.compile(r"[#!]([^|]*)(?:\|(.*))?")
_WRITTEN = frozenset({"", "file_share", "thread_broadcast", "me_message"})
"""Subtypes of people's messages ("Message events", docs.slack.dev, read 2026-11)."""
_CHOICES: Mapping[str, Choice] = {
    "zc-once": "once",
    "zc-time": "for_a_time",
    "zc-deny": "deny",
    "zc-why": "deny_with_reason",
}
ACTIONS: Mapping[Choice, str] = {choice: action for action, choice in _CHOICES.items()}
FORM, FIELD = "zc-reason", "reason"


class Bot(Value):
    """The receiving account and its settings.

    Attributes:
        channel: The name in the configuration.
        account: The account as one word.
        user: The bot's user id.
        channels: As in the settings.
    """

    channel: str
    account: str
    user: str = ""
    channels: str = "mentioned"


class Reading(Value):
    """The reading position of a chat.

    Attributes:
        top: The newest message of the chat itself, empty before the first.
        threads: The newest message of each thread, by thread, the most recently active one last.
        old_id: The id that the chat had before, empty for none.
    """

    top: str = ""
    threads: Mapping[str, str] = field(default_factory=dict[str, str])
    old_id: str = ""

    @property
    def newest(self) -> str:
        """The newest message of the chat and its threads, empty before the first."""
        return max((self.top, *self.threads.values()), key=order)

    def after(self, ts: str, thread: str) -> "Reading":
        """Return the position after a message; `thread` is the message's thread, empty for none."""
        top = max(self.top, ts, key=order) if thread in {"", ts} else self.top
        threads = dict(self.threads)
        if thread:
            threads[thread] = max(threads.pop(thread, ts), ts, key=order)
            while len(threads) > MAX_THREADS:
                del threads[next(iter(threads))]
        return replace(self, top=top, threads=threads)

    def text(self) -> str:
        """Return the position as a cursor."""
        threads = (f"{thread}:{ts}" for thread, ts in self.threads.items())
        return " ".join((self.top or "-", *threads, *filter(None, (self.old_id,))))


def read_cursor(cursor: str) -> Reading:
    """Parse a cursor, leaving out its invalid parts."""
    top, *threads = cursor.split(" ")
    old_id = threads.pop() if threads and is_id(threads[-1]) else ""
    pairs = (pair.partition(":") for pair in threads[-MAX_THREADS:])
    newest = {thread: ts for thread, _, ts in pairs if is_ts(thread) and is_ts(ts)}
    return Reading(top=top if is_ts(top) else "", threads=newest, old_id=old_id)


def is_ts(value: str) -> bool:
    """Whether a text can be a message's id."""
    return _TS.fullmatch(value) is not None


def is_id(value: str) -> bool:
    """Whether a text can be the id of a person or a channel."""
    return _ID.fullmatch(value) is not None


def order(ts: str) -> tuple[int, str]:
    """Return the sort key of a message's id."""
    seconds, _, fraction = ts.partition(".")
    return (int(seconds), fraction.ljust(9, "0")) if is_ts(ts) else (0, "")


class Decoded(Value):
    """An event for ingress.

    Attributes:
        envelope: The event's envelope.
        trigger: The trigger id of a press, which can open a form for that person within 3 s.
    """

    envelope: Envelope
    trigger: str = ""


def is_elsewhere(payload: Json, bot: Bot) -> bool:
    """Whether an event is from another workspace, where the same ids mean other people.

    An event of a channel that two workspaces share names the workspace through which the app receives
    it ("Using the Slack Conversations API", docs.slack.dev). A form that a person of the other
    workspace submits names it in its view (`extract_team_id`, slack_bolt 1.30; both read 2026-11).
    """
    team = (
        text(inner(payload, "view"), "app_installed_team_id")
        or text(payload, "context_team_id")
        or text(payload, "team_id")
        or text(inner(payload, "team"), "id")
    )
    return bool(team) and team != bot.account.partition("-")[0]


# --- messages --------------------------------------------------------------------------------------


def chat_of(event: Json) -> str:
    """Return the chat of a message event, empty for none."""
    channel = text(event, "channel") or text(event, "old_channel_id")
    if not is_id(channel):
        return ""
    if text(event, "channel_type") != "im" and not channel.startswith("D"):
        return channel
    # What is left of a deleted message has Slack as its author.
    inside = inner(event, "previous_message") or inner(event, "message") or event
    user = text(inside, "user")
    return f"{DIRECT}{user}" if is_id(user) else ""


def message(
    event: Json, bot: Bot, reading: Reading, *, event_id: str, is_joined: bool, above: Above
) -> Decoded | Skipped:
    """Decode a message event.

    Args:
        event: A live event, or a message from a history with its channel added.
        bot: The receiving account.
        reading: The reading position of its chat before this event.
        event_id: The event's id, empty for a message from a history.
        is_joined: Its thread is a conversation with the bot.
        above: The messages above it in the thread that it calls the bot into.
    """
    chat = chat_of(event)
    if not chat:
        return Skipped(reason="no chat to answer in")
    subtype = text(event, "subtype")
    if subtype == "message_changed":
        return _edited(event, bot)
    if subtype == "message_deleted":
        return _deleted(event, bot)
    ts, thread = text(event, "ts"), _thread_of(event, chat)
    if subtype not in _WRITTEN or not is_ts(ts) or not _is_by_person(event, bot):
        return Skipped(reason="not written by a person")
    is_for_bot = is_meant(event, bot) or (is_joined and bot.channels == "mentioned")
    if not chat.startswith(DIRECT) and not is_for_bot:
        return Skipped(reason="in a channel, not for the bot")
    said, files = _said(event, bot, above), _files(event)
    command = command_of(said.wrote)
    if not said.text and not files:
        return Skipped(reason="without text or files")
    user, client = text(event, "user"), text(event, "client_msg_id")
    # An edit may have added the mention.
    sent_at, edited_at = _instant(ts), _instant(text(inner(event, "edited"), "ts"))
    keys = (
        f"message/{text(event, 'channel')}/{ts}",
        f"event/{event_id}" if event_id else "",
        # A client chooses it, and all members of the chat can read it, so it counts per sender.
        f"client/{user}/{client[:100]}" if client else "",
    )
    envelope = Envelope(
        address=address_of(bot, chat, thread),
        sender=Sender(id=user, verified=True),
        dedup=tuple(filter(None, keys)),
        body=command or said,
        message=ts,
        position=Position(scope=chat, cursor=reading.after(ts, thread).text()),
        attachments=files,
        sent_at=edited_at if is_timely(sent_at, edited_at) else sent_at,
    )
    return Decoded(envelope=envelope)


def is_meant(event: Json, bot: Bot) -> bool:
    """Whether a message in a channel is for the bot, in whatever thread it is."""
    is_called = bot.channels == "mentioned" and f"<@{bot.user}" in text(event, "text")
    return is_called or bot.channels == "all"


def _said(event: Json, bot: Bot, above: Above = ()) -> Said:
    """Return a message's text, after quotes of the thread above it, and before what it shares."""
    words, shared = unmarked(text(event, "text"), bot), _shared(event)
    ts = text(event, "ts")
    first, *others = [message for message in above or () if text(message, "ts") != ts] or [{}]
    quotes = (_quoted(message, bot) for message in (first, *others[-MAX_ABOVE:]))
    before = NOT_READ if above is None else "".join(quotes)
    full = f"{before}{words}\n\n{shared}".strip() if before or shared else words
    return Said(text=full, own=words if before or shared else None, quoted=_files(first))


def _quoted(event: Json, bot: Bot) -> str:
    """Return a message of a thread as a quote; other apps may post attachments alone."""
    words, user = unmarked(text(event, "text"), bot), text(event, "user")
    shown = words or "\n".join(text(item, "fallback") for item in objects(event, "attachments"))
    author = plain_name(text(event, "username") or user) or "an app"
    return quote(shown, "" if user == bot.user else author)


def _is_by_person(event: Json, bot: Bot) -> bool:
    user = text(event, "user")
    return is_id(user) and not text(event, "bot_id") and user not in {bot.user, "USLACKBOT"}


def _edited(event: Json, bot: Bot) -> Decoded | Skipped:
    """Decode an edit; Slack sends the same event when a link is unfurled or a thread grows."""
    after, before = inner(event, "message"), inner(event, "previous_message")
    if text(after, "subtype") == "tombstone":  # deleted, but it began a thread, which remains
        return _deleted(event, bot)
    ts, edited = text(after, "ts"), text(inner(after, "edited"), "ts")
    is_edit = is_ts(ts) and is_ts(edited) and text(after, "text") != text(before, "text")
    if not is_edit or not _is_by_person(after, bot):
        return Skipped(reason="not an edit by a person")
    said = _said(after, bot)
    key = f"edit/{ts}/{edited}/{text_hash(said.text)}"
    return _revised(event, bot, after, Edited(message=ts, said=said), key=key)


def _deleted(event: Json, bot: Bot) -> Decoded | Skipped:
    before = inner(event, "previous_message")
    ts = text(before, "ts")
    if not _is_by_person(before, bot) or not is_ts(ts):
        return Skipped(reason="a deletion of no person's message")
    return _revised(event, bot, before, Deleted(message=ts), key=f"deletion/{ts}")


def _revised(event: Json, bot: Bot, message: Json, body: Body, *, key: str) -> Decoded:
    chat = chat_of(event)
    return Decoded(
        envelope=Envelope(
            address=address_of(bot, chat, _thread_of(message, chat)),
            sender=Sender(id=text(message, "user"), verified=True),
            dedup=(f"{key}/{text(event, 'channel')}",),
            body=body,
            sent_at=_instant(text(inner(message, "edited"), "ts")),
        )
    )


def _thread_of(message: Json, chat: str) -> str:
    """Return the thread of a message, empty for none; in a channel each message is in one or begins one."""
    ts, thread = text(message, "ts"), text(message, "thread_ts")
    if is_ts(thread) and thread != ts:
        return thread
    return "" if chat.startswith(DIRECT) else ts


def address_of(bot: Bot, chat: str, thread: str) -> Address:
    """Return the address of a chat, or of a thread in it; `thread` is empty for none."""
    direct = chat.startswith(DIRECT)
    return Address(
        channel=bot.channel, account=bot.account, chat=chat, thread=thread or None, direct=direct
    )


def _instant(ts: str) -> datetime | None:
    """Return when a message was written or edited, as its id says."""
    return from_unix(int(ts.partition(".")[0])) if is_ts(ts) else None


def _shared(event: Json) -> str:
    """Return the text of shared messages as a quote; it was written by other people."""
    shared = [item for item in objects(event, "attachments") if item.get("is_share")]
    lines = [line for item in shared for line in text(item, "text")[:4_000].splitlines()]
    return "\n".join(f"> {line}" for line in lines)


def _files(event: Json) -> tuple[Attachment, ...]:
    files = objects(event, "files")
    found = (attachment(file, text(file, "id"), name="name", kind="mimetype") for file in files)
    return tuple(file for file in found if is_id(file.reference))


def unmarked(content: str, bot: Bot) -> str:
    """Return a message's text as it was typed, without the mention of the bot, unless that is all.

    Slack escapes three characters and writes mentions and links in angle brackets ("Formatting text",
    docs.slack.dev, read 2026-11).
    """
    is_called = content.lstrip().startswith(f"<@{bot.user}")

    def typed(tag: re.Match[str]) -> str:
        inside = tag[1]
        if person := _MENTION.fullmatch(inside):
            return "" if person[1] == bot.user else f"@{person[1]}"
        if named := _NAMED.fullmatch(inside):
            sign = "#" if inside.startswith("#") else "@"
            return f"{sign}{(named[2] or named[1]).removeprefix('@').removeprefix('#')}"
        link, _, label = inside.partition("|")
        link = link.removeprefix("mailto:")
        return link if not label or label == link else f"{label} ({link})"

    content = content.lstrip() if is_called else content
    words = _TAG.sub(typed, content) if "<" in content else content
    words = words.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return (after_mention(words).rstrip() or f"@{bot.user}") if is_called else words


# --- presses, forms, slash commands ----------------------------------------------------------------


def pressed(payload: Json, bot: Bot, read: Container[str] = ()) -> Decoded | Skipped:
    """Decode a press of a button or a submitted form; `read` are the chats with a position."""
    user = text(inner(payload, "user"), "id")
    if not is_id(user):
        return Skipped(reason="a press by no person")
    if text(payload, "type") == "view_submission":
        return _submitted(payload, bot, user)
    actions = objects(payload, "actions")
    action = as_object(actions[0] if actions else None)
    choice = _CHOICES.get(text(action, "action_id").partition(":")[0])
    approval, at = text(action, "value"), text(action, "action_ts")
    if text(payload, "type") != "block_actions" or choice is None or not approval:
        return Skipped(reason="not one of our buttons")
    source = inner(payload, "container")
    channel, ts = text(source, "channel_id"), text(source, "message_ts")
    card = _card(bot, channel, ts, text(source, "thread_ts"), user)
    body = Pressed(approval=ApprovalId(approval[:200]), choice=choice, card=card)
    key = f"press/{channel}/{ts}/{at}/{approval[:200]}"
    trigger = text(payload, "trigger_id")
    decoded = _decoded(user, _place(bot, user, card), body, key, trigger=trigger)
    if card is None or not card.address.direct or card.address.chat in read:
        return decoded
    # The bot has admitted no message there, so reading starts at the card.
    reading = Reading().after(card.message, card.address.thread or "")
    position = Position(scope=card.address.chat, cursor=reading.text())
    return replace(decoded, envelope=replace(decoded.envelope, position=position))


def _submitted(payload: Json, bot: Bot, user: str) -> Decoded | Skipped:
    view = inner(payload, "view")
    data = as_object(parse_json(text(view, "private_metadata").encode()))
    approval = text(data, "approval")
    if text(view, "callback_id") != FORM or not approval:
        return Skipped(reason="not one of our forms")
    reason = text(inner(view, "state", "values", FIELD, FIELD), "value")[:500]
    card = _card(bot, text(data, "channel"), text(data, "ts"), text(data, "thread"), user)
    body = Pressed(approval=ApprovalId(approval[:200]), choice="deny", reason=reason, card=card)
    key = f"form/{text(view, 'id')}/{approval[:200]}"
    return _decoded(user, _place(bot, user, card), body, key)


def _card(bot: Bot, channel: str, ts: str, thread: str, user: str) -> MessageRef | None:
    if not is_id(channel) or not is_ts(ts):
        return None
    thread = thread if is_ts(thread) and thread != ts else ""
    return MessageRef(address=_address_for(bot, channel, thread, user), message=ts)


def _address_for(bot: Bot, channel: str, thread: str, user: str) -> Address:
    """Return the address of what a person did in a channel, or in their direct chat."""
    return address_of(bot, f"{DIRECT}{user}" if channel.startswith("D") else channel, thread)


def _place(bot: Bot, user: str, card: MessageRef | None) -> Address:
    return address_of(bot, f"{DIRECT}{user}", "") if card is None else card.address


def _decoded(user: str, address: Address, body: Body, key: str, *, trigger: str = "") -> Decoded:
    sender = Sender(id=user, verified=True)
    envelope = Envelope(address=address, sender=sender, dedup=(key,), body=body)
    return Decoded(envelope=envelope, trigger=trigger)


def form_data(approval: ApprovalId, card: MessageRef, channel: str) -> str:
    """Return the data that a form carries until it is submitted."""
    data = {"approval": approval, "channel": channel, "ts": card.message}
    return json.dumps({**data, "thread": card.address.thread or ""})


def opened(event: Json, bot: Bot, event_id: str) -> Decoded | Skipped:
    """Decode that a person opened their direct chat, or an older app's assistant, which begins a thread."""
    assistant = inner(event, "assistant_thread")
    user, thread = text(assistant, "user_id") or text(event, "user"), text(assistant, "thread_ts")
    if not is_id(user) or not (is_ts(thread) if assistant else text(event, "tab") == "messages"):
        return Skipped(reason="no direct chat was opened")
    address = address_of(bot, f"{DIRECT}{user}", thread)
    return _decoded(user, address, Membership(present=True), f"event/{event_id}")


def moved(event: Json, bot: Bot, reading: Reading, event_id: str) -> Decoded | Skipped:
    """Decode that a channel has a new id, as a private one gets when another workspace shares it.

    See "channel_id_changed", docs.slack.dev, read 2026-11. Slack itself changes the id, so the event
    has no sender; the channel is given as the sender.
    """
    old, new = text(event, "old_channel_id"), text(event, "new_channel_id")
    if not is_id(old) or not is_id(new):
        return Skipped(reason="no channel with a new id")
    envelope = Envelope(
        address=address_of(bot, old, ""),
        sender=Sender(id=old, verified=True),
        # Repeated with another event id, it must not restore a conversation that `/new` ended.
        dedup=(f"event/{event_id}", f"moved/{old}/{new}/{text(event, 'event_ts')[:30]}"),
        body=Moved(to=address_of(bot, new, "")),
        position=Position(scope=new, cursor=replace(reading, old_id=old).text()),
    )
    return Decoded(envelope=envelope)


def slash(payload: Json, bot: Bot) -> Decoded | Skipped:
    """Decode a slash command: `/zeroclaw stop` or `/zeroclaw /stop` is the bot's `/stop`.

    Without a word it is `/help`.
    """
    user, channel, trigger = (text(payload, key) for key in ("user_id", "channel_id", "trigger_id"))
    if not is_id(user) or not is_id(channel) or not trigger:
        return Skipped(reason="a slash command by no person")
    # The bot's own sentences say `/approve 1`, which people copy.
    arguments = text(payload, "text").strip().removeprefix("/")
    name, _, rest = arguments.partition(" ")
    is_word = name.isascii() and name.isalpha()
    body = Command(name=name.lower() if is_word else "help", rest=rest.strip() if is_word else "")
    return _decoded(user, _address_for(bot, channel, "", user), body, f"slash/{trigger[:200]}")


def stopped(event: Json, bot: Bot, event_id: str) -> Decoded | Skipped:
    """Decode a press of the stop button that Slack shows while the bot works in a thread: `/stop`.

    See "agent_session_stopped", docs.slack.dev, read 2026-11.
    """
    user, channel, thread = (text(event, key) for key in ("user", "channel", "thread_ts"))
    if not is_id(user) or not is_id(channel) or not is_ts(thread):
        return Skipped(reason="nothing to stop")
    address = _address_for(bot, channel, thread, user)
    return _decoded(user, address, Command(name="stop"), f"event/{event_id}")
