"""Decodes a mail into an envelope, or into the reason to pass it over; pure.

A conversation is a thread: `Address.thread` is the id of the mail that began it, which every reply
lists in References. So an answer finds its thread again after a restart, with nothing stored. Mails
that the bot began itself, such as a card or a notice, belong to the chat, without a thread; their
Message-IDs say so. The ids of the bot's answers contain their thread, for replies that have only
In-Reply-To.

In a mail that begins a thread, the subject counts as the first words, because people write half of
their request there. In a reply the subject says nothing new.
"""

import base64
import hmac
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from itertools import islice

from channels._remote.cards import carried, parse_button_data
from channels._remote.incoming import Skipped
from channels.email import EmailSettings, identity, quotes, robots
from channels.email.identity import digest
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
    replace,
)

MOST_CHARS = 100_000
"""Limit of a mail's text; the rest is dropped."""
MOST_READ_CHARS = 500_000
"""Limit of what is read of all parts of a mail, markup included."""
MOST_FILES = 20
MOST_REASON_CHARS = 1_000
MOST_ID_CHARS = 120
"""Longest Message-ID that is used as it is, else its hash is used. Exchange's have 80."""
_ID = re.compile(r"<\s*([^<>\s]{1,900})\s*>")
# Visible characters, except those that end a quoted string or an id: IMAP searches contain the id.
_SAFE = re.compile(r"[!#-;=?-\[\]-~]+@[!#-;=?-\[\]-~]+")
_OURS = re.compile(r"zc\.((?:[\w-]{4})*(?:[\w-]{2,3})?)\.[^.@]*@([^@]*)", re.ASCII)
_HASHED = re.compile("#[0-9a-f]{20}")
_RETURNED = re.compile(r"(?im)^Message-ID:\s*<zc\.[\w-]*\.([0-9a-f]{20})([0-9a-f]{12})@")
_RETURNED_TO = re.compile(r"(?im)^To:\s*<?([^<>\s]{1,254})")
MOST_RETURNED = 5
"""Mails and people that are looked for in a report; it is about one mail of ours, to one person."""
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
    r"\A(?:\s*\[[^\]]{0,30}\])*(?:[^:]{1,10}:)*?\s*(?:fwd?|wg|tr|rv|enc|i|vb|vl|pd|doorst|ilt|πρθ|пер|转发|轉寄|転送|전달)\s*[:：]",  # noqa: RUF001  wide colon
    re.IGNORECASE,
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
    """The context of decoding.

    Attributes:
        channel: The channel's name in the configuration.
        settings: The account.
        key: Proves the codes of cards; without a key no code is accepted.
    """

    channel: str
    settings: EmailSettings
    key: Hidden[bytes] = b""

    @property
    def domain(self) -> str:
        """The domain of the account, used in its Message-IDs."""
        return self.settings.address.rpartition("@")[2]


class Fetched(Value):
    """A mail as it was fetched.

    Attributes:
        validity: The mailbox's UIDVALIDITY.
        uid: Its UID.
        raw: The mail, or the part of it that was read.
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
    """A mail for the runtime, and what an answer to it needs.

    Attributes:
        envelope: The envelope for the runtime.
        parent: What an answer needs.
        may_quote: What looks like the sender's own words may contain the bot's, quoted without a
            mark; the mail has to be decoded again with the bot's texts.
    """

    envelope: Envelope
    parent: Parent
    may_quote: bool = False


def decoded(fetched: Fetched, me: Bot, known: Collection[str] = ()) -> Decoded | Skipped:
    """Return the meaning of a mail; `known` are texts of the bot's that it may repeat."""
    mail = parse_mail(fetched.raw)
    settings = me.settings
    author = identity.author(mail.headers.get("from", ()), settings.plus_tags)
    if author is None:
        return Skipped(reason="no one sender")
    own = identity.normalised(settings.address, settings.plus_tags)
    if why := robots.why_none(mail, sender=author.id, own=own):
        return Skipped(reason=why)
    parent = parent_of(mail)
    if own_thread(parent.id, me.domain) is not None:
        return Skipped(reason="it is our own")
    verified = identity.is_vouched_for(author.id, mail.items, settings.authserv_id)
    address = _chat(me, author.id, _thread(parent, me))
    place = f"{fetched.validity}:{fetched.uid}"
    message = parent.id if is_plain_id(parent.id) else f"uid:{place}"
    keys = [f"uid:{settings.mailbox}:{place}"]
    if verified and parent.id:
        keys.append(f"id:{digest(author.id, parent.id)}")
    found = _files(mail, place) if len(fetched.raw) < settings.max_mail_bytes else ()
    text, own_text = _words(mail)
    may_quote = verified and bool(parent.references) and not known and quotes.is_long(own_text)
    own_text = quotes.without_known(own_text, known) if known else own_text
    if press := _PRESS.search(parent.subject):
        body = _pressed(press, own_text, me, author.id)
    else:
        body = _body(parent.subject, text, own_text, is_first=not parent.references)
    envelope = Envelope(
        address=address,
        sender=replace(author, verified=verified, display=plain_header(author.display)),
        dedup=tuple(keys),
        body=body,
        message=message,
        position=Position(scope=settings.mailbox, cursor=place),
        attachments=tuple(islice(found, MOST_FILES)),
        sent_at=fetched.at,
        alone=True,
    )
    return Decoded(envelope=envelope, parent=parent, may_quote=may_quote)


def returned_to(raw: bytes, me: Bot) -> set[str]:
    """Return the people to whom, a report says, mail of ours was not delivered; RFC 3464, 2.3.3.

    That mail's headers stand before its text, so the beginning is enough. Its id proves that it is ours
    and was sent to that person, who alone could make up a report of it.
    """
    report = raw[:MOST_CHARS].decode("ascii", "replace")
    ids = _RETURNED.findall(report)[:MOST_RETURNED] if "\nAction: failed" in report else ()
    people = _RETURNED_TO.findall(report)[:MOST_RETURNED]
    return {to for to in people for n, proof in ids if proof == _proof(n, me.key, to)[:12]}


def _chat(me: Bot, sender: str, thread: str | None) -> Address:
    account, thread = me.settings.address, thread or None
    return Address(channel=me.channel, account=account, chat=sender, thread=thread, direct=True)


def parent_of(mail: Mail) -> Parent:
    """Return the facts that an answer needs about a mail."""
    return Parent(
        id=next(iter(_ID.findall(mail.header("message-id"))), ""),
        subject=plain_header(mail.header("subject"))[:500],
        references=_ids(mail, "references") or _ids(mail, "in-reply-to"),
    )


def _ids(mail: Mail, header: str) -> tuple[str, ...]:
    # Some programs encode ids that are longer than a line.
    return tuple(_ID.findall(plain_header(mail.header(header))))


# --- threads and our own ids ---------------------------------------------------------------------


def _thread(parent: Parent, me: Bot) -> str | None:
    """Return the thread of a mail, None if it belongs to the chat itself."""
    root = next(iter(parent.references), parent.id)
    for one in (root, *parent.references[-1:]):
        if (ours := own_thread(one, me.domain)) is not None:
            return ours or None
    if me.settings.threads == "subject" and (title := REPLY.sub("", parent.subject, count=1)):
        return f"#{digest('subject', title.casefold())}"
    return thread_of(root) if root else None


def thread_of(root: str) -> str:
    """Return the name of the thread that a mail began: its id, or the hash of an unusual one."""
    return root if is_plain_id(root) else f"#{digest(root)}"


def is_plain_id(message_id: str) -> bool:
    """Tell whether a Message-ID can be used as it is."""
    return len(message_id) <= MOST_ID_CHARS and _SAFE.fullmatch(message_id) is not None


def root_of(thread: str | None) -> Parent:
    """Return what is known of a thread without its mails: the id of the first one."""
    return Parent(id=thread if thread and is_plain_id(thread) else "")


def own_id(to: Address, key: str, me: Bot) -> str:
    """Return the Message-ID of a mail of ours; the same for every attempt to send it.

    Args:
        to: Its recipient, and its thread, which the id contains.
        key: Identifies the message.
        me: The account, and the key by which `returned_to` knows the id again.
    """
    number = digest(to.chat, key)
    return f"{own_prefix(to.thread)}{number}{_proof(number, me.key, to.chat)[:12]}@{me.domain}"


def own_prefix(thread: str | None) -> str:
    """Return the prefix of all our Message-IDs in a thread."""
    carried = base64.urlsafe_b64encode((thread or "").encode()).decode().rstrip("=")
    return f"zc.{carried}."


def own_thread(message_id: str, domain: str) -> str | None:
    """Return the thread in an id of ours, empty for the chat itself; None if it is not ours.

    Anybody can forge such an id, but it only selects a thread of their own chat.
    """
    found = _OURS.fullmatch(message_id)
    if found is None or found[2].lower() != domain:
        return None
    carried = base64.urlsafe_b64decode(found[1] + "===").decode("utf-8", "replace")
    is_thread = _HASHED.fullmatch(carried) is not None or is_plain_id(carried)
    return carried if is_thread or not carried else None


# --- what it says --------------------------------------------------------------------------------


def _body(subject: str, text: str, own: str, *, is_first: bool) -> Body:
    """Return the content of a mail: a command, or text.

    The subject of a reply or a forwarded mail comes from the other mail: it does not count as the
    sender's own words or as a command.
    """
    is_theirs = own == text and _LED_IN.match(subject) is None
    if own == text and _FORWARDED.match(subject):
        own = ""  # it is unknown where the forwarded mail begins
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

    It is valid for one answer to one call, whose hash it contains, by one person; nobody can make one
    without the key. The runtime accepts one answer, and none after the approval has ended.

    Args:
        call: The call.
        choice: The answer.
        card: The card's Message-ID.
        to: The recipient of the card.
        key: This bot's key.
    """
    _, thread, number = card.partition("@")[0].split(".")
    pressed = carried(call.approval, "deny" if choice == "deny_with_reason" else choice)
    said = f"{pressed}:{number}:{thread}:{call.hash8}"
    return f"[zc:{said}:{_proof(said, key, to)}]"


def _proof(said: str, key: bytes, to: str) -> str:
    return hmac.new(key, f"{to}\n{said}".encode(), "sha256").hexdigest()[:32]


def _pressed(press: re.Match[str], own: str, me: Bot, sender: str) -> Body:
    """Return the answer that a code means; if its sender was not given this code, a bare command.

    That approves nothing and asks which call is meant, because an approver may have answered from
    another address of theirs.
    """
    said, found, number, thread, proof = press.groups()
    answer = parse_button_data(found)
    if not (answer and me.key and hmac.compare_digest(proof, _proof(said, me.key, sender))):
        return Command(name="deny" if found.startswith("d") else "approve")
    approval, choice = answer
    card = f"zc.{thread}.{number}@{me.domain}"
    return Pressed(
        approval=approval,
        choice=choice,
        reason=own[:MOST_REASON_CHARS] if choice == "deny" else "",
        card=MessageRef(address=_chat(me, sender, own_thread(card, me.domain)), message=card),
    )


# --- its words -----------------------------------------------------------------------------------


def _words(mail: Mail) -> tuple[str, str]:
    """Return all the text of a mail, and the text that its sender wrote."""
    left, read = MOST_READ_CHARS, list[tuple[str, str]]()
    for kind, part in mail.said():
        said = part[:left]
        left -= len(said)
        read.append(_html(said) if kind == "text/html" else (said, said))
    whole = "\n\n".join(filter(None, (text.strip() for text, _ in read)))
    own = "\n\n".join(filter(None, (quotes.own_words(mine[:MOST_CHARS]) for _, mine in read)))
    return whole[:MOST_CHARS], own[:MOST_CHARS]


def _html(source: str) -> tuple[str, str]:
    """Return the text of HTML, and the same without what is marked as quoted."""
    own = _QUOTED_FROM.split(source, maxsplit=1)[0]
    whole = readable_page(source, leaves_out=is_hidden_in_mail)
    return whole.text, readable_page(own, leaves_out=_is_quoted).text


def _is_quoted(tag: str, attributes: Mapping[str, str]) -> bool:
    named = {attributes.get("id", ""), *attributes.get("class", "").split()}
    is_marked = tag == "blockquote" or not _QUOTED.isdisjoint(named)
    return is_marked or is_hidden_in_mail(tag, attributes)


# --- files ---------------------------------------------------------------------------------------


def _files(mail: Mail, place: str) -> Iterator[Attachment]:
    for number, part in enumerate(mail.parts):
        if part.is_file:
            name, kind, size, ref = part.name, part.kind, part.size_bytes, f"{place}:{number}"
            yield Attachment(reference=ref, name=name, media_type=kind, size_bytes=size)
