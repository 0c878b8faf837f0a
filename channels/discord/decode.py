"""Turns the gateway's events into envelopes; never raises, whatever the JSON contains.

Fields are those of API v10 (docs.discord.com, "Message", "Interactions" and "Gateway Events", read
2026-11). For Discord a thread is a channel of its own, so it is a chat of its own here, unless the
`threads` setting makes it a thread of its parent's chat. A direct chat is named after the person,
`@<user id>`, because its channel id is known only after it was opened.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

from channels._remote.fields import Json, array, inner, integer, objects, text, utc_time
from channels._remote.incoming import (
    Skipped,
    after_mention,
    attachment,
    is_timely,
    item_line,
    plain_name,
    quote,
)
from channels.discord import cards
from channels.discord.snowflakes import is_snowflake, snowflake
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
    Hidden,
    Language,
    MessageRef,
    Position,
    Pressed,
    Said,
    Sender,
    Sentence,
    Value,
    command_of,
    replace,
)

Servers = Literal["off", "mentioned", "all"]
Kind = Literal["press", "form", "command"]

DIRECT = "@"
"""Prefix of a direct chat's name, before the person's id."""
ASK = "ask"
"""The slash command that asks the bot a question."""
QUESTION, ARGUMENTS = "question", "arguments"
"""The options of slash commands."""

_MENTION = re.compile(r"<@[!&]?(\d{1,20})>")
# Message types, read 2026-11: ordinary messages and replies. Discord itself makes all others.
WRITTEN = frozenset({0, 19})
_FORWARD = 1  # Message Reference Types
_KINDS: Mapping[int | None, Kind] = {2: "command", 3: "press", 5: "form"}  # Interaction Types
# Interaction Context Types, read 2026-11: PRIVATE_CHANNEL, a chat between other people without the
# bot. A person who installed the app for themselves can use its commands there.
_BETWEEN_OTHERS = 2
NOT_HERE = Sentence(
    en="I can't write here, so I can't answer; write to me in private.",
    de="Ich kann hier nicht schreiben und also nicht antworten; schreib mir privat.",
)
# Permissions, read 2026-11: to view a channel, and to send messages there, or in its threads; bit 3 is an
# administrator's, who may do everything.
_VIEWS, _SENDS, _SENDS_IN_THREADS = 1 << 10 | 1 << 3, 1 << 11 | 1 << 3, 1 << 38 | 1 << 3
_TYPED_IN = 1  # Application Command Types: CHAT_INPUT


class Bot(Value):
    """The receiving account and its settings.

    Attributes:
        channel: The name in the configuration.
        id: The account's user id.
        servers: As in the settings.
        channels: As in the settings.
        threads: As in the settings.
        roles: The bot's own role of each server; people may mention it instead of the bot.
    """

    channel: str
    id: str
    servers: Servers = "mentioned"
    channels: frozenset[str] = frozenset()
    threads: bool = False
    roles: frozenset[str] = frozenset()


class Interaction(Value):
    """A press, a form or a slash command; Discord expects an answer within 3 s.

    Attributes:
        id: The interaction's id.
        token: Authorizes answers for 15 minutes; never logged.
        application: The application's id.
        kind: What the person did.
        language: The language of the person's app.
        envelope: For ingress; None if the answer only shows a text.
        shows: The text to show only to this person.
    """

    id: str
    token: Hidden[str]
    application: str
    kind: Kind
    language: Language = "en"
    envelope: Envelope | None = None
    shows: str = ""


def chat_of(event: Json, user: str) -> str:
    """Return the chat of an event: a server's channel, or the direct chat with a person."""
    channel = snowflake(event, "channel_id")
    if not channel or snowflake(event, "guild_id"):
        return channel
    return f"{DIRECT}{user}" if user else ""


def author_of(message: Json) -> str:
    """Return the user id of a message's author, empty for none."""
    return snowflake(inner(message, "author"), "id")


def cursor(channel: str, message: str) -> str:
    """Return a chat's reading position as a cursor: its channel and its newest message."""
    return f"{channel}/{message}"


def read_cursor(value: str) -> tuple[str, int] | None:
    """Parse a cursor; None if it is invalid."""
    channel, _, message = value.partition("/")
    if not is_snowflake(channel) or not is_snowflake(message):
        return None
    return channel, int(message)


# --- messages ------------------------------------------------------------------------------------


def message(
    event: Json, bot: Bot, parents: Mapping[str, str], read: Container[str] = ()
) -> Envelope | Skipped:
    """Decode a new message.

    Args:
        event: The message.
        bot: The receiving account.
        parents: The parent channel of each thread.
        read: Chats with a reading position; in threads among them no mention is needed.
    """
    sender, number = _sender(inner(event, "author")), snowflake(event, "id")
    channel = snowflake(event, "channel_id")
    if not channel or not number or sender is None:
        return Skipped(reason="by a bot or without an author")
    if snowflake(event, "webhook_id") or integer(event, "type") not in WRITTEN:
        return Skipped(reason="not written by a person")
    address = _address(event, bot, sender.id, parents, opens=number)
    is_joined = bot.threads and channel in parents and channel in read
    is_free = address.direct or is_joined
    if not is_free and (reason := _reason_to_skip(event, bot, channel, parents)):
        return Skipped(reason=reason)
    words, files, forwarded = _words(event, bot), _attachments(event), _forwarded(event)
    if not words.strip() and not files and not forwarded:
        return Skipped(reason="without text or files")
    command = None if files or forwarded else command_of(words)
    return Envelope(
        address=address,
        sender=sender,
        dedup=(f"message/{channel}/{number}",),
        body=command or _said(event, words, forwarded, bot),
        message=number,
        attachments=files,
        sent_at=_instant(event, "timestamp"),
        position=Position(scope=chat_of(event, sender.id), cursor=cursor(channel, number)),
        alone=bool(forwarded),
    )


def edited(event: Json, bot: Bot, parents: Mapping[str, str]) -> Envelope | Skipped:
    """Decode an edit of any message's text; ingress ignores it if it did not admit the message."""
    sender, number = _sender(inner(event, "author")), snowflake(event, "id")
    version, channel = text(event, "edited_timestamp"), snowflake(event, "channel_id")
    if sender is None or not number or not channel or not version:
        return Skipped(reason="an edit by a bot or without an author")
    words = _words(event, bot)
    if not words.strip() or (bot.servers == "off" and snowflake(event, "guild_id")):
        return Skipped(reason="an edit without text")
    return Envelope(
        address=_address(event, bot, sender.id, parents, opens=number),
        sender=sender,
        dedup=(f"edit/{channel}/{number}/{version}",),
        body=Edited(message=number, said=_said(event, words, "", bot)),
        sent_at=_instant(event, "edited_timestamp"),
    )


def as_new(
    event: Json, bot: Bot, parents: Mapping[str, str], read: Container[str]
) -> Envelope | None:
    """Return an edited message of a server as a new one if it mentions the bot; see `try_admit`."""
    sent_at, edited_at = (_instant(event, key) for key in ("timestamp", "edited_timestamp"))
    is_called = bool(snowflake(event, "guild_id")) and _is_called(event, bot)
    found = message(event, bot, parents) if is_called and is_timely(sent_at, edited_at) else None
    if not isinstance(found, Envelope):
        return None
    # In a chat that was read before, newer messages may have been read, so no position is set.
    is_read = snowflake(event, "channel_id") in read
    return replace(found, position=None if is_read else found.position, sent_at=edited_at)


def deleted(event: Json, bot: Bot, author: str, parents: Mapping[str, str]) -> Envelope | Skipped:
    """Decode the deletion of a message; Discord does not say who the author was.

    Args:
        event: The deletion.
        bot: The receiving account.
        author: The user id of the message's author, empty if unknown.
        parents: As for `message`.
    """
    number, channel = snowflake(event, "id"), snowflake(event, "channel_id")
    if not number or not channel or not author:
        return Skipped(reason="a deletion of an unknown message")
    return Envelope(
        address=_address(event, bot, author, parents, opens=number),
        sender=Sender(id=author, verified=True),
        dedup=(f"deleted/{channel}/{number}",),
        body=Deleted(message=number),
    )


def _said(event: Json, words: str, forwarded: str, bot: Bot) -> Said:
    """Return a text with its quote or forwarded part; only the rest is the sender's own words."""
    if forwarded:
        return Said(text=f"{forwarded}\n{words}".rstrip(), own=words)
    before, files = _quoted(event, bot), _attachments(inner(event, "referenced_message"))
    full = f"{before}{words}".rstrip() if before else words
    return Said(text=full, own=words if before else None, quoted=files)


def _words(event: Json, bot: Bot) -> str:
    """Return a message's text with names in place of ids, without a leading mention of the bot."""
    content = text(event, "content")
    if "<@" in content:
        # A name becomes one word, so that it can't put words into the mouth of the sender.
        people = objects(event, "mentions")
        names = {snowflake(user, "id"): name_of(user).replace(" ", "_") for user in people}
        mention = _MENTION.match(content.lstrip())
        if mention is not None and mention[1] in {bot.id, *bot.roles}:
            content = after_mention(content.lstrip()[mention.end() :]) or content
        content = _MENTION.sub(lambda m: f"@{names[m[1]]}" if m[1] in names else m[0], content)
    return "\n".join(filter(None, (content, *_extras(event))))


def _extras(event: Json) -> Iterator[str]:
    """Describe the stickers and the poll of a message."""
    for sticker in objects(event, "sticker_items"):
        yield f"[sticker {plain_name(text(sticker, 'name'))}]"
    if poll := inner(event, "poll"):
        options = (text(inner(answer, "poll_media"), "text") for answer in objects(poll, "answers"))
        yield f"[poll: {item_line(text(inner(poll, 'question'), 'text'), 'Options', options)}]"


def _text_of(event: Json) -> str:
    """Return the text of a quoted or forwarded message; other bots may post embeds alone."""
    embeds = objects(event, "embeds")
    texts = (text(embed, key) for embed in embeds for key in ("title", "description"))
    content = text(event, "content") or "\n".join(filter(None, texts))
    return "\n".join(filter(None, (content, *_extras(event))))


def own_role(server: Json, bot: Bot) -> frozenset[str]:
    """Return the role that Discord made for the bot in a server; other roles have further members."""
    return frozenset(
        snowflake(role, "id")
        for role in objects(server, "roles")
        if snowflake(inner(role, "tags"), "bot_id") == bot.id
    )


def _reason_to_skip(event: Json, bot: Bot, channel: str, parents: Mapping[str, str]) -> str:
    """Return the reason why a message in a server is not for the bot, empty if it is."""
    if bot.servers == "off":
        return "in a server"
    is_open = bot.servers == "all" or bool({channel, parents.get(channel, "")} & bot.channels)
    is_reply = author_of(inner(event, "referenced_message")) == bot.id
    is_meant = is_open or is_reply or _is_called(event, bot)
    return "" if is_meant else "in a server, not for the bot"


def _is_called(event: Json, bot: Bot) -> bool:
    people = {snowflake(user, "id") for user in objects(event, "mentions")}
    return bot.id in people or not bot.roles.isdisjoint(map(str, array(event, "mention_roles")))


def _forwarded(event: Json) -> str:
    """Return the forwarded text of a message, empty if it forwards none."""
    if integer(inner(event, "message_reference"), "type") != _FORWARD:
        return ""
    parts = [_text_of(inner(item, "message")) for item in objects(event, "message_snapshots")]
    return "\n".join(["[forwarded message]", *filter(None, parts)])


def _quoted(event: Json, bot: Bot) -> str:
    original = inner(event, "referenced_message")
    author = inner(original, "author")
    name = "" if snowflake(author, "id") == bot.id else name_of(author)
    return quote(_text_of(original), name)


def _attachments(message: Json) -> tuple[Attachment, ...]:
    """Return a message's files; it refers to them by ids, since their URLs expire after a day."""
    source = f"{snowflake(message, 'channel_id')}/{snowflake(message, 'id')}"
    files = [(snowflake(file, "id"), file) for file in files_of(message)]
    return tuple(
        attachment(file, f"{source}/{id_}", name="filename", kind="content_type")
        for id_, file in files
        if id_
    )


def files_of(message: Json) -> Sequence[Json]:
    """Return the files of a message and of the messages that it forwards."""
    forwarded = (inner(item, "message") for item in objects(message, "message_snapshots"))
    return [file for source in (message, *forwarded) for file in objects(source, "attachments")]


# --- interactions --------------------------------------------------------------------------------


def interaction(event: Json, bot: Bot, parents: Mapping[str, str]) -> Interaction | None:
    """Decode a press, form or slash command; None if it is not ours."""
    id_, token = snowflake(event, "id"), text(event, "token")
    kind = _KINDS.get(integer(event, "type"))
    sender = _sender(inner(event, "member", "user") or inner(event, "user"))
    if not id_ or not token or not kind or sender is None or not snowflake(event, "channel_id"):
        return None
    address, data = _address(event, bot, sender.id, parents), inner(event, "data")
    body: Body | None = None
    custom_id = text(data, "custom_id")
    shows = cards.read_receipt(custom_id)
    if kind == "command":
        body = _used(data)
    elif press := cards.read(custom_id):
        body = _answer(event, address, *press)
    elif (denied := cards.read_form(custom_id)) and (reason := _typed(data)):
        body = _answer(event, address, denied, "deny", reason=reason)
    language: Language = "de" if text(event, "locale") == "de" else "en"
    if _is_outside(event) or (isinstance(body, Said) and not _may_write(event, bot, parents)):
        body, shows = None, NOT_HERE.to(language) if kind == "command" else ""
    if body is None and not shows:
        return None
    key = (f"interaction/{id_}",)
    return Interaction(
        id=id_,
        token=token,
        application=snowflake(event, "application_id"),
        kind=kind,
        language=language,
        envelope=body and Envelope(address=address, sender=sender, dedup=key, body=body),
        shows=shows,
    )


def _is_outside(event: Json) -> bool:
    """Whether the bot is not a member where an interaction comes from, so that it could not answer.

    A person may have installed the app for themselves; then no server has authorized the interaction
    ("Authorizing Integration Owners", read 2026-11).
    """
    owners, server = inner(event, "authorizing_integration_owners"), snowflake(event, "guild_id")
    is_guest = bool(server and owners) and "0" not in owners  # GUILD_INSTALL
    return is_guest or integer(event, "context") == _BETWEEN_OTHERS


def _may_write(event: Json, bot: Bot, parents: Mapping[str, str]) -> bool:
    """Whether the bot may post an answer where an interaction comes from.

    People can use its commands in channels that are closed to the bot itself.
    """
    permissions = int(snowflake(event, "app_permissions") or -1)
    sends = _SENDS_IN_THREADS if snowflake(event, "channel_id") in parents else _SENDS
    is_open = bot.servers != "off" and 0 not in {permissions & _VIEWS, permissions & sends}
    return is_open or not snowflake(event, "guild_id")


def _answer(
    event: Json, address: Address, approval: ApprovalId, choice: Choice, *, reason: str = ""
) -> Pressed:
    card = snowflake(inner(event, "message"), "id")
    ref = MessageRef(address=address, message=card) if card else None
    return Pressed(approval=approval, choice=choice, reason=reason, card=ref)


def _used(data: Json) -> Body | None:
    """Decode a slash command: a question to the bot, or one of the bot's commands."""
    name = text(data, "name")
    if not name or integer(data, "type") not in {None, _TYPED_IN}:
        return None
    options = {text(option, "name"): text(option, "value") for option in objects(data, "options")}
    if name != ASK:
        return Command(name=name.lower(), rest=options.get(ARGUMENTS, "").strip())
    question = options.get(QUESTION, "").strip()
    return Said(text=question) if question else None


def _typed(data: Json) -> str:
    """Return the text typed into a form with one field, at either depth that Discord may use."""
    for row in objects(data, "components"):
        for field in (inner(row, "component"), *objects(row, "components")):
            if typed := text(field, "value").strip():
                return typed
    return ""


# --- addresses and names -------------------------------------------------------------------------


def _address(
    event: Json, bot: Bot, user: str, parents: Mapping[str, str], *, opens: str = ""
) -> Address:
    """Return the address of an event; `opens` is a message that may have a thread of its own."""
    chat = chat_of(event, user)
    direct, thread = chat.startswith(DIRECT), ""
    if bot.threads and not direct:
        # A thread has the id of the message that it was opened from ("Threads", read 2026-11).
        chat, thread = (parents[chat], chat) if chat in parents else (chat, opens)
    return Address(
        channel=bot.channel, account=bot.id, chat=chat, thread=thread or None, direct=direct
    )


def _sender(user: Json) -> Sender | None:
    """Return a user as sender, None for a bot; Discord verifies the id, but not the name."""
    number = snowflake(user, "id")
    if not number or user.get("bot") is True or user.get("system") is True:
        return None
    return Sender(id=number, verified=True, display=name_of(user))


def name_of(user: Json) -> str:
    """Return a user's name as one short line without square brackets."""
    name = plain_name(text(user, "global_name") or text(user, "username"))
    return name or snowflake(user, "id") or "somebody"


def _instant(event: Json, key: str) -> datetime | None:
    return utc_time(text(event, key), datetime.fromisoformat)
