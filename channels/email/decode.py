"""Turn a mail into an envelope, or into the reason why it is passed over; pure.

A conversation is a thread: `Address.thread` is the id of the mail that began it, which every reply
carries in References. So an answer finds its thread again after a restart, with nothing kept. What
the bot began itself, such as a card or a notice, belongs to the chat itself, which is no thread; its
Message-IDs say so, and those of its answers carry their thread, for a reply that has In-Reply-To
alone.

A mail begins a thread with its subject as its first words, because people write half of what they
want there. In a reply it says nothing new.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice

from channels._remote.cards import carried, read_carried
from channels._remote.said import Passed
from channels.email import EmailSettings, identity, mime, quotes, robots
from channels.email.mime import Mail
from zeroclaw import (
    Address,
    Attachment,
    Body,
    CardCall,
    Choice,
    Envelope,
    Hidden,
    MessageRef,
    Position,
    Pressed,
    Said,
    Sender,
    Value,
    command_of,
    readable_page,
)

MOST_CHARS = 100_000
"""Of a mail's words; what is beyond is left out."""
MOST_HTML_CHARS = 500_000
MOST_QUICK = 12_000
"""Letters of a mail that is read on the event loop; what is slow to read counts as many."""
MOST_FILES = 20
MOST_REASON_CHARS = 1_000
MOST_ID_CHARS = 120
"""Of a Message-ID that is used as it is; a longer one is known by its hash. Exchange's have 80."""
_ENDINGS = {"message/rfc822": "eml"}
_ID = re.compile(r"<\s*([^<>\s]{1,900})\s*>")
# Visible signs but for those that end a quotation or an id: it is searched for by IMAP.
_SAFE = re.compile(r"[!#-;=?-\[\]-~]+@[!#-;=?-\[\]-~]+")
_OURS = re.compile(r"zc\.([A-Za-z0-9_-]*)\.[^.@]*@([^@]*)")
_HASHED = re.compile("#[0-9a-f]{20}")
_REFERENCE = re.compile(r"(\d{1,20}):(\d{1,20}):(\d{1,20}):(.*)", re.ASCII)
_PRESS = re.compile(
    r"\[zc:(([otd]:[^\s:\[\]]{1,200}):([0-9a-f]{20}):([A-Za-z0-9_-]{0,200}):[0-9a-f]{8})"
    r":([0-9a-f]{32})\]"
)
_REPLY = re.compile(
    r"\A(?:\s*(?:re|aw|sv|antw|odp|vs|ответ|fw|fwd|wg)(?:\[\d{1,3}\])?\s*:)+\s*", re.IGNORECASE
)
# How the subject of a forwarded mail begins, where programs write no `Fwd`; and of any mail that has a
# word before it, for there are more languages than these.
_FORWARDED = re.compile(
    r"\A(?:\s*\[[^\]]{0,30}\])*(?:[^:]{1,10}:)*?\s*(?:fwd?|wg|tr|rv|enc|i|vb|vl|pd|doorst|ilt|πρθ|пер|转发|轉寄|転送|전달)\s*[:：]",  # noqa: RUF001  wide colon
    re.IGNORECASE,
)
_LED_IN = re.compile("\\A[^:：]{1,30}[:：](?!//)")  # noqa: RUF001  as above
# What mails say invisibly beyond what web pages do: only machines are to read it.
_HIDES = re.compile(r"mso-hide:all|(?:opacity|max-height):0(?:\.0*)?(?:px|;|!|$)")
_QUOTED = frozenset(
    {"gmail_quote", "moz-cite-prefix", "yahoo_quoted", "protonmail_quote", "zmail_extra"}
    | {"mail-editor-reference-message-container", "moz-signature", "gmail_signature"}
)
"""Classes and ids."""
# Outlook's, with all that follows.
_QUOTED_FROM = re.compile(r"<[^<>]{0,500}\bid\s*=\s*[\"']?(?:divRplyFwdMsg|appendonsend)\b")


class Me(Value):
    """Who reads.

    Attributes:
        channel: The name in the configuration.
        settings: The account.
        key: By which codes of cards are proven; empty while there is none, and no code counts.
    """

    channel: str
    settings: EmailSettings
    key: Hidden[bytes] = b""

    @property
    def domain(self) -> str:
        """The domain of the account, under which its Message-IDs are given."""
        return self.settings.address.rpartition("@")[2]


class Fetched(Value):
    """A mail as it was fetched.

    Attributes:
        validity: The mailbox's UIDVALIDITY.
        uid: Its UID.
        raw: The mail, or as much of it as is read.
        size_bytes: Of all of it.
        at: When the server took it in.
    """

    validity: int
    uid: int
    raw: Hidden[bytes]
    size_bytes: int
    at: datetime | None = None


class Parent(Value):
    """What an answer needs to know of the mail that it answers.

    Attributes:
        id: Its Message-ID, without brackets; empty for none.
        subject: Its own, in one line.
        references: The ids of the thread before it, in order.
    """

    id: str = ""
    subject: str = ""
    references: tuple[str, ...] = ()


NO_PARENT = Parent()


class Taken(Value):
    """A mail for the runtime, and what an answer to it needs.

    Attributes:
        envelope: For the runtime.
        parent: What an answer needs.
        may_quote: Of what seems to be its sender's own words some may be the bot's, quoted without
            a mark; to be decoded once more with these.
    """

    envelope: Envelope
    parent: Parent = NO_PARENT
    may_quote: bool = False


def is_quick(raw: bytes) -> bool:
    """Tell whether a mail is read within a few ms, whatever stands in it, as most are."""
    costs = ((b"<", 50), (b"\n--", 500), (b"\n", 10), (b";", 20))  # letters that each counts as
    left = MOST_QUICK - len(raw)  # a long one is not even looked through
    return left >= 0 and sum(raw.count(sign) * cost for sign, cost in costs) <= left


def decoded(fetched: Fetched, me: Me, known: Sequence[str] = ()) -> Taken | Passed:
    """Return what a mail means; `known` are texts of the bot's that it may repeat."""
    mail = mime.taken_apart(fetched.raw)
    settings = me.settings
    author = identity.author(mail.headers.get("from", ()), settings.plus_tags)
    if author is None:
        return Passed(why="no one sender")
    own = identity.normalised(settings.address, settings.plus_tags)
    if why := robots.why_none(mail, sender=author.address, own=own):
        return Passed(why=why)
    parent = parent_of(mail)
    if own_thread(parent.id, me.domain) is not None:
        return Passed(why="it is our own")
    results = mail.headers.get("authentication-results", ())
    verified = identity.is_vouched_for(author.address, results, settings.authserv_id)
    address = _chat(me, author.address, _thread(parent, me))
    place = f"{fetched.validity}:{fetched.uid}"
    message = parent.id if is_plain_id(parent.id) else f"uid:{place}"
    keys = [f"uid:{settings.mailbox}:{place}"]
    if verified and parent.id:
        keys.append(f"id:{_hash(author.address, parent.id)}")
    is_whole = len(fetched.raw) >= fetched.size_bytes
    files = tuple(islice(_files(mail, place, parent.id), MOST_FILES)) if is_whole else ()
    text, own_text = _words(mail)
    may_quote = verified and bool(parent.references) and not known and quotes.is_long(own_text)
    own_text = quotes.without_known(own_text, known) if known else own_text
    if press := _PRESS.search(parent.subject):
        body = _pressed(press, own_text, me, author.address)
    else:
        body = _body(parent.subject, text, own_text, is_first=not parent.references)
    if body is None:
        return Passed(why="a code that proves nothing")
    envelope = Envelope(
        address=address,
        sender=Sender(id=author.address, verified=verified, display=mime.plain(author.display)),
        dedup=tuple(keys),
        body=body,
        message=message,
        position=Position(scope=settings.mailbox, cursor=place),
        attachments=files,
        sent_at=fetched.at,
        alone=True,
    )
    return Taken(envelope=envelope, parent=parent, may_quote=may_quote)


def _chat(me: Me, sender: str, thread: str | None) -> Address:
    account, thread = me.settings.address, thread or None
    return Address(channel=me.channel, account=account, chat=sender, thread=thread, direct=True)


def parent_of(mail: Mail) -> Parent:
    """Return what an answer needs to know of a mail."""
    # Some programs encode ids that are longer than a line.
    named = mime.plain(mail.header("references") or mail.header("in-reply-to"))
    return Parent(
        id=next(iter(_ID.findall(mail.header("message-id"))), ""),
        subject=mime.plain(mail.header("subject"))[:500],
        references=tuple(_ID.findall(named)),
    )


# --- threads and our own ids ---------------------------------------------------------------------


def _thread(parent: Parent, me: Me) -> str | None:
    """Return the thread of a mail, None for the chat itself."""
    root = next(iter(parent.references), parent.id)
    for one in (root, *parent.references[-1:]):
        ours = own_thread(one, me.domain)
        if ours is not None:
            return ours or None
    if me.settings.threads == "subject" and (title := _REPLY.sub("", parent.subject, count=1)):
        return f"#{_hash('subject', title.casefold())}"
    return thread_of(root) if root else None


def thread_of(root: str) -> str:
    """Return the name of the thread that a mail began: its id, or the hash of an odd one."""
    return root if is_plain_id(root) else f"#{_hash(root)}"


def is_plain_id(message_id: str) -> bool:
    """Tell whether a Message-ID can be used as it is."""
    return len(message_id) <= MOST_ID_CHARS and _SAFE.fullmatch(message_id) is not None


def own_id(thread: str | None, key: str, domain: str) -> str:
    """Return the Message-ID of a mail of ours; the same for every attempt to send it.

    Args:
        thread: Where it stands, which the id carries.
        key: What is sent, and to whom.
        domain: The account's.
    """
    return f"{own_prefix(thread)}{_hash(key)}@{domain}"


def own_prefix(thread: str | None) -> str:
    """Return how every Message-ID of ours begins that stands in a thread."""
    carried = base64.urlsafe_b64encode((thread or "").encode()).decode().rstrip("=")
    return f"zc.{carried}."


def own_thread(message_id: str, domain: str) -> str | None:
    """Return the thread that an id of ours carries, empty for the chat itself; None if not ours.

    Anybody can write such an id. It names a thread of their own chat and nothing else.
    """
    found = _OURS.fullmatch(message_id)
    if found is None or found[2].lower() != domain:
        return None
    try:
        carried = base64.urlsafe_b64decode(found[1] + "===").decode()
    except ValueError:
        return None
    is_thread = _HASHED.fullmatch(carried) is not None or is_plain_id(carried)
    return carried if is_thread or not carried else None


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:20]


# --- what it says --------------------------------------------------------------------------------


def _body(subject: str, text: str, own: str, *, is_first: bool) -> Body:
    """Return what a mail says: a command, or words.

    The subject of a mail that answers or passes on another one is that one's: its words are not the
    sender's own, and no command.
    """
    is_theirs = own == text and _LED_IN.match(subject) is None
    if own == text and _FORWARDED.match(subject):
        own = ""  # where the other mail begins is not known
    if command := command_of(own):
        return command
    if is_first and (title := _REPLY.sub("", subject, count=1) if subject else ""):
        if not text and is_theirs and (command := command_of(title)):
            return command
        text = f"{title}\n\n{text}".strip()
        own = f"{title}\n\n{own}".strip() if is_theirs else own
    return Said(text=text, own=None if own == text else own)


# --- answers to cards ----------------------------------------------------------------------------


def press_code(call: CardCall, choice: Choice, *, card: str, to: str, key: bytes) -> str:
    """Return what the subject of a mail says that answers a card.

    It is good for one answer to one call, whose hash it holds, from one person; nobody makes one without
    the key. The runtime takes one answer, and none once the call's question has ended.

    Args:
        call: The call.
        choice: What is answered.
        card: The card's Message-ID.
        to: Who got the card.
        key: This bot's.
    """
    _, thread, number = card.partition("@")[0].split(".")
    pressed = carried(call.approval, "deny" if choice == "deny_with_reason" else choice)
    said = f"{pressed}:{number}:{thread}:{call.hash8}"
    return f"[zc:{said}:{_proof(said, key, to)}]"


def _proof(said: str, key: bytes, to: str) -> str:
    return hmac.new(key, f"{to}\n{said}".encode(), "sha256").hexdigest()[:32]


def _pressed(press: re.Match[str], own: str, me: Me, sender: str) -> Body | None:
    """Return the answer that a code stands for, None for one that its sender was not given."""
    said, found, number, thread, proof = press.groups()
    answer = read_carried(found)
    if not (answer and me.key and hmac.compare_digest(proof, _proof(said, me.key, sender))):
        return None
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
    """Return all the words of a mail, and those that its sender wrote.

    Of parts that say the same the plain one is read, if it says anything.
    """
    parts = [(one, mail.text(one)) for one in mail.parts if not one.is_file]
    plain = {one.choice for one, said in parts if one.kind == "text/plain" and said.strip()}
    read = [
        _html(said) if one.kind == "text/html" else (said, said)
        for one, said in parts
        if not one.choice or (one.kind == "text/plain") == (one.choice in plain)
    ]
    whole = (text.strip() for text, _ in read)
    own = (quotes.own_words(mine[:MOST_CHARS]) for _, mine in read)
    return "\n\n".join(filter(None, whole))[:MOST_CHARS], "\n\n".join(filter(None, own))


def _html(source: str) -> tuple[str, str]:
    """Return the words of HTML, and those without what it marks as quoted."""
    source = source[:MOST_HTML_CHARS]
    quoted = _QUOTED_FROM.search(source)
    own = source[: quoted.start()] if quoted else source
    whole = readable_page(source, leaves_out=_is_hidden)
    return whole.text, readable_page(own, leaves_out=_is_quoted).text


def _is_hidden(_tag: str, attributes: Mapping[str, str]) -> bool:
    return _HIDES.search("".join(attributes.get("style", "").lower().split())) is not None


def _is_quoted(tag: str, attributes: Mapping[str, str]) -> bool:
    named = {attributes.get("id", ""), *attributes.get("class", "").split()}
    return tag == "blockquote" or not _QUOTED.isdisjoint(named) or _is_hidden(tag, attributes)


# --- files ---------------------------------------------------------------------------------------


def _files(mail: Mail, place: str, message_id: str) -> Iterator[Attachment]:
    known = message_id if is_plain_id(message_id) else ""
    for number, part in enumerate(mail.parts):
        if part.is_file:
            ending = _ENDINGS.get(part.kind, part.kind.partition("/")[2][:12] or "bin")
            # Three of four signs of base64 are bytes; its line ends are few.
            estimate = (part.end - part.start) * (3 if part.encoding == "base64" else 4) // 4
            yield Attachment(
                reference=f"{place}:{number}:{known}",
                name=part.name or f"part-{number + 1}.{ending}",
                media_type=part.kind,
                size_bytes=estimate if part.said_bytes is None else part.said_bytes,
            )


def read_reference(reference: str) -> tuple[int, int, int, str] | None:
    """Return the UIDVALIDITY, UID, part and Message-ID of a file, None for what is none of ours."""
    found = _REFERENCE.fullmatch(reference)
    return (int(found[1]), int(found[2]), int(found[3]), found[4]) if found else None
