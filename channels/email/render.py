"""Renders the bot's text as a mail: the text as it is, and as sanitised HTML; pure.

The plain text is the Markdown as it was written, which is easy to read, so nothing is ever lost
when a mail program cuts the HTML. The HTML says the same. nh3 removes images, which would reveal that
a mail was read, links to anything but the web and mail, and all styles, so that nothing in an answer
looks like the box that this module adds below it. A mail program shows one of the two, so both are
screened: the words of the HTML as a text's plain form, the Markdown as its body.

The text can't contain a line of only `-- `, which every mail program takes for the beginning of a
signature (RFC 3676, 4.3), or a coloured box, which is kept for receipts. Plain text has no boxes, so
there the signs that begin a true mark are removed from the text as well.
"""

import html
import re
from collections import Counter
from datetime import datetime
from email.contentmanager import raw_data_manager
from email.header import Header
from email.message import EmailMessage
from email.policy import Compat32
from email.utils import format_datetime, formataddr
from functools import cache, lru_cache
from urllib.parse import quote

import nh3
from markdown_it import MarkdownIt

from channels._remote import cards, tables
from channels.email import EmailSettings
from channels.email.decode import MOST_REASON_CHARS, REPLY, Bot, Parent, press_code
from zeroclaw import (
    Card,
    CardWords,
    Outcome,
    Outgoing,
    OutgoingFile,
    Rendered,
    Value,
    escape_invisible,
    readable_page,
    without_mark_signs,
)

MOST_REFERENCES = 20
_ENCODING = "quoted-printable"  # a server need not take more than ASCII
# The newer policies of `email` parse each header and line that they write, which takes four times as
# long as the rest of a mail (measured 2026-11).


class _Policy(Compat32):
    content_manager = raw_data_manager

    def fold_binary(self, name: str, value: str) -> bytes:
        line = f"{name}: {value}{self.linesep}"
        # The library takes each header apart, to fold it; hardly any of ours is too long for its line.
        fits = value.isascii() and value.isprintable() and len(line) < (self.max_line_length or 0)
        return line.encode() if fits else super().fold_binary(name, value)


_WRITTEN = _Policy(mangle_from_=False)
_AS_SENT = _WRITTEN.clone(linesep="\r\n", max_line_length=990)  # folding would break a long id
_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_SIGNATURE = re.compile(r"^-- (?=\r?$)", re.MULTILINE)
_KIND = re.compile(r"(?!multipart/|message/)[a-z]{1,20}/[a-z0-9.+-]{1,80}")
# The parser takes quadratic time for some openers; an answer for people never has that many.
_RISKY = re.compile(r"[\[*_`~<!]")
MOST_RISKY = 5_000
MOST_LEVELS = 12
MOST_READ = 32
"""Texts whose HTML is cached between rendering and sending, and for replies to them."""
_TAGS = frozenset(
    {"a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li"}
    | {"ol", "p", "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
)
_STYLE = "<style>pre{background:#f4f4f4;padding:8px}td,th{border:1px solid #ccc;padding:4px 8px}table{border-collapse:collapse}</style>"
# Inline styles, since some programs drop the head. Lines wrap, since one that runs out of the window
# would hide the end of a command.
_PROOF = "margin-top:2em;padding:8px;border-left:4px solid #2e7d32;background:#e8f5e9;color:#1b5e20"
_WRAPPED = "white-space:pre-wrap;overflow-wrap:anywhere;word-break:break-word"


class Words(Value):
    """The content of a mail.

    Attributes:
        text: The plain text.
        html: The same as HTML; empty for a mail of plain text only.
        subject: Its own subject; empty to derive it from the mail that it answers.
        file: The attached file.
    """

    text: str
    html: str = ""
    subject: str = ""
    file: OutgoingFile | None = None


def markdown(text: str) -> Rendered:
    """Return a text for the plain part of a mail; its `plain` form is the words of its HTML."""
    body = _unsigned(_storable(text))
    return Rendered(body=body, plain=_unsigned(_read(body)[0]))


def answer(outgoing: Outgoing, *, is_folded: bool = False) -> Words:
    """Return the content of an answer, with its receipts below.

    Args:
        outgoing: The answer.
        is_folded: The HTML shows the receipts as one line, which expands in mail programs that
            support it.
    """
    rendered, receipts = outgoing.rendered, outgoing.receipts
    said = _unmarked(rendered.plain if outgoing.plain else rendered.body)
    text = "\n\n-- \n".join(filter(None, (said, "\n".join(map(cards.receipt_line, receipts)))))
    if outgoing.plain:
        return Words(text=text)
    lines = [html.escape(cards.receipt_line(one), quote=False) for one in receipts]
    box, first = "div", ""
    if lines and is_folded:
        tools = Counter(one.tool for one in receipts)
        named = ", ".join(f"{one} ({n})" if n > 1 else one for one, n in tools.items())
        head = f"✅ {len(lines)} receipt{'s' * (len(lines) > 1)}: {named}"
        box, first = "details", f"<summary>{html.escape(head)}</summary>"
    proof = f'<{box} style="{_PROOF}">{first}{"<br>".join(lines)}</{box}>'
    return Words(text=text, html=_read(rendered.body)[1] + (proof if lines else ""))


def letter_by_letter(text: str, file: OutgoingFile | None = None) -> Words:
    """Return a text without markup, such as the caption of a file."""
    return Words(text=_unmarked(_storable(text)), file=file)


# --- cards ---------------------------------------------------------------------------------------


def card(shown: Card, *, id: str, to: str, me: Bot) -> Words:  # noqa: A002  as it is called
    """Return a card, with the links that answer it.

    Args:
        shown: The card.
        id: Its Message-ID.
        to: The recipient.
        me: The account that answers go to, and the key of the codes.
    """
    words = CardWords(shown.language)
    head = cards.head(shown)
    text, rich = [head], [f"<p><strong>{html.escape(head)}</strong></p>"]
    for call in shown.calls:
        called, arguments, *more = cards.parts(call)
        text += ["", called, arguments, *more]
        links: list[str] = []
        for choice in shown.choices:
            if choice != "deny_with_reason":  # the text of the denying mail is the reason
                label = words.label(choice)
                code = press_code(call, choice, card=id, to=to, key=me.key)
                subject = quote(f"{label}: {call.number} {code}", safe="")
                link = f"mailto:{quote(me.settings.address, safe='@')}?subject={subject}"
                text.append(f"{label}: {link}")
                links.append(f'<a href="{html.escape(link)}">{html.escape(label)}</a>')
        text.append(words.by_number(call.number))
        rich += [
            f"<h3>{html.escape(called)}</h3>",
            f'<pre style="{_WRAPPED}">{html.escape(arguments)}</pre>',
            *(f"<p>{html.escape(line)}</p>" for line in more),
            f"<p>{' · '.join(links)}</p>",
        ]
    return Words(text="\n".join(text), html="\n".join(rich), subject=title(shown))


def ended(outcome: Outcome) -> Words:
    """Return how the calls of a card ended, by whom and why."""
    words = CardWords(outcome.card.language)
    endings = {one.approval: one for one in outcome.endings}
    lines = [
        f"{cards.title(call)} · {call.hash8}\n"
        f"{cards.ended(words, endings[call.approval], MOST_REASON_CHARS)}"
        for call in outcome.card.calls
        if call.approval in endings
    ]
    return Words(text="\n\n".join(lines))


def title(shown: Card) -> str:
    """Return the subject of a card."""
    return CardWords(shown.language).by_name(len(shown.calls))["title"]


# --- the mail ------------------------------------------------------------------------------------


def replying(subject: str, fallback: str) -> str:
    """Return the subject of an answer."""
    line = " ".join(escape_invisible(subject).split())[:200]
    # Each program puts its own word before another's, so the line would grow with each answer.
    return f"Re: {REPLY.sub('', line, count=1) or fallback}"


def mail(
    words: Words, parent: Parent, settings: EmailSettings, *, message_id: str, to: str, at: datetime
) -> bytes:
    """Return a mail as bytes to send.

    RFC 3834, 3.1: an automatic answer says that it is one, so that no other robot answers it.

    Args:
        words: Its content.
        parent: The mail that it answers; empty if the bot begins.
        settings: The settings of the sending account.
        message_id: Without brackets.
        to: The recipient.
        at: The sending time.
    """
    subject = words.subject or settings.subject
    if parent.id and not words.subject:
        subject = replying(parent.subject, settings.subject)
    message = EmailMessage(_WRITTEN)
    message.set_content(words.text, cte=_ENCODING)
    if words.html:
        page = f"<!doctype html><html><head><meta charset=utf-8>{_STYLE}</head><body>{words.html}</body></html>"
        message.make_alternative("=_zc_1")  # neither encoding has these signs
        message.add_alternative(page, subtype="html", cte=_ENCODING)
    if file := words.file:
        kind = file.media_type if _KIND.fullmatch(file.media_type) else "application/octet-stream"
        message.make_mixed("=_zc_0")
        # With a charset it is encoded, so no line break in it ends the header.
        named = ("utf-8", "", _storable(file.name))
        message.add_attachment(file.content, *kind.split("/"), filename=named)
    message["From"] = formataddr((settings.name, settings.address))
    message["To"] = to
    message["Subject"] = subject if subject.isascii() else Header(subject, "utf-8").encode()
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<{message_id}>"
    if parent.id:
        message["In-Reply-To"] = f"<{parent.id}>"
        first, *rest = (*parent.references, parent.id)
        message["References"] = " ".join(f"<{one}>" for one in (first, *rest[-MOST_REFERENCES:]))
    message["Auto-Submitted"] = "auto-replied" if parent.id else "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    return message.as_bytes(policy=_AS_SENT)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MOST_LEVELS})
    parser.enable(["table", "strikethrough"]).disable(["image", "reference"])
    parser.parse("a")  # compiles the rules; another thread would use them half compiled
    return parser


def _storable(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def _unsigned(text: str) -> str:
    """Return a text without lines that begin a signature."""
    return _SIGNATURE.sub("--", text)


def _unmarked(text: str) -> str:
    """Return a text without the signs of a true mark, for a part where both are plain text."""
    return _unsigned(without_mark_signs(text))


def _unfilled(_: str, name: str, value: str) -> str:
    """Filter an attribute: a mail link fills in nothing, such as a command to the bot."""
    is_mail = name == "href" and value.lower().startswith("mailto:")
    return value.partition("?")[0] if is_mail else value


@lru_cache(maxsize=MOST_READ)
def _read(source: str) -> tuple[str, str]:
    """Return the words of Markdown, and its HTML; text that is slow to parse is kept as written."""
    if len(_RISKY.findall(source)) > MOST_RISKY:
        return source, f"<pre>{html.escape(source)}</pre>"
    rich = nh3.clean(
        _parser().render(tables.without_lost_cells(source, "\x1a")),  # no text holds this sign
        tags=set(_TAGS),
        attributes={"*": set(), "a": {"href"}, "ol": {"start"}},
        attribute_filter=_unfilled,
        url_schemes={"http", "https", "mailto"},
    ).replace("\x1a", "|")
    return readable_page(rich).text, rich
