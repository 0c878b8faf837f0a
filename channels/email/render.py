"""Renders the bot's text as a mail: the text as it is, and as sanitised HTML; pure.

The plain text is the Markdown as it was written, which is easy to read, so nothing is lost when a
mail program cuts the HTML. nh3 removes images, which would reveal that a mail was read, links to
anything but the web and mail, and all styles, so that nothing in an answer looks like the box that
this module adds below it. A mail program shows one of the two parts, so the runtime screens both: the
text of the HTML as a `Rendered`'s plain form, the Markdown as its body.

The text can't contain a line of only `-- `, which every mail program takes for the beginning of a
signature (RFC 3676, 4.3), or a coloured box, which is reserved for receipts. Plain text has no boxes,
so there the signs that begin a receipt's mark are removed from the text as well.
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
from channels.email.decode import MAX_REASON_CHARS, REPLY, Bot, Parent, press_code
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

MAX_REFERENCES = 20
_ENCODING = "quoted-printable"  # a server need not take more than ASCII
# The newer policies of `email` parse each header and line that they write, which takes four times as
# long as the rest of a mail (measured 2026-11).


class _Policy(Compat32):
    content_manager = raw_data_manager

    def fold_binary(self, name: str, value: str) -> bytes:
        line = f"{name}: {value}{self.linesep}"
        # The library parses each header to fold it; hardly any of ours is too long for its line.
        fits = value.isascii() and value.isprintable() and len(line) < (self.max_line_length or 0)
        return line.encode() if fits else super().fold_binary(name, value)


_POLICY = _Policy(mangle_from_=False)
_SENT_POLICY = _POLICY.clone(linesep="\r\n", max_line_length=990)  # folding would break a long id
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_SIGNATURE = re.compile(r"^-- (?=\r?$)", re.MULTILINE)
# With any other id in it, a whole header would be an encoded word, which no program reads.
_IN_HEADERS = re.compile("[!-~]+")
_TYPE = re.compile(r"(?!multipart/|message/)[a-z]{1,20}/[a-z0-9.+-]{1,80}")
# The parser takes quadratic time for some openers; an answer for people never has that many.
_RISKY = re.compile(r"[\[*_`~<!]")
MAX_RISKY = 5_000
MAX_NESTING = 12
MAX_CACHED = 32
"""Texts whose HTML is cached between rendering and sending, and for comparing replies with it."""
_TAGS = frozenset(
    {"a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li"}
    | {"ol", "p", "pre", "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
)
_STYLE = "<style>pre{background:#f4f4f4;padding:8px}td,th{border:1px solid #ccc;padding:4px 8px}table{border-collapse:collapse}</style>"
# Inline styles, since some programs drop the head. Lines wrap, since one that runs out of the window
# would hide the end of a command.
_BOX = "margin-top:2em;padding:8px;border-left:4px solid #2e7d32;background:#e8f5e9;color:#1b5e20"
_WRAPPED = "white-space:pre-wrap;overflow-wrap:anywhere;word-break:break-word"


class Parts(Value):
    """The content of a mail, from which `mail` makes its MIME parts.

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
    """Return a text for the plain part of a mail; its `plain` form is the text of its HTML."""
    body = _without_signatures(_without_controls(text))
    return Rendered(body=body, plain=_without_signatures(_parse(body)[0]))


def answer(outgoing: Outgoing, *, is_folded: bool = False) -> Parts:
    """Return the content of an answer, with its receipts below.

    Args:
        outgoing: The answer.
        is_folded: The HTML shows the receipts as one line, which expands in mail programs that
            support `<details>`.
    """
    rendered, receipts = outgoing.rendered, outgoing.receipts
    # Plain text has no box, so without the signs of a mark the answer can't imitate a receipt.
    body = rendered.plain if outgoing.plain else rendered.body
    body = _without_signatures(without_mark_signs(body))
    text = "\n\n-- \n".join(filter(None, (body, "\n".join(map(cards.receipt_line, receipts)))))
    if outgoing.plain:
        return Parts(text=text)
    lines = [html.escape(cards.receipt_line(receipt), quote=False) for receipt in receipts]
    counts = Counter(receipt.tool for receipt in receipts)
    tools = ", ".join(f"{tool} ({n})" if n > 1 else tool for tool, n in counts.items())
    head = html.escape(f"✅ {len(lines)} receipt{'s' * (len(lines) > 1)}: {tools}")
    box, summary = ("details", f"<summary>{head}</summary>") if is_folded else ("div", "")
    receipts_box = f'<{box} style="{_BOX}">{summary}{"<br>".join(lines)}</{box}>'
    return Parts(text=text, html=_parse(rendered.body)[1] + (receipts_box if lines else ""))


def plain_text(text: str, file: OutgoingFile | None = None) -> Parts:
    """Return a text without markup, such as the caption of a file."""
    return Parts(text=_without_signatures(without_mark_signs(_without_controls(text))), file=file)


# --- cards ---------------------------------------------------------------------------------------


def card(card: Card, *, id: str, to: str, bot: Bot) -> Parts:  # noqa: A002  as it is called
    """Return a card, with the links that answer it.

    Args:
        card: The card.
        id: Its Message-ID.
        to: The recipient.
        bot: The account that answers go to, and the key of the codes.
    """
    labels = CardWords(card.language)
    head = cards.head(card)
    text, rich = [head], [f"<p><strong>{html.escape(head)}</strong></p>"]
    for call in card.calls:
        title_line, arguments, *details = cards.call_lines(call)
        text += ["", title_line, arguments, *details]
        links: list[str] = []
        for choice in card.choices:
            if choice != "deny_with_reason":  # the text of the denying mail is the reason
                label = labels.label(choice)
                code = press_code(call, choice, card=id, to=to, key=bot.key)
                subject = quote(f"{label}: {call.number} {code}", safe="")
                link = f"mailto:{quote(bot.settings.address, safe='@')}?subject={subject}"
                text.append(f"{label}: {link}")
                links.append(f'<a href="{html.escape(link)}">{html.escape(label)}</a>')
        text.append(labels.by_number(call.number))
        rich += [
            f"<h3>{html.escape(title_line)}</h3>",
            f'<pre style="{_WRAPPED}">{html.escape(arguments)}</pre>',
            *(f"<p>{html.escape(line)}</p>" for line in details),
            f"<p>{' · '.join(links)}</p>",
        ]
    return Parts(text="\n".join(text), html="\n".join(rich), subject=card_title(card))


def ended(outcome: Outcome) -> Parts:
    """Return how the calls of a card ended, by whom and why."""
    labels = CardWords(outcome.card.language)
    endings = {ending.approval: ending for ending in outcome.endings}
    lines = [
        f"{cards.title(call)} · {call.hash8}\n"
        f"{cards.ending_text(labels, endings[call.approval], MAX_REASON_CHARS)}"
        for call in outcome.card.calls
        if call.approval in endings
    ]
    return Parts(text="\n\n".join(lines))


def card_title(card: Card) -> str:
    """Return the subject of a card."""
    return CardWords(card.language).by_name(len(card.calls))["title"]


# --- the mail ------------------------------------------------------------------------------------


def mail(
    parts: Parts, parent: Parent, settings: EmailSettings, *, message_id: str, to: str, at: datetime
) -> bytes:
    """Return a mail as bytes to send.

    RFC 3834, 3.1: an automatic answer says that it is one, so that no other robot answers it.

    Args:
        parts: Its content.
        parent: The mail that it answers; empty if the bot begins.
        settings: The settings of the sending account.
        message_id: Without brackets.
        to: The recipient.
        at: The sending time.
    """
    subject = parts.subject or settings.subject
    if parent.id and not parts.subject:
        line = " ".join(escape_invisible(parent.subject).split())[:200]
        # Each program puts its own word before another's, so the line would grow with each answer.
        subject = f"Re: {REPLY.sub('', line, count=1) or settings.subject}"
    message = EmailMessage(_POLICY)
    message.set_content(parts.text, cte=_ENCODING)
    if parts.html:
        page = f"<!doctype html><html><head><meta charset=utf-8>{_STYLE}</head><body>{parts.html}</body></html>"
        message.make_alternative("=_zc_1")  # neither encoding has these signs
        message.add_alternative(page, subtype="html", cte=_ENCODING)
    if file := parts.file:
        kind = file.media_type if _TYPE.fullmatch(file.media_type) else "application/octet-stream"
        message.make_mixed("=_zc_0")
        # A name with a charset is encoded, so no line break in it ends the header.
        file_name = ("utf-8", "", _without_controls(file.name))
        message.add_attachment(file.content, *kind.split("/"), filename=file_name)
    message["From"] = formataddr((settings.name, settings.address))
    message["To"] = to
    message["Subject"] = subject if subject.isascii() else Header(subject, "utf-8").encode()
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<{message_id}>"
    if _IN_HEADERS.fullmatch(parent.id):
        message["In-Reply-To"] = f"<{parent.id}>"
    ids = [f"<{id_}>" for id_ in (*parent.references, parent.id) if _IN_HEADERS.fullmatch(id_)]
    if ids:
        message["References"] = " ".join((ids[0], *ids[1:][-MAX_REFERENCES:]))
    message["Auto-Submitted"] = "auto-replied" if parent.id else "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    return message.as_bytes(policy=_SENT_POLICY)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"]).disable(["image", "reference"])
    parser.parse("a")  # compiles the rules; another thread would use them half compiled
    return parser


def _without_controls(text: str) -> str:
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def _without_signatures(text: str) -> str:
    """Return a text without lines that begin a signature."""
    return _SIGNATURE.sub("--", text)


def _filter_attribute(_: str, name: str, value: str) -> str:
    """Cut a mail link after its address, so that it can't prefill a command to the bot."""
    is_mail = name == "href" and value.lower().startswith("mailto:")
    return value.partition("?")[0] if is_mail else value


@lru_cache(maxsize=MAX_CACHED)
def _parse(source: str) -> tuple[str, str]:
    """Return the text of Markdown, and its HTML; Markdown that is slow to parse stays as written."""
    if len(_RISKY.findall(source)) > MAX_RISKY:
        return source, f"<pre>{html.escape(source)}</pre>"
    rich = nh3.clean(
        _parser().render(tables.without_lost_cells(source, "\x1a")),  # no text holds this sign
        tags=set(_TAGS),
        attributes={"*": set(), "a": {"href"}, "ol": {"start"}},
        attribute_filter=_filter_attribute,
        url_schemes={"http", "https", "mailto"},
    ).replace("\x1a", "|")
    return readable_page(rich).text, rich
