"""Turn what the bot says into a mail: the words as they are, and as clean HTML; pure.

The plain text is the Markdown as it was written, which people read without effort, and so nothing of
it is ever lost to an HTML that a mail program cuts. The HTML says the same: nh3 lets neither images
through, whose fetching would tell that a mail was read, nor links to anything but the web and mail,
nor any style, so that nothing in an answer looks like what this file adds below it. A mail program
shows one of the two, so both are screened: the words of the HTML as a text's plain form, the
Markdown as its body.

What the text can't have is a line that is `-- ` and nothing else, which every mail program takes for
the beginning of a signature (RFC 3676, 4.3), and a box with a colour: there stands what an answer
proves. In plain text, where no box is, it has not the signs either that a true mark begins with.
"""

import html
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from email.headerregistry import Address as Mailbox
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from functools import cache
from urllib.parse import quote

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from channels._remote import cards
from channels._remote.cards import receipt_line
from channels.email.decode import MOST_REASON_CHARS, Me, own_id, press_code
from zeroclaw import (
    Card,
    CardCall,
    CardWords,
    CheckedReceipt,
    Outcome,
    OutgoingFile,
    Rendered,
    Value,
    escape_invisible,
    without_mark_signs,
)

MOST_CHARS = 50_000
"""Of one mail; Gmail shows 102 KiB of HTML and hides the rest (read 2026-11)."""
MOST_REFERENCES = 20
_POLICY = SMTP.clone(cte_type="7bit")  # no server has to carry more
# A header is folded late: ids that are longer than a usual line would be encoded, and be none then.
_AS_SENT = _POLICY.clone(max_line_length=990)
_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_SIGNATURE = re.compile(r"^-- (?=\r?$)", re.MULTILINE)
_BLANKS = re.compile(r"\s+")
# The parser's time grows with the square of some beginnings; no answer that people read has so many.
_RISKY = re.compile(r"[\[*_`~<!]")
MOST_RISKY = 5_000
MOST_LEVELS = 12
_TAGS = frozenset(
    {"a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li"}
    | {"ol", "p", "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
)
_STYLE = "<style>pre{background:#f4f4f4;padding:8px}td,th{border:1px solid #ccc;padding:4px 8px}table{border-collapse:collapse}</style>"
# Within their tags, for some programs drop what stands in the head. A line that runs out of a window
# would hide the end of a command.
_PROOF = "margin-top:2em;padding:8px;border-left:4px solid #2e7d32;background:#e8f5e9;color:#1b5e20"
_WRAPPED = "white-space:pre-wrap;overflow-wrap:anywhere;word-break:break-word"


class Words(Value):
    """What a mail says, both ways; `html` empty for a mail of plain text alone."""

    text: str
    html: str = ""


class Letter(Value):
    """A mail on its way out.

    Attributes:
        id: Its Message-ID, without brackets.
        to: Who gets it.
        subject: In one line.
        words: What it says.
        references: The ids of the thread before it, the one that it answers last.
        is_reply: It answers a mail, and was not begun by the bot.
        file: What comes with it.
    """

    id: str
    to: str
    subject: str
    words: Words
    references: tuple[str, ...] = ()
    is_reply: bool = True
    file: OutgoingFile | None = None


def markdown(text: str) -> Rendered:
    """Return a text as it stands in the plain part of a mail; its plain form is what its HTML says."""
    clean = _storable(text)
    words = clean if _is_risky(clean) else _words(_parser().parse(clean)).strip()
    return Rendered(body=_unsigned(clean), plain=_unsigned(words))


def measure(rendered: Rendered) -> int:
    """Return the length in characters."""
    return len(rendered.body)


def answer(
    rendered: Rendered,
    receipts: tuple[CheckedReceipt, ...],
    *,
    is_plain: bool = False,
    is_folded: bool = False,
) -> Words:
    """Return what an answer says, with what it proves below it.

    Args:
        rendered: The answer.
        receipts: What it proves.
        is_plain: Without markup.
        is_folded: Of what it proves the HTML shows a line, which unfolds to all of it where a mail
            program can do that.
    """
    said = _unmarked(rendered.plain if is_plain else rendered.body)
    text = "\n\n-- \n".join(filter(None, (said, "\n".join(map(receipt_line, receipts)))))
    if is_plain:
        return Words(text=text)
    lines = [html.escape(receipt_line(one), quote=False) for one in receipts]
    box, first = "div", ""
    if lines and is_folded:
        tools = Counter(one.tool for one in receipts)
        named = ", ".join(f"{one} ({n})" if n > 1 else one for one, n in tools.items())
        head = f"✅ {len(lines)} receipt{'s' * (len(lines) > 1)}: {named}"
        box, first = "details", f"<summary>{html.escape(head)}</summary>"
    proof = f'<{box} style="{_PROOF}">{first}{"<br>".join(lines)}</{box}>'
    return Words(text=text, html=_to_html(rendered.body) + (proof if lines else ""))


def letter_by_letter(text: str) -> Words:
    """Return a text that is no markup."""
    return Words(text=_unmarked(_storable(text)))


# --- cards ---------------------------------------------------------------------------------------


def card(shown: Card, *, id: str, to: str, me: Me) -> Words:  # noqa: A002  as `Letter.id`
    """Return a card, with the links by which it is answered.

    Args:
        shown: The card.
        id: Its Message-ID.
        to: Who gets it.
        me: Where the answers go, and what proves them.
    """
    head = cards.head(shown)
    text, rich = [head], [f"<p><strong>{html.escape(head)}</strong></p>"]
    for call in shown.calls:
        lines = _call(call)
        text += ["", *lines]
        rich.append(
            f'<h3>{html.escape(lines[0])}</h3><pre style="{_WRAPPED}">{html.escape(lines[1])}</pre>'
            + "".join(f"<p>{html.escape(line)}</p>" for line in lines[2:])
        )
        links = list(_links(shown, call, id=id, to=to, me=me))
        text += [f"{label}: {link}" for label, link in links]
        rich.append(
            "<p>"
            + " · ".join(
                f'<a href="{html.escape(to)}">{html.escape(label)}</a>' for label, to in links
            )
            + "</p>"
        )
        text.append(CardWords(shown.language).by_number(call.number))
    return Words(text="\n".join(text), html="\n".join(rich))


def ended(outcome: Outcome) -> Words:
    """Return how the calls of a card ended, by whom and why."""
    words = CardWords(outcome.card.language)
    lines: list[str] = []
    endings = {one.approval: one for one in outcome.endings}
    for call in outcome.card.calls:
        if (one := endings.get(call.approval)) is not None:
            line = escape_invisible(f"{call.number}. {call.tool}: {call.summary} · {call.hash8}")
            lines.append(f"{line}\n{cards.ended(words, one, MOST_REASON_CHARS)}")
    text = "\n\n".join(lines)
    return Words(text=text, html=f"<p>{html.escape(text)}</p>".replace("\n", "<br>"))


def title(shown: Card) -> str:
    """Return the subject of a card."""
    return CardWords(shown.language).by_name(len(shown.calls))["title"]


def _call(call: CardCall) -> list[str]:
    lines = (
        f"{call.number}. {call.tool}: {call.summary}",
        call.arguments,
        f"{call.why} · {call.hash8}",
        call.scope,
    )
    return [escape_invisible(line) for line in lines if line]


def _links(
    shown: Card,
    call: CardCall,
    *,
    id: str,  # noqa: A002  as above
    to: str,
    me: Me,
) -> list[tuple[str, str]]:
    """Return what may be answered, each with the link that writes the mail which answers so."""
    words = CardWords(shown.language)
    found: list[tuple[str, str]] = []
    for choice in shown.choices:
        if choice != "deny_with_reason":  # what the denying mail says is the reason
            label = words.label(choice)
            code = press_code(call, choice, card=id, to=to, key=me.key)
            subject = quote(f"{label}: {call.number} {code}", safe="")
            found.append((label, f"mailto:{quote(me.address)}?subject={subject}"))
    return found


# --- the mail ------------------------------------------------------------------------------------


def replying(subject: str, fallback: str) -> str:
    """Return the subject of an answer."""
    line = " ".join(escape_invisible(subject or fallback).split())[:200]
    return line if line.lower().startswith("re:") else f"Re: {line}"


def letter_id(thread: str | None, key: str, to: str, domain: str) -> str:
    """Return the Message-ID of what is sent to somebody under a key."""
    return own_id(thread, f"{to}\n{key}", domain)


def mail(letter: Letter, *, sender: Mailbox, at: datetime) -> bytes:
    """Return a mail as it travels.

    RFC 3834, 3.1: an answer says that it is one, so that no other automat answers it.
    """
    message = EmailMessage(policy=_POLICY)
    local, _, domain = letter.to.rpartition("@")
    message["From"] = sender
    message["To"] = Mailbox(username=local, domain=domain)
    message["Subject"] = letter.subject
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<{letter.id}>"
    if letter.references:
        message["In-Reply-To"] = f"<{letter.references[-1]}>"
        first, *rest = letter.references
        kept = (first, *rest[-MOST_REFERENCES:])
        message["References"] = " ".join(f"<{one}>" for one in kept)
    message["Auto-Submitted"] = "auto-replied" if letter.is_reply else "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    message.set_content(letter.words.text)
    if letter.words.html:
        page = f"<!doctype html><html><head><meta charset=utf-8>{_STYLE}</head><body>{letter.words.html}</body></html>"
        message.add_alternative(page, subtype="html", cte="quoted-printable")
    if letter.file is not None:
        main, _, sub = letter.file.media_type.partition("/")
        if not re.fullmatch(r"[a-z]{1,20}/[a-z0-9.+-]{1,80}", letter.file.media_type):
            main, sub = "application", "octet-stream"
        if main in {"multipart", "message"}:
            main, sub = "application", "octet-stream"
        message.add_attachment(
            letter.file.content, maintype=main, subtype=sub, filename=letter.file.name
        )
    # The same again is the same bytes.
    for number, part in enumerate(message.walk()):
        if part.is_multipart():
            part.set_boundary(f"=_zc_{letter.id.partition('@')[0].rpartition('.')[2]}_{number}")
    return message.as_bytes(policy=_AS_SENT)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "maxNesting": MOST_LEVELS}).enable(
        ["table", "strikethrough"]
    )


def _storable(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def _unsigned(text: str) -> str:
    """Return a text without the line that begins a signature."""
    return _SIGNATURE.sub("--", text)


def _unmarked(text: str) -> str:
    """Return a text without what tells a true mark from one, where both are plain text."""
    return _unsigned(without_mark_signs(text))


def _is_risky(source: str) -> bool:
    return len(_RISKY.findall(source)) > MOST_RISKY


def _words(tokens: Sequence[Token]) -> str:
    """Return what a reader of the HTML reads: its words, and a line for each block.

    HTML shows any run of blanks as one, but in a block of code.
    """
    said: list[str] = []
    for token in tokens:
        if token.type in {"softbreak", "hardbreak"}:
            said.append("\n")
        elif token.children is not None and token.type != "image":
            said.append(_words(token.children))
        elif token.content and token.type != "image":
            said.append(token.content if token.block else _BLANKS.sub(" ", token.content))
        if token.block and said and not said[-1].endswith("\n"):
            said.append("\n")
    return "".join(said)


def _unfilled(_: str, name: str, value: str) -> str:
    """Return an attribute; a link that writes a mail fills in none of it, such as a command to the bot."""
    is_mail = name == "href" and value.lower().startswith("mailto:")
    return value.partition("?")[0] if is_mail else value


def _to_html(source: str) -> str:
    """Return Markdown as HTML; what would take long to read stands as it is written."""
    if _is_risky(source):
        return f"<pre>{html.escape(source)}</pre>"
    return nh3.clean(
        _parser().render(source),
        tags=set(_TAGS),
        attributes={"*": set(), "a": {"href"}, "ol": {"start"}},
        attribute_filter=_unfilled,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )
