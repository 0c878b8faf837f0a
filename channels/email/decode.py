"""Decodes a mail into an envelope, or into the reason to pass it over; pure.

A conversation is a thread: `Address.thread` is the id of the mail that began it, which every reply
lists in References. So an answer finds its thread again after a restart, with nothing stored. Mails
that the bot began itself, such as a card or a notice, belong to the chat, without a thread; their
Message-IDs say so. The ids of the bot's answers contain their thread, for replies that have only
In-Reply-To.

In a mail that begins a thread, the subject counts as the first line of the text, because people write
half of their request there. The subject of a reply adds nothing.
"""

import base64
import hmac
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from channels._remote.cards import button_data, parse_button_data
from channels._remote.incoming import Skipped
from channels.email import EmailSettings, identity, quotes, robots
from zeroclaw import (
    Address,
    Attachment,
    Body,
    CardCall,
    Choice,
    Command,
    Envelope,
    Hidden,
    Mail,
    MessageRef,
    Position,
    Pressed,
    Said,
    Value,
    command_of,
    is_hidden_in_mail,
    parse_mail,
    plain_header,
    readable_page,
)

MAX_CHARS = 100_000
"""Limit of a mail's text; the rest is dropped."""
MAX_READ_CHARS = 500_000
"""Limit of all text parts of a mail together, markup included."""
CUT = "cut"
"""In place of the position in references to files of a mail of which only the beginning was read."""
MAX_REASON_CHARS = 1_000
MAX_ID_CHARS = 120
"""A longer Message-ID is replaced by its hash. Exchange's have 80."""
_ID = re.compile(r"<\s*([^<>\s]{1,900})\s*>")
# Visible characters, except those that end a quoted string or an id: IMAP searches contain the id.
_SAFE = re.compile(r"[!#-;=?-\[\]-~]+@[!#-;=?-\[\]-~]+")
_OWN_ID = re.compile(r"zc\.((?:[\w-]{4})*(?:[\w-]{2,3})?)\.[^.@]*@([^@]*)", re.ASCII)
_HASHED_OR_NONE = re.compile("(?:#[0-9a-f]{20})?")
_RETURNED = re.compile(r"(?im)^Message-ID:\s*<zc\.[\w-]*\.([0-9a-f]{20})([0-9a-f]{12})@")
_RETURNED_TO = re.compile(r"(?im)^To:\s*<?([^<>\s]{1,254})")
MAX_RETURNED = 5
"""Limit of ids and recipients read from a report, which is about one mail to one person."""
_PRESS = re.compile(
    r"\[zc:(([otd]:[^\s:\[\]]{1,200}):([0-9a-f]{20,32}):([A-Za-z0-9_-]{0,200}):[0-9a-f]{8})"
    r":([0-9a-f]{32})\]"
)
REPLY = re.compile(
    r"\A(?:\s*(?:re|aw|sv|antw|odp|vs|ответ|fw|fwd|wg)(?:\[\d{1,3}\])?\s*:)+\s*", re.IGNORECASE
)
# How subjects of forwarded mails begin in programs that do not write `Fwd`, also after another prefix
# of one word, because there are more languages than these.
_FORWARDED = re.compile(
    r"(?i)\A(?:\s*\[[^\]]{0,30}\])*(?:[^:]{1,10}:)*?\s*(?:fwd?|wg|tr|rv|enc|i|vb|vl|pd|doorst|ilt|πρθ|пер|转发|轉寄|転送|전달)\s*[:：]"  # noqa: RUF001  wide colon
)
_LED_IN = re.compile("\\A[^:：]{1,30}[:：](?!//)")  # noqa: RUF001  as above
_QUOTED = frozenset(
    {"gmail_quote", "moz-cite-prefix", "yahoo_quoted", "protonmail_quote", "zmail_extra"}
    | {"mail-editor-reference-message-container", "moz-signature", "gmail_signature"}
)
"""Classes and ids of quoted parts."""
# Outlook's marks; everything after them is quoted.
_QUOTED_FROM = re.compile(r"<[^<>]{0,500}\bid\s*=\s*[\"']?(?:divRplyFwdMsg|appendonsend)\b")


class Bot(Value):
    """The bot's account, as decoding needs it.

    Attributes:
        channel: The channel's name in the configuration.
        settings: The account.
        key: Authenticates the codes of cards; without a key no code is accepted.
    """

    channel: str
    settings: EmailSettings
    key: Hidden[bytes] = b""

    @property
    def domain(self) -> str:
        """The domain of the account, used in its Message-IDs."""
        return self.settings.address.rpartition("@")[2]

    @property
    def scope(self) -> str:
        """The scope of reading positions, with the account: Gmail gives all inboxes UIDVALIDITY 1."""
        return f"{self.settings.address} {self.settings.mailbox}"


class Fetched(Value):
    """A mail as it was fetched.

    Attributes:
        validity: The mailbox's UIDVALIDITY.
        uid: Its UID.
        raw: The mail, or its first part if it is larger than the limit.
        at: When the server received it.
    """

    validity: int
    uid: int
    raw: Hidden[bytes]
    at: datetime | None = None


class Parent(Value):
    """The facts that an answer needs about the mail that it answers.

    Attributes:
        id: Its Message-ID, without brackets, or empty.
        subject: Its subject, as one line.
        references: The ids of the thread before it, in order.
    """

    id: str = ""
    subject: str = ""
    references: tuple[str, ...] = ()


class Decoded(Value):
    """A mail for the runtime.

    Attributes:
        envelope: The envelope for the runtime.
        parent: The facts that an answer needs.
        may_quote: The sender's own text may contain the bot's, quoted without a mark; the caller has
            to decode the mail again with the bot's texts.
    """

    envelope: Envelope
    parent: Parent
    may_quote: bool = False


def decode(fetched: Fetched, bot: Bot, bot_texts: Collection[str] = ()) -> Decoded | Skipped:
    """Decode a mail; `bot_texts` are texts of the bot's that it may quote without a mark."""
    mail = parse_mail(fetched.raw)
    settings = bot.settings
    author = identity.author(mail, settings)
    if author is None:
        return Skipped(reason="not exactly one sender")
    bot_address = identity.normalised(settings.address, settings.plus_tags)
    if reason := robots.reason_to_ignore(mail, sender=author.id, own=bot_address):
        return Skipped(reason=reason)
    parent = parent_of(mail)
    if own_thread(parent.id, bot.domain) is not None:
        return Skipped(reason="it is our own")
    cursor = f"{fetched.validity}:{fetched.uid}"
    keys = [f"uid:{settings.mailbox}:{cursor}"]
    if author.verified and parent.id:
        keys.append(f"id:{identity.digest(author.id, parent.id)}")
    is_cut = len(fetched.raw) >= settings.max_mail_bytes
    text, own = _texts(mail)
    own = quotes.without_repeats(own, bot_texts) if bot_texts else own
    may_quote = author.verified and bool(parent.references) and quotes.is_long(own)
    if match := _PRESS.search(plain_header(mail.header("subject"))):
        body = _press(match, own, bot, author.id)
    else:
        body = _body(parent.subject, text, own, is_first=not parent.references)
    envelope = Envelope(
        address=_chat(bot, author.id, _thread(parent, bot)),
        sender=author,
        dedup=tuple(keys),
        body=body,
        message=parent.id if is_plain_id(parent.id) else f"uid:{cursor}",
        position=Position(scope=bot.scope, cursor=cursor),
        attachments=tuple(_files(mail, CUT if is_cut else cursor)),
        sent_at=fetched.at,
        alone=True,
    )
    return Decoded(envelope=envelope, parent=parent, may_quote=may_quote)


def returned_to(raw: bytes, bot: Bot) -> set[str]:
    """Return the recipients to whom a report says that the bot's mail was not delivered (RFC 3464, 2.3.3).

    A report quotes that mail's headers before its text, so the beginning is enough. The quoted id proves
    that the bot sent the mail to that recipient, so only the recipient could forge a report of it.
    """
    report = raw[:MAX_CHARS].decode("ascii", "replace")
    ids = _RETURNED.findall(report)[:MAX_RETURNED] if "\nAction: failed" in report else ()
    recipients = _RETURNED_TO.findall(report)[:MAX_RETURNED]
    return {to for to in recipients for n, proof in ids if proof == _proof(n, bot.key, to)[:12]}


def _chat(bot: Bot, sender: str, thread: str | None) -> Address:
    account, thread = bot.settings.address, thread or None
    return Address(channel=bot.channel, account=account, chat=sender, thread=thread, direct=True)


def parent_of(mail: Mail) -> Parent:
    """Return the facts that an answer needs about a mail.

    The subject of an answer has no code, or each reply to the answer would be one to the card again.
    """
    return Parent(
        id=next(iter(_ID.findall(mail.header("message-id"))), ""),
        subject=_PRESS.sub("", plain_header(mail.header("subject")))[:500],
        references=_ids(mail, "references") or _ids(mail, "in-reply-to"),
    )


def _ids(mail: Mail, header: str) -> tuple[str, ...]:
    # Some programs encode ids that are longer than a line.
    return tuple(_ID.findall(plain_header(mail.header(header))))


# --- threads and the bot's own ids ---------------------------------------------------------------


def _thread(parent: Parent, bot: Bot) -> str | None:
    """Return the thread of a mail, None if it belongs to the chat itself."""
    root = next(iter(parent.references), parent.id)
    for message_id in (root, *parent.references[-1:]):
        if (thread := own_thread(message_id, bot.domain)) is not None:
            return thread or None
    if bot.settings.threads == "subject" and (title := REPLY.sub("", parent.subject, count=1)):
        return f"#{identity.digest('subject', title.casefold())}"
    return thread_of(root) if root else None


def thread_of(root: str) -> str:
    """Return the name of the thread that a mail began: its id, or the hash of an unusual one."""
    return root if is_plain_id(root) else f"#{identity.digest(root)}"


def is_plain_id(message_id: str) -> bool:
    """Tell whether a Message-ID can be used as it is."""
    return len(message_id) <= MAX_ID_CHARS and _SAFE.fullmatch(message_id) is not None


def root_of(thread: str | None) -> Parent:
    """Return the parent of an answer without the thread's mails: only the id of the first one."""
    return Parent(id=thread if thread and is_plain_id(thread) else "")


def own_id(to: Address, key: str, bot: Bot) -> str:
    """Return the Message-ID of a mail of the bot's; the same for every attempt to send it.

    Args:
        to: Its recipient, and its thread, which the id contains.
        key: Identifies the message.
        bot: The account, and the key by which `returned_to` verifies the id.
    """
    number = identity.digest(to.chat, key)
    return f"{own_prefix(to.thread)}{number}{_proof(number, bot.key, to.chat)[:12]}@{bot.domain}"


def own_prefix(thread: str | None) -> str:
    """Return the prefix of all the bot's Message-IDs in a thread."""
    encoded = base64.urlsafe_b64encode((thread or "").encode()).decode().rstrip("=")
    return f"zc.{encoded}."


def own_thread(message_id: str, domain: str) -> str | None:
    """Return the thread in an id of the bot's, empty for the chat itself; None for any other id.

    A sender can forge such an id, but it only selects a thread of the sender's own chat.
    """
    match = _OWN_ID.fullmatch(message_id)
    if match is None or match[2].lower() != domain:
        return None
    thread = base64.urlsafe_b64decode(match[1] + "===").decode("utf-8", "replace")
    return thread if _HASHED_OR_NONE.fullmatch(thread) or is_plain_id(thread) else None


# --- the body ------------------------------------------------------------------------------------


def _body(subject: str, text: str, own: str, *, is_first: bool) -> Body:
    """Return the content of a mail: a command, or text.

    The subject of a reply or a forwarded mail comes from the other mail: it does not count as the
    sender's own words or as a command.
    """
    is_theirs = own == text and _LED_IN.match(subject) is None
    if own == text and _FORWARDED.match(subject):
        own = ""  # nothing marks where the forwarded mail begins
    if command := command_of(own):
        return command
    if is_first and (title := REPLY.sub("", subject, count=1)):
        if not text and is_theirs and (command := command_of(title)):
            return command
        text = f"{title}\n\n{text}".strip()
        own = f"{title}\n\n{own}".strip() if is_theirs else own
    return Said(text=text, own=None if own == text else own)


# --- answers to cards ----------------------------------------------------------------------------


def press_code(call: CardCall, choice: Choice, *, card: str, to: str, key: bytes) -> str:
    """Return the code in the subject of a mail that answers a card.

    It is valid for one answer to one call, whose hash it contains, by one person, and can't be forged
    without the key. The runtime accepts one answer, and none after the approval has ended.

    Args:
        call: The call.
        choice: The answer.
        card: The card's Message-ID.
        to: The recipient of the card.
        key: This bot's key.
    """
    _, thread, number = card.partition("@")[0].split(".")
    pressed = button_data(call.approval, "deny" if choice == "deny_with_reason" else choice)
    payload = f"{pressed}:{number}:{thread}:{call.hash8}"
    return f"[zc:{payload}:{_proof(payload, key, to)}]"


def _proof(payload: str, key: bytes, to: str) -> str:
    return hmac.new(key, f"{to}\n{payload}".encode(), "sha256").hexdigest()[:32]


def _press(match: re.Match[str], own: str, bot: Bot, sender: str) -> Body:
    """Return the answer that a code means; a bare command if the code was sent to another address.

    The command approves nothing: the runtime asks which call it means, because an approver may have
    answered from a second address.
    """
    payload, data, number, thread, proof = match.groups()
    answer = parse_button_data(data)
    if not (answer and bot.key and hmac.compare_digest(proof, _proof(payload, bot.key, sender))):
        return Command(name="deny" if data.startswith("d") else "approve")
    approval, choice = answer
    card = f"zc.{thread}.{number}@{bot.domain}"
    return Pressed(
        approval=approval,
        choice=choice,
        reason=own[:MAX_REASON_CHARS] if choice == "deny" else "",
        card=MessageRef(address=_chat(bot, sender, own_thread(card, bot.domain)), message=card),
    )


# --- the text ------------------------------------------------------------------------------------


def _texts(mail: Mail) -> tuple[str, str]:
    """Return all the text of a mail, and the text that its sender wrote."""
    remaining, texts = MAX_READ_CHARS, list[tuple[str, str]]()
    for kind, part in mail.texts():
        source = part[:remaining]
        remaining -= len(source)
        texts.append(_html(source) if kind == "text/html" else (source, source))
    full = "\n\n".join(filter(None, (text.strip() for text, _ in texts)))
    own = "\n\n".join(filter(None, (quotes.own_text(source[:MAX_CHARS]) for _, source in texts)))
    return full[:MAX_CHARS], own[:MAX_CHARS]


def _html(source: str) -> tuple[str, str]:
    """Return the text of HTML, and the same without the parts that are marked as quoted."""
    unquoted = _QUOTED_FROM.split(source, maxsplit=1)[0]
    page = readable_page(source, leaves_out=is_hidden_in_mail)
    return page.text, readable_page(unquoted, leaves_out=_is_quoted).text


def _is_quoted(tag: str, attributes: Mapping[str, str]) -> bool:
    marks = {attributes.get("id", ""), *attributes.get("class", "").split()}
    is_marked = tag == "blockquote" or not _QUOTED.isdisjoint(marks)
    return is_marked or is_hidden_in_mail(tag, attributes)


# --- files ---------------------------------------------------------------------------------------


def _files(mail: Mail, cursor: str) -> Iterator[Attachment]:
    for number, part in enumerate(mail.parts):
        if part.is_file:
            name, kind, size, ref = part.name, part.kind, part.size_bytes, f"{cursor}:{number}"
            yield Attachment(reference=ref, name=name, media_type=kind, size_bytes=size)
